"""Logs as JSON, one object a line: ids and numbers, never feature values, never keys."""

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any


class JsonLines(logging.Formatter):
    """`extra={"fields": {...}}` of a call becomes members of its line. Of an exception it shows its kind and where it was raised, not its
    words: those may hold a patient's values."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"at": datetime.now(UTC).isoformat(timespec="milliseconds")[:-6] + "Z", "level": record.levelname.lower()}
        line["message"] = record.getMessage()
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = f"{type(error).__module__}.{type(error).__qualname__}"
            line["trace"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
        return json.dumps(line, ensure_ascii=False, default=str)


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
