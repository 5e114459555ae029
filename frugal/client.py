"""The client: `from frugal.client import Client`. Needs httpx alone."""

from frugal.service.client import (
    LOCAL,
    PENDING,
    UNAVAILABLE,
    Acquire,
    Client,
    ClientError,
    Collect,
    Json,
    Missing,
    Problem,
    Unreachable,
    Value,
)

__all__ = [
    "LOCAL",
    "PENDING",
    "UNAVAILABLE",
    "Acquire",
    "Client",
    "ClientError",
    "Collect",
    "Json",
    "Missing",
    "Problem",
    "Unreachable",
    "Value",
]
