"""Logs as JSON, one object a line: ids and numbers, never feature values, never keys."""

import asyncio
import json
import logging
import sqlite3
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

GATHERED = 0.1  # seconds


class JsonLines(logging.Formatter):
    """`extra={"fields": {...}}` of a call becomes members of its line. Of an exception it shows its kind and where it was raised, not its
    words: those may hold a patient's values."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"at": _now(), "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = f"{type(error).__module__}.{type(error).__qualname__}"
            if broken := constraint_of(error):
                line["constraint"] = broken
            line["trace"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
        return json.dumps(line, ensure_ascii=False, default=str)


def constraint_of(error: BaseException) -> str | None:
    """The rule of the tables that was broken, as each driver names it; no values."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, sqlite3.IntegrityError):
        return str(cause)
    told = getattr(cause, "diag", cause)  # psycopg's, or asyncpg's own
    table, names = getattr(told, "table_name", None), [getattr(told, kind, None) for kind in ("constraint_name", "column_name")]
    return ".".join(name for name in (table, *names) if name) or None


class RequestLines:
    """A line per request, gathered for a tenth of a second and written at once: a write for each took a tenth of a step's time."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def add(self, fields: dict[str, Any]) -> None:
        self._lines.append(to_json({"at": _now(), "level": "info", "message": "request", **fields}))
        if len(self._lines) == 1:
            asyncio.get_running_loop().call_later(GATHERED, self.flush)

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            sys.stderr.write(b"\n".join([*lines, b""]).decode())
            sys.stderr.flush()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def configuration(level: str) -> dict[str, Any]:
    """For logging.config: uvicorn's own messages and ours, all to stderr."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonLines}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
        "loggers": {
            "frugal": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
            "uvicorn": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
        },
    }
