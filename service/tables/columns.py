"""A table by columns, typed and small: what learners need of a data frame."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import LONGEST_NAME
from frugal.models.schema import CATEGORICAL, NUMERIC
from frugal.models.table import CLASSES, Coded, why_continuous, why_no_class
from frugal.service.tables.choices import is_number
from frugal.service.tables.remarks import Remark

WHOLE = tuple(np.dtype(kind) for kind in ("u1", "i1", "u2", "i2", "i4"))  # the smallest that fits is taken


@dataclass(frozen=True)
class Column:
    """One column.

    Numbers stand in the smallest type that holds them exactly, as floats with nan where some are missing; words as codes into `categories`,
    which are in order, with -1 where a row has none. `low` and `high` are the range of the numbers.
    """

    name: str
    kind: Literal["numeric", "categorical"]
    values: NDArray[Any]
    categories: tuple[str, ...]
    missing: int
    low: float | None = None
    high: float | None = None

    @property
    def coded(self) -> Coded | None:
        """Words as learners take them; None for numbers, which are taken as an array."""
        return Coded(self.categories, self.values) if self.kind == CATEGORICAL else None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: Any) -> Any:
        """The value of one row, None where it is missing; or an array of those of several."""
        if isinstance(row, (int, np.integer)):
            return self.tolist(slice(row, row + 1 or None))[0]
        return np.asarray(replace(self, values=self.values[row]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        plain = self.values if self.kind == NUMERIC else np.asarray(self.coded)
        return np.array(plain, dtype) if copy else np.asarray(plain, dtype)

    def tolist(self, rows: slice = slice(None)) -> list[Any]:
        """Plain Python values; None where a row has none."""
        values = self.values[rows].tolist()
        if self.kind == CATEGORICAL:
            return [self.categories[code] if code >= 0 else None for code in values]
        return [value if value == value else None for value in values]

    def rows(self, which: NDArray[Any]) -> "Column":
        """Some of the rows, in the same type and with the same categories."""
        values = self.values[which]
        missing = 0 if not self.missing else int((values < 0).sum() if self.kind == CATEGORICAL else np.isnan(values).sum())
        if self.kind == CATEGORICAL:
            return replace(self, values=values, missing=missing)
        low, high = number_range(values, missing)
        return replace(self, values=values, missing=missing, low=low, high=high)

    def describe(self) -> dict[str, Any]:
        """What JSON can hold: no values, no nan."""
        words = self.kind == CATEGORICAL
        return {
            "name": self.name,
            "kind": self.kind,
            "missing": self.missing,
            "distinct": len(self.categories) if words else None,
            "categories": list(self.categories) if words else None,
            "low": self.low,
            "high": self.high,
        }


@dataclass(frozen=True)
class Columns:
    """A table: its columns by name, in order; and of its reading, `remarks` on what was made missing, and the names that were left out."""

    by_name: dict[str, Column]
    remarks: tuple[Remark, ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Sequence[Column]) -> "Columns":
        return cls({column.name: column for column in columns})

    @property
    def columns(self) -> list[str]:
        return list(self.by_name)

    @property
    def shape(self) -> tuple[int, int]:
        return (len(next(iter(self.by_name.values()))) if self.by_name else 0, len(self.by_name))

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __getitem__(self, name: str) -> Column:
        return self.by_name[name]

    def only(self, names: Sequence[str]) -> "Columns":
        lacking = [name for name in names if name not in self.by_name]
        if lacking:
            raise ValueError(
                f"the table has no column {', '.join(map(repr, lacking[:12]))}: its columns are {', '.join(self.columns[:40])}"
            )
        return Columns({name: self.by_name[name] for name in names})

    def rows(self, which: NDArray[Any]) -> "Columns":
        return Columns({name: column.rows(which) for name, column in self.by_name.items()})

    def labels(self, name: str) -> NDArray[np.str_]:
        """A column as labels: text, whole numbers without a point. ValueError where they are no classes."""
        column = self.only([name])[name]
        if column.missing:
            raise ValueError(f"{column.missing:,} rows have no {name!r}: every row needs a label")
        if column.kind == CATEGORICAL:
            words, index = list(column.categories), column.values
            if why := why_amounts(words, len(column)):
                raise ValueError(f"{name!r} cannot be the label: its values {why}. {CLASSES}")
            if why := why_no_class(len(words), len(column)):
                raise ValueError(f"{name!r} {why}")
        else:
            numbers, index = np.unique(column.values, return_inverse=True)
            if why := why_continuous(len(numbers), len(column), bool((numbers == np.rint(numbers)).all())):
                raise ValueError(f"{name!r} cannot be the label: its values {why}. {CLASSES}")
            words = [str(int(number)) for number in numbers]
        if any(len(word) > LONGEST_NAME for word in words):
            raise ValueError(f"{name!r} has labels of more than {LONGEST_NAME} characters: labels are the names of classes")
        labels: NDArray[np.str_] = np.array(words, np.str_)[index]
        return labels

    def describe(self) -> list[dict[str, Any]]:
        return [column.describe() for column in self.by_name.values()]


def why_amounts(words: Sequence[str], rows: int) -> str | None:
    """What tells that words are a regression target with a few words among its numbers; None where they may be classes.

    Examples
    --------
    >>> why_amounts([*map(str, range(300)), "unknown"], 900)
    'are 300 different numbers in 900 rows, as a regression target has, and a few words'
    """
    numbers = sum(map(is_number, words))
    why = why_continuous(numbers, rows, whole=True) if 2 * numbers > len(words) else None
    return why and f"{why}, and a few words"


def numbers_column(name: str, numbers: NDArray[np.float64]) -> Column:
    """A column of floats, nan where they are missing, made as small as is exact."""
    missing = int(np.isnan(numbers).sum())
    low, high = number_range(numbers, missing)
    return Column(name, NUMERIC, _small(numbers, missing, low, high), (), missing, low, high)


def numeric_column(name: str, values: NDArray[Any], missing: int, low: float | None, high: float | None) -> Column:
    """A column of numbers that are in their smallest type already."""
    return Column(name, NUMERIC, values, (), missing, low, high)


def words_column(name: str, categories: Sequence[str], codes: NDArray[Any]) -> Column:
    """A column of codes into words, -1 where missing; the words are put in order."""
    order = sorted(range(len(categories)), key=categories.__getitem__)
    place = np.full(len(categories) + 1, -1, smallest(-1, len(categories) - 1))
    place[order] = np.arange(len(categories))
    values = place[codes]  # the last one, -1, stands for missing
    return Column(name, CATEGORICAL, values, tuple(categories[k] for k in order), int((values < 0).sum()))


def smallest(low: float, high: float) -> np.dtype[Any]:
    """The smallest type of whole numbers that holds both; floats where none does."""
    for kind in WHOLE:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return kind
    return np.dtype("f8")


def number_range(numbers: NDArray[Any], missing: int) -> tuple[float | None, float | None]:
    """The least and greatest of numbers of which so many are nan; None where there are no others."""
    if missing == len(numbers):
        return None, None
    low, high = (np.nanmin(numbers), np.nanmax(numbers)) if missing else (numbers.min(), numbers.max())
    return float(low), float(high)


def _small(numbers: NDArray[np.float64], missing: int, low: float | None, high: float | None) -> NDArray[Any]:
    if not missing and low is not None and high is not None:
        kind = smallest(low, high)
        if kind.kind in "iu" and not np.signbit(numbers[numbers == 0]).any():
            whole = numbers.astype(kind)
            if (whole == numbers).all():
                return whole
    with np.errstate(over="ignore"):
        half = numbers.astype(np.float32)
    return half if ((half == numbers) | np.isnan(numbers)).all() else numbers
