"""Names in messages: a list of them, and the one that was probably meant."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

LETTERS = 3  # that a short form must have
ALIKE = 0.7  # of 1, how much of two names must be the same


def quoted(names: Iterable[Any], most: int = 12) -> str:
    """Names for a sentence.

    Examples
    --------
    >>> quoted(["age", "sex"])
    "'age', 'sex'"
    """
    listed = [repr(name) for name in names]
    return ", ".join(listed[:most]) + (f", ... ({len(listed):,} in all)" if len(listed) > most else "")


def nearest(name: object, names: Sequence[str]) -> str | None:
    """The name that somebody who wrote this one may have meant: another spelling, a short form, or one that is much alike.

    Examples
    --------
    >>> [nearest(name, ["age", "cholesterol", "Resting BP"]) for name in ("chol", "colesterol", "resting_bp", "thal")]
    ['cholesterol', 'cholesterol', 'Resting BP', None]
    """
    wanted = _plain(str(name)[:200])
    plain = {known: _plain(known[:200]) for known in names}
    same = [known for known, text in plain.items() if text == wanted]
    if same:
        return same[0]
    begun = [known for known, text in plain.items() if min(len(text), len(wanted)) >= LETTERS and _begins(text, wanted)]
    if begun:
        return min(begun, key=lambda known: abs(len(plain[known]) - len(wanted)))
    close = difflib.get_close_matches(wanted, list(plain.values()), 1, ALIKE)
    return next((known for known, text in plain.items() if close and text == close[0]), None)


def meant(name: object, names: Sequence[str]) -> str:
    """The question that a message ends with, or nothing."""
    near = nearest(name, names)
    return "" if near is None else f" (did you mean {near!r}?)"


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
