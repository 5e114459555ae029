"""Parameters as they are typed: --set NAME=VALUE."""

import json
from typing import Any

WORDS = {"none": None, "true": True, "false": False}


def parse_value(text: str) -> Any:
    """What a typed value means: a number, a word, a list with commas, or JSON where it begins like a list or an object of it.

    Examples
    --------
    >>> [parse_value(text) for text in ("8", "0,2.5", "none", "path", "vessels,", "[[1, [1, 1]]]")]
    [8, [0, 2.5], None, 'path', ['vessels'], [[1, [1, 1]]]]
    """
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"{text} begins like JSON and is none: {error}") from None
    if "," in text:
        return [_single(part) for part in text.split(",") if part]
    return _single(text)


def _single(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return WORDS.get(text.lower(), text)
