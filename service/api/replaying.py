"""Idempotency-Key: the same request again gives the first reply again."""

import hashlib
import json
from typing import Annotated

from fastapi import Header

from frugal.service.api.shapes import Strict

IdempotencyHeader = Annotated[str | None, Header(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$")]


def fingerprint(body: Strict) -> str:
    """What tells one body from another under the same key."""
    return hashlib.sha256(json.dumps(body.model_dump(), sort_keys=True).encode()).hexdigest()
