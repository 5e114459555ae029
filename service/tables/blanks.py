"""Cells of a block that count as empty: those that mean nothing, and words in a column that is to hold numbers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.service.tables.choices import Plan
from frugal.service.tables.columns import Column
from frugal.service.tables.kernels.parsing import CODED, EMPTY, NUMBER, WORD
from frugal.service.tables.limits import Rejected, named
from frugal.service.tables.remarks import SHOWN, Remark

MOST = 1_000  # different strays of a column, counted no further


class Blanked(NamedTuple):
    """What was made empty in a block: of the cells that mean nothing those that were seen, and the strays of each column."""

    seen: frozenset[str | float]  # numbers by their value
    strays: dict[int, tuple[int, list[int], list[str]]]  # by column: cells, the first rows, the words


NOTHING = Blanked(frozenset(), {})


def blank_out(values: NDArray[np.float64], forms: NDArray[np.uint8], texts: Any, plan: Plan) -> Blanked:
    """Empty the cells; words that are gone are no column's any more."""
    seen = _blank_numbers(values, forms, plan)
    gone = _mean_nothing(texts, plan)
    seen |= {float(texts.numbers[e]) if texts.kinds[e] == NUMBER else texts[e] for e in np.flatnonzero(gone).tolist()}
    stray = (texts.kinds == WORD) & plan.numeric[texts.columns] & ~gone
    strays = {}
    for c in np.unique(texts.columns[gone | stray]).tolist():
        rows = np.flatnonzero(forms[c] == CODED)
        entries = values[c, rows].astype(np.int64)
        if plan.numeric[c]:
            mine = rows[stray[entries]]
            words = [texts[e] for e in np.flatnonzero(stray & (texts.columns == c))[:MOST].tolist()]
            strays[c] = len(mine), mine[:SHOWN].tolist(), words
        empty = rows[(gone | stray)[entries]]
        values[c, empty], forms[c, empty] = np.nan, EMPTY
    texts.columns[gone | stray] = -1
    return Blanked(frozenset(seen), {c: found for c, found in strays.items() if found[0]})


def _blank_numbers(values: NDArray[np.float64], forms: NDArray[np.uint8], plan: Plan) -> set[str | float]:
    seen: set[str | float] = set()
    for number in plan.numbers:
        same = (values == number) & (forms < CODED)
        if same.any():
            seen.add(number)
            values[same], forms[same] = np.nan, EMPTY
    return seen


def _mean_nothing(texts: Any, plan: Plan) -> NDArray[np.bool_]:
    """Which of a block's texts mean nothing: words as they are written, numbers by their value."""
    gone: NDArray[np.bool_] = (texts.kinds == NUMBER) & np.isin(texts.numbers, plan.numbers)
    sizes = {len(text.encode()) for text in plan.texts} | {len(text.replace('"', '""').encode()) for text in plan.texts}
    for e in np.flatnonzero(np.isin(np.diff(texts.ends, prepend=0), list(sizes))).tolist():
        gone[e] |= texts[e] in plan.texts
    return gone


class Tallied:
    """What was made empty in all blocks."""

    def __init__(self, names: list[str], plan: Plan) -> None:
        self._names, self._plan = names, plan
        self._seen: set[str | float] = set()
        self._strays: dict[int, tuple[int, list[int], set[str]]] = {}

    def add(self, blanked: Blanked, rows_before: int) -> None:
        self._seen |= blanked.seen
        for c, (cells, rows, words) in blanked.strays.items():
            known = self._strays.get(c, (0, [], set()))
            words_so_far = known[2] | set(words) if len(known[2]) < MOST else known[2]
            self._strays[c] = known[0] + cells, [*known[1], *(rows_before + row + 2 for row in rows)][:SHOWN], words_so_far

    def remarks(self) -> tuple[Remark, ...]:
        strays = [
            Remark("strays", self._names[c], cells, len(words), tuple(rows), tuple(sorted(words)[:SHOWN]))
            for c, (cells, rows, words) in sorted(self._strays.items())
        ]
        unseen = [text for text in self._plan.missing if (text if text in self._plan.texts else float(text)) not in self._seen]
        return (*strays, *(Remark("unseen", "", values=(text,)) for text in unseen))


def check_numeric(columns: Sequence[Column], remarks: Sequence[Remark]) -> None:
    """Refuse a column that was to hold numbers and has none."""
    strays = {remark.column for remark in remarks if remark.kind == "strays"}
    for column in columns:
        if column.name in strays and column.missing == len(column):
            raise Rejected(f"no cell of the column {named(column.name)} is a number", column=column.name, choice="numeric")
