"""Ids and pages in addresses: what `limit` and `cursor` may be, and ids as we write them."""

from typing import Annotated
from uuid import UUID

from fastapi import Query

from frugal.service.errors import InvalidRequest
from frugal.service.registry.versions import NAME

Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query(description="`next` of the page before")]  # an id
NameCursor = Annotated[str, Query(pattern=f"^({NAME})?$", description="`next` of the page before")]


def parse_id(text: str) -> UUID | None:
    """An id as we write it; None for anything else."""
    try:
        return UUID(text) if len(text) == 36 else None
    except ValueError:
        return None


def parse_cursor(cursor: str | None) -> UUID | None:
    """The id that a page begins after, if any."""
    found = None if cursor is None else parse_id(cursor)
    if cursor is not None and found is None:
        raise InvalidRequest("cursor: take it from `next` of the page before")
    return found
