"""CSV files, plain or gzipped, as columns that learners take."""

import csv
import gzip
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Columns:
    """A table by columns: what learners need of a data frame."""

    columns: list[str]
    values: dict[str, NDArray[Any]]

    @property
    def shape(self) -> tuple[int, int]:
        return (len(self.values[self.columns[0]]) if self.columns else 0, len(self.columns))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.values[name]

    def __len__(self) -> int:
        return self.shape[0]

    def only(self, names: Sequence[str]) -> "Columns":
        lacking = [name for name in names if name not in self.values]
        if lacking:
            raise ValueError(
                f"the table has no column {', '.join(map(repr, lacking[:12]))}: its columns are {', '.join(self.columns[:40])}"
            )
        return Columns(list(names), {name: self.values[name] for name in names})

    def rows(self, which: NDArray[Any]) -> "Columns":
        return Columns(self.columns, {name: column[which] for name, column in self.values.items()})


def read_csv(path: str | os.PathLike[str]) -> Columns:
    """A table with a header line; an empty cell is missing, a column whose cells are all numbers is numeric."""
    try:
        lines = _lines(path)
        header = [name.strip() for name in next(lines, [])]
        if not header or not all(header):
            raise ValueError(f"{path}: the first line must name every column")
        repeated = [name for i, name in enumerate(header) if name in header[:i]]
        if repeated:
            raise ValueError(f"{path}: the column {repeated[0]!r} is there more than once")
        rows = [cells for cells in lines if cells]
        for number, cells in enumerate(rows, 2):
            if len(cells) != len(header):
                raise ValueError(f"{path}: row {number} has {len(cells)} cells, the first line {len(header)}")
    except (csv.Error, UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from None
    if not rows:
        raise ValueError(f"{path}: no rows below the first line")
    return Columns(header, {name: _typed([cells[i] for cells in rows]) for i, name in enumerate(header)})


def _lines(path: str | os.PathLike[str]) -> Iterator[list[str]]:
    opened: Any = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        yield from csv.reader(file, strict=True)


def _typed(cells: list[str]) -> NDArray[Any]:
    try:
        numbers = np.array([float(cell) if cell.strip() else np.nan for cell in cells])
    except ValueError:
        numbers = None
    if numbers is not None and not np.isinf(numbers).any():
        return numbers
    words = np.empty(len(cells), object)
    words[:] = [cell.strip() or None for cell in cells]
    return words
