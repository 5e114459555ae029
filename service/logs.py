"""Logs as JSON, one object a line: ids and numbers, never feature values, never keys."""

import json
import logging
import sys
from typing import Any

from service.store.tables import iso, now


class JsonLines(logging.Formatter):
    """`extra={"fields": {...}}` of a call becomes members of its line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {"at": iso(now()), "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configuration(level: str) -> dict[str, Any]:
    """For logging.config: uvicorn's own messages and ours, all to stderr."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonLines}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": sys.stderr}},
        "loggers": {
            "frugal": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
            "uvicorn": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
        },
    }
