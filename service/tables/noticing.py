"""Columns that are seldom meant as they are: names of cases, dates, constants, numbers with a few words among them."""

import re
from collections.abc import Iterable

import numpy as np

from frugal.models.schema import CATEGORICAL
from frugal.service.tables.choices import is_number
from frugal.service.tables.columns import Column, Columns
from frugal.service.tables.remarks import SHOWN, Remark

FEWEST = 20  # rows; in fewer, anything may be chance
OTHERS = 0.95  # of the rows, from which on words that differ are names
SELDOM = 0.05  # of the cells, up to which any words among numbers are strays; more of them if they are few different ones
DAY, TIME = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", r"\d{1,2}:\d\d(:\d\d(\.\d+)?)?( ?[ap]m)?( ?(z|utc|[+-]\d\d:?\d\d))?"
MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
DATE = re.compile(rf"({DAY}|\d{{1,2}}[ -]{MONTH}[ -]\d{{2,4}}|{MONTH} \d{{1,2}},? \d{{4}})([ t]{TIME})?", re.IGNORECASE)
TRIED = 50  # words, before all of them are


def notice(table: Columns, label: str | None = None) -> list[Remark]:
    """What is remarkable about a table, column by column, beginning with what was while it was read; the label is judged elsewhere."""
    columns = [column for column in table.by_name.values() if column.name != label]
    return [*table.remarks, *(remark for column in columns if (remark := _remark(column)))]


def _remark(column: Column) -> Remark | None:
    if column.missing == len(column):
        return Remark("empty", column.name)
    return _words(column) if column.kind == CATEGORICAL else _numbers(column)


def _words(column: Column) -> Remark | None:
    rows = len(column) - column.missing
    if len(column.categories) == 1:
        return Remark("constant", column.name) if not column.missing and rows > 1 else None
    if _all_dates(column.categories):
        return Remark("dates", column.name)
    strays = _strays(column)
    if strays is not None:
        return strays
    names = rows >= FEWEST and len(column.categories) >= OTHERS * rows
    return Remark("words", column.name, rows, len(column.categories)) if names else None


def _all_dates(words: Iterable[str]) -> bool:
    listed = list(words)
    return all(DATE.fullmatch(word) for word in listed[:TRIED]) and all(DATE.fullmatch(word) for word in listed)


def _strays(column: Column) -> Remark | None:
    """Words among numbers, so few that somebody may not know of them."""
    stray = np.array([not is_number(word) for word in column.categories])
    different = int(stray.sum())
    if not different or 2 * different > len(stray):
        return None
    rows = np.flatnonzero(np.append(stray, False)[column.values])
    there = len(column) - column.missing
    if len(rows) > SELDOM * there and (different > SHOWN or 2 * len(rows) > there):
        return None
    values = tuple(word for word, is_stray in zip(column.categories, stray, strict=True) if is_stray)[:SHOWN]
    return Remark("mixed", column.name, len(rows), different, tuple((rows[:SHOWN] + 2).tolist()), values)


def _numbers(column: Column) -> Remark | None:
    assert column.low is not None
    assert column.high is not None
    if column.missing:
        return None
    if column.low == column.high:
        return Remark("constant", column.name) if len(column) > 1 else None
    whole = column.values.dtype.kind != "f" or bool((column.values == np.rint(column.values)).all())
    if not whole or len(column) < FEWEST:
        return None
    if _are_days(column):
        return Remark("dates", column.name)
    return Remark("counter", column.name, len(column), len(column)) if _counts(column) else None


def _are_days(column: Column) -> bool:
    """Whole numbers written as 20261116."""
    if not (19_000_101 <= column.low <= column.high <= 21_001_231):  # type: ignore[operator]  # it has numbers
        return False
    days = column.values.astype(np.int64)
    month, day = days // 100 % 100, days % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _counts(column: Column) -> bool:
    """Whether every whole number from the least to the greatest is there once, or each row has the one before plus the same."""
    values = column.values.astype(np.int64) if abs(column.low) < 2**53 > abs(column.high) else None  # type: ignore[arg-type]
    if values is None:
        return False
    steps = np.diff(values)
    if (steps == steps[0]).all():
        return True
    return int(column.high - column.low) + 1 == len(values) and len(np.unique(values)) == len(values)  # type: ignore[operator]
