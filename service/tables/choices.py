"""How a table is to be read: columns left out, columns that are numbers or words whatever they hold, cells that mean nothing."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from frugal.models.naming import meant, quoted
from frugal.models.schema import CATEGORICAL, NUMERIC
from frugal.service.tables.limits import Rejected

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # what a cell of a column of numbers may be
MOST_MISSING = 100  # different cells that mean nothing


@dataclass(frozen=True)
class Choices:
    """What is asked for. A name in `drop` and `numeric`, and a cell in `missing`, may also be a list with commas.

    `drop` and `numeric` must name columns that are there. For whoever knows what to expect, `only` names all columns that are wanted, which
    must be there, and `kinds` says of some what they are; what stands in `copied` too is wanted whatever it is, not as a certain column.
    """

    drop: Sequence[str] = ()
    numeric: Sequence[str] = ()
    missing: Sequence[str] = ()
    only: Sequence[str] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    copied: Sequence[str] = ()


@dataclass(frozen=True)
class Plan:
    """Choices for a table whose columns are known: what is true of each; the cells that mean nothing, words and numbers."""

    taken: NDArray[np.bool_]
    numeric: NDArray[np.bool_]
    words: NDArray[np.bool_]
    missing: tuple[str, ...]
    texts: frozenset[str]
    numbers: tuple[float, ...]
    left_out: tuple[str, ...]


def planned(choices: Choices, names: Sequence[str]) -> Plan:
    """Rejected where a name is no column, or no column is left."""
    numeric = {*_columns("numeric", choices.numeric, names), *_of_kind(choices, NUMERIC)}
    words = _of_kind(choices, CATEGORICAL)
    dropped = _columns("drop", choices.drop, names)
    if choices.only is None:
        taken = [name not in dropped for name in names]
    else:
        _check_wanted(choices.only, choices.copied, names)
        wanted = set(choices.only)
        taken = [name in wanted for name in names]
    if not any(taken):
        raise Rejected("every column is left out: keep some", choice="drop")
    missing = _cells(choices.missing)
    numbers = tuple(float(text) for text in missing if is_number(text))
    return Plan(
        np.array(taken),
        np.array([name in numeric for name in names]),
        np.array([name in words for name in names]),
        missing,
        frozenset(text for text in missing if not is_number(text)),
        numbers,
        tuple(name for name, is_taken in zip(names, taken, strict=True) if not is_taken),
    )


def is_number(text: str) -> bool:
    """Whether a cell with this text may stand in a column of numbers.

    Examples
    --------
    >>> [is_number(text) for text in ("-1", "6.02e23", "nan", "1e999", "1,5", "")]
    [True, True, False, False, False, False]
    """
    return bool(NUMBER.fullmatch(text)) and abs(float(text)) < float("inf")


def _of_kind(choices: Choices, kind: str) -> set[str]:
    return {name for name, is_of in choices.kinds.items() if is_of == kind}


def _columns(choice: str, given: Sequence[str], names: Sequence[str]) -> set[str]:
    """The columns that a choice names; a name may have commas in it, if it is one."""
    known = set(names)
    wanted = [part for text in given for part in ([text.strip()] if text.strip() in known else _parts(text))]
    for number, name in enumerate(wanted, 1):
        if name not in known:
            raise Rejected(
                f"name {number:,} of {len(wanted):,} is no column of the table{meant(name, names)}",
                choice=choice,
                local=f"{choice} {name!r}: no such column{meant(name, names)}; the columns are {quoted(names, 40)}",
            )
    return set(wanted)


def _check_wanted(wanted: Sequence[str], copied: Sequence[str], names: Sequence[str]) -> None:
    known = set(names)
    lacking = [name for name in wanted if name not in known]
    if lacking:
        spare = [name for name in names if name not in wanted]
        near = [f"{name!r}{meant(name, names if name in copied else spare)}" for name in lacking[:12]]
        told = ", ".join(near) + (", ..." if len(lacking) > 12 else "")
        raise Rejected(f"the table lacks the column {told}, which is needed: its columns are {quoted(names, 40)}")


def _cells(given: Sequence[str]) -> tuple[str, ...]:
    cells = tuple(dict.fromkeys(part for text in given for part in _parts(text)))
    if len(cells) > MOST_MISSING:
        raise Rejected(f"more than {MOST_MISSING} different cells mean missing: name fewer", choice="missing", limit=MOST_MISSING)
    return cells


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
