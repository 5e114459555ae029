"""What a setting must be, in words, from how its field is declared."""

import re
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from frugal.service.address import without_secrets

WHOLE, NUMBER = "a whole number", "a number"
BOUNDS = {"ge": "of {} or more", "gt": "above {}", "le": "at most {}", "lt": "below {}"}


def expected(field: FieldInfo, given: object) -> str:
    """The sentence for a wrong value.

    Examples
    --------
    >>> from pydantic import BaseModel, Field
    >>> class Settings(BaseModel):
    ...     port: int = Field(8000, ge=0, le=65535)
    ...     ttl: int = Field(604_800, ge=1)
    >>> expected(Settings.model_fields["port"], "http")
    "expected a whole number from 0 to 65535, not 'http'"
    >>> expected(Settings.model_fields["ttl"], "604,800")
    "expected a whole number of 1 or more, not '604,800': write 604800"
    """
    wanted = _kind(field.annotation) + _bounds(field)
    text = without_secrets(str(given))
    shown = repr(text if len(text) <= 40 else text[:39] + "…")
    return f"expected {wanted}, not {shown}{_hint(text)}"


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        *first, last = get_args(annotation)
        return f"{', '.join(first)} or {last}"
    return {int: WHOLE, float: NUMBER}.get(annotation, "text")


def _bounds(field: FieldInfo) -> str:
    found = {name: getattr(each, name) for each in field.metadata for name in BOUNDS if hasattr(each, name)}
    if {"ge", "le"} <= found.keys():
        return f" from {found['ge']} to {found['le']}"
    words = [words.format(found[name]) for name, words in BOUNDS.items() if name in found]
    return " " + " and ".join(words) if words else ""


def _hint(text: str) -> str:
    """Thousands are often set apart; here they must not be."""
    return f": write {re.sub('[, ]', '', text)}" if re.fullmatch(r"\d{1,3}([, ]\d{3})+", text.strip()) else ""
