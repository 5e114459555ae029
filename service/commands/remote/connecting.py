"""What the commands that talk to a server share: the connection, what to type when it goes wrong, and how replies are printed."""

import argparse
import json
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from frugal.service.address import without_secrets
from frugal.service.client import LOCAL, Client, ClientError, Json, Problem, Unreachable

ATTEMPTS = 3  # somebody is watching
AS_COMMANDS = {
    "GET /v1/models lists": "frugal models list shows",
    "GET /v1/admin/keys lists": "frugal keys list shows",
    "GET /v1/admin/datasets lists": "frugal datasets list shows",
    "GET /v1/admin/training-jobs lists": "frugal jobs list shows",
    "must be an admin key:": "must be an admin key (--role admin):",
}


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[Client]:
    """A client of the server that the options or the environment name; what goes wrong is a ValueError that says what to do."""
    url = options.url or os.environ.get("FRUGAL_URL") or LOCAL
    key = options.key or os.environ.get("FRUGAL_KEY")
    try:
        with Client(url, key, attempts=ATTEMPTS) as client:
            yield client
    except Unreachable as error:
        if error.sent:
            raise ValueError(str(error)) from None
        raise ValueError(
            f"no server at {without_secrets(url)} ({error.__cause__}): start one with frugal serve, or say where it is with --url"
        ) from None
    except Problem as problem:
        raise ValueError(_advice(problem, bool(key))) from None
    except ClientError as error:
        raise ValueError(str(error)) from None


def _advice(problem: Problem, had_key: bool) -> str:
    """What the server said, with what to type."""
    if problem.status == 401 and not had_key:
        return "this server wants a key: give it with --key or FRUGAL_KEY"
    if problem.status == 401:
        return "this key is unknown to the server, revoked or expired: give another with --key or FRUGAL_KEY"
    if problem.slug == "forbidden":
        return "this is a client's key: give an admin's with --key or FRUGAL_KEY"
    return as_command(problem.detail)


def as_command(detail: str) -> str:
    for call, command in AS_COMMANDS.items():
        detail = detail.replace(call, command)
    return detail


def warn_of(sentences: Sequence[str]) -> None:
    """What the server warned of, with the options to type."""
    for text in sentences:
        typed = re.sub(r"\bwith (drop|numeric)=", r"with --\1 ", text)
        warnings.warn(typed.replace("what stands there as missing", "what stands there as --missing"), stacklevel=2)


def said(options: argparse.Namespace, reply: Json, sentence: str) -> str:
    return json.dumps(reply, indent=2) if options.json else sentence


def listed(options: argparse.Namespace, items: list[Json], heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    if options.json:
        return json.dumps({"items": items}, indent=2)
    return table([heads, *rows]) if rows else empty


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as what is in them.

    Examples
    --------
    >>> print(table([("name", "version"), ("heart", "1")]))
    name   version
    heart  1
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def when(at: str | None) -> str:
    """A time of the wire, to the minute."""
    return "" if at is None else at[:16].replace("T", " ")
