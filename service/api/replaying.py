"""Idempotency-Key: the same request again gives the first reply again."""

import hashlib
import json
from typing import Annotated

from fastapi import Header

from frugal.service.api.shapes import Strict

IdempotencyHeader = Annotated[str | None, Header(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$")]


LATER = ("aim",)  # fields that an earlier release did not know: without them a body counts as it did there


def fingerprint(body: Strict) -> str:
    """What tells one body from another under the same key."""
    said = {name: value for name, value in body.model_dump().items() if value is not None or name not in LATER}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
