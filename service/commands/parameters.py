"""Parameters as they are typed: --set NAME=VALUE, --penalties."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from frugal.models.learners import LEARNERS
from frugal.models.learners.parameters import Columns, Names, parameters_of

EXAMPLE = '{"ill": {"well": 500}, "well": {"ill": 50}}'
WORDS = {"none": None, "true": True, "false": False}
OPTIONS = {"n_jobs": "--jobs", "random_state": "--seed", "budget": "--budget", "costs": "--costs"}  # of `frugal train`
LISTS = {each.name for kind in LEARNERS.values() for each in parameters_of(kind) if isinstance(each.kind, (Columns, Names))}


class Doubled(ValueError):  # noqa: N818 - its name says what it is
    """JSON in which a name stands twice."""


def parse_value(text: str) -> Any:
    """What a typed value means: a number, a word, a list with commas, or JSON where it begins like a list or an object of it.

    Examples
    --------
    >>> [parse_value(text) for text in ("8", "0,2.5", "none", "path", "vessels,", "[[1, [1, 1]]]", '{"ill": 5}')]
    [8, [0, 2.5], None, 'path', ['vessels'], [[1, [1, 1]]], {'ill': 5}]
    """
    if text.startswith(("[", "{")):
        try:
            return json.loads(text, object_pairs_hook=_once)
        except Doubled as error:
            raise ValueError(f"{text}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{text} begins like JSON and is none: {error}") from None
    if "," in text:
        return [_single(part) for part in text.split(",") if part]
    return _single(text)


def parse_settings(given: Sequence[str], expected: str, options: Mapping[str, str] = OPTIONS) -> dict[str, Any]:
    """NAME=VALUE as often as it was typed; `expected` says where names are found, `options` what has an option of its own.

    Examples
    --------
    >>> parse_settings(["alpha=0,2", "categorical=age"], "NAME=VALUE")
    {'alpha': [0, 2], 'categorical': ['age']}
    """
    found: dict[str, Any] = {}
    for text in given:
        name, equals, typed = text.partition("=")
        if not (name and equals):
            raise ValueError(f"--set {text}: expected {expected}")
        if name in options:
            raise ValueError(f"--set {text}: use {options[name]} instead")
        if name in found:
            raise ValueError(f"--set {text}: {name} is set twice; set it once")
        value = parse_value(typed)
        found[name] = [value] if name in LISTS and isinstance(value, str) else value
    return found


def parse_penalties(text: str) -> float | dict[str, dict[str, float]]:
    """What mistakes cost: one number for all, or JSON by true label, then by the label that is said.

    Examples
    --------
    >>> parse_penalties("50"), parse_penalties('{"ill": {"well": 500}}')
    (50.0, {'ill': {'well': 500}})
    """
    try:
        given = json.loads(text, object_pairs_hook=_once)
    except Doubled:
        raise
    except (ValueError, RecursionError):
        given = None
    if _is_amount(given):
        return float(given)
    rows = given.values() if isinstance(given, dict) else ()
    if rows and all(isinstance(row, dict) and row and all(map(_is_amount, row.values())) for row in rows):
        return dict(given)
    raise ValueError(f"{text} is neither a number from 0 nor JSON by true label, then by the label said, like {EXAMPLE}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no name stands twice: of two penalties for one mistake the first would be lost."""
    for name, many in Counter(name for name, _ in pairs).items():
        if many > 1:
            raise Doubled(f"{name!r} stands there {many} times in one object: once is enough")
    return dict(pairs)


def _is_amount(given: Any) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool) and 0 <= given < math.inf


def _single(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return WORDS.get(text.lower(), text)
