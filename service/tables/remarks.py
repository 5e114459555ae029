"""What is remarkable about a table, and how it is told: to whoever has the file with the cells at fault, over the wire without."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from frugal.models.costs import shown
from frugal.models.naming import quoted

MOST = 12  # columns that are told one by one
SHOWN = 3  # rows and cells that are named


@dataclass(frozen=True)
class Remark:
    """One thing about one column: so many `cells`, so many `different` ones among them, the first `rows` of those (the header is row 1).

    kind: "words" or "counter" (it names cases), "dates", "constant", "empty", "mixed" (numbers but for a few cells, so all are words),
    "strays" (cells that were no numbers, and are missing now), "unseen" (a cell said to mean missing that is nowhere).
    """

    kind: str
    column: str
    cells: int = 0
    different: int = 0
    rows: tuple[int, ...] = ()
    values: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What may be stored and told anywhere: no cells."""
        return {"kind": self.kind, "cells": self.cells, "different": self.different, "rows": list(self.rows)}

    @classmethod
    def from_json(cls, column: str, stored: dict[str, Any]) -> "Remark":
        return cls(stored["kind"], column, stored["cells"], stored["different"], tuple(stored["rows"]))


def told(remarks: Sequence[Remark]) -> list[str]:
    """Sentences for a terminal, with the options to type."""
    return [*_grouped(remarks, _option), *_each(remarks, _told_here)]


def told_anywhere(remarks: Sequence[Remark]) -> list[str]:
    """Sentences that repeat no cell, with the parameters to send."""
    return [*_grouped(remarks, lambda name, value: f"{name}={value}"), *_each(remarks, _told_there)]


GROUPS = {
    "words": "{} {has} a different word in nearly every row, like a name or a case number: leave {them} out with {}",
    "counter": "{} {has} whole numbers that only count the rows, like a case number: leave {them} out with {}",
    "dates": "{} {holds} dates, which are not read as such: make numbers of them, such as days since a day, or leave {them} out with {}",
    "constant": "{} {has} the same value in every row: leave {them} out with {}",
    "empty": "{} {has} no values: leave {them} out with {}",
}


def _grouped(remarks: Sequence[Remark], option: Any) -> Iterable[str]:
    for kind, sentence in GROUPS.items():
        names = [remark.column for remark in remarks if remark.kind == kind]
        if not names:
            continue
        words = {"them": "it", "holds": "holds", "has": "has"} if len(names) == 1 else {"them": "them", "holds": "hold", "has": "have"}
        yield sentence.format(quoted(names), option("drop", ",".join(names)), **words)


def _each(remarks: Sequence[Remark], tell: Any) -> Iterable[str]:
    single = [remark for remark in remarks if remark.kind not in GROUPS]
    yield from (tell(remark) for remark in single[:MOST])
    if len(single) > MOST:
        yield f"{len(single) - MOST:,} more columns have cells that are no numbers"


def _told_here(remark: Remark) -> str:
    if remark.kind == "unseen":
        return f"no cell is {remark.values[0]!r}, which --missing names"
    more = ", ..." if remark.different > len(remark.values) else ""
    which = f"{', '.join(shown(value) for value in remark.values)}{more} {_rows(remark)}"
    if remark.kind == "strays":
        return f"{remark.column!r}: {_no_numbers(remark)} and taken as missing: {which}"
    few = remark.different == len(remark.values) and not any("," in value for value in remark.values)
    advice = f"if that means missing, say so with {_option('missing', ','.join(remark.values))}; or " if few else ""
    return (
        f"{remark.column!r} is taken as words, because {_no_numbers(remark)}: {which}; "
        f"{advice}read the others as numbers with {_option('numeric', remark.column)}"
    )


def _told_there(remark: Remark) -> str:
    values = "1 value" if remark.different == 1 else f"{remark.different:,} different values"
    if remark.kind == "strays":
        return f"{remark.column!r}: {_no_numbers(remark)} and taken as missing: {values} {_rows(remark)}"
    return (
        f"{remark.column!r} is taken as words, because {_no_numbers(remark)}: {values} {_rows(remark)}; "
        f"delete the data set and send it again with numeric={remark.column}, or with what stands there as missing"
    )


def _no_numbers(remark: Remark) -> str:
    return "1 cell is no number" if remark.cells == 1 else f"{remark.cells:,} cells are no numbers"


def _rows(remark: Remark) -> str:
    listed = ", ".join(f"{row:,}" for row in remark.rows)
    return f"(row {listed})" if remark.cells == 1 else f"(rows {listed}{', ...' if remark.cells > len(remark.rows) else ''})"


def _option(name: str, value: str) -> str:
    return f"--{name} {shlex.quote(value)}"
