"""The process that reads one Parquet file and writes it packed: python -m frugal.service.tables.parquet_child SOURCE TARGET SAID ASKED.

It ends with DONE, a packed table in TARGET and what else is known of it as JSON in SAID, or with REFUSED and a refusal there; any other
end means that the file is to blame.
"""

import json
import os
import resource
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from frugal.service.tables.blanks import Blanked, Tallied, check_numeric
from frugal.service.tables.choices import Choices, Plan, is_number, planned
from frugal.service.tables.columns import Column, Columns, numbers_column, words_column
from frugal.service.tables.csvs import check_names
from frugal.service.tables.limits import (
    Limits,
    Rejected,
    field_too_long,
    named,
    too_many_bytes,
    too_many_categories,
    too_many_rows,
    too_much_memory,
)
from frugal.service.tables.packing import pack
from frugal.service.tables.parquets import DAMAGED, DONE, REFUSED
from frugal.service.tables.remarks import SHOWN
from frugal.service.tables.tally import Tally

BATCH = 65_536  # rows
SPARE = 512 * 1024 * 1024  # memory beyond what the file's summary accounts for
EMPTY = 4  # bytes of a cell of a column with nothing in it, which takes none in the file
SECONDS = 600  # of processor time


def main() -> int:
    source, target, said = (int(number) for number in sys.argv[1:4])
    asked = json.loads(sys.argv[4])
    limits, choices = Limits(**asked["limits"]), Choices(**asked["choices"])
    with os.fdopen(source, "rb") as file, os.fdopen(target, "wb") as out, os.fdopen(said, "w") as words:
        try:
            table = read_parquet(file, limits, choices)
            _write(out, table)
            json.dump({"remarks": [asdict(remark) for remark in table.remarks], "left_out": table.left_out}, words)
            return DONE
        except Rejected as error:
            refusal = {name: getattr(error, name) for name in ("message", "row", "column", "limit", "too_large", "choice", "local")}
        except Exception:  # whatever damage makes the library raise
            refusal = {"message": DAMAGED}
        json.dump(refusal, words)
        return REFUSED


def _write(out: Any, columns: Columns) -> None:
    try:
        out.writelines(pack(columns))
    except ValueError as error:  # more names than a header holds: nothing is damaged
        raise Rejected(str(error)) from None


def read_parquet(file: Any, limits: Limits, choices: Choices | None = None) -> Columns:
    """The table in an open file, column by column."""
    pa.set_cpu_count(1)
    schema = pq.ParquetFile(file).schema_arrow
    names = [name.strip() for name in schema.names]
    check_names(names, limits)
    plan = planned(choices or Choices(), names)
    fields = [field for field, taken in zip(schema, plan.taken, strict=True) if taken]
    for field in fields:
        _check_type(field)
    words = [field.name for field in fields if _is_text(field.type)]
    table = pq.ParquetFile(file, read_dictionary=words)  # a word that stands a million times is read once
    _check_size(table.metadata, sum(EMPTY if pa.types.is_null(field.type) else 1 for field in fields), limits)
    tally, reading = Tally(limits), Reading(names, plan, limits)
    columns = [_tallied(_column(table, schema.field(c), c, reading), tally) for c in np.flatnonzero(plan.taken).tolist()]
    remarks = reading.blanked.remarks()
    check_numeric(columns, remarks)
    return replace(Columns.of(columns), remarks=remarks, left_out=plan.left_out)


def _tallied(column: Column, tally: Tally) -> Column:
    tally.take(column.values.nbytes)
    for word in column.categories:
        tally.add_word(column.name, word)
    return column


def _column(table: Any, field: Any, c: int, reading: "Reading") -> Column:
    name, plan = field.name.strip(), reading.plan
    batches = _batches(table, field.name, reading.limits, reading.spent)
    if plan.words[c] and not _is_words(field.type):
        batches, words = (_as_text(batch) for batch in batches), True
    else:
        words = _is_words(field.type) and not (plan.numeric[c] and pa.types.is_boolean(field.type))
    if not words:
        return _numbers_column(name, [reading.without_missing(_numbers(batch)) for batch in batches])
    found = (_words(batch, name, reading.limits, many=bool(plan.numeric[c])) for batch in batches)
    there = ((reading.words_without_missing(listed), places) for listed, places in found)
    if plan.numeric[c]:
        return _numbers_column(name, reading.as_numbers(c, there))
    return _words_column(name, there, reading.limits)


class Reading:
    """What is asked for, and what was found while it was done."""

    def __init__(self, names: list[str], plan: Plan, limits: Limits) -> None:
        self.plan, self.limits = plan, limits
        self.spent: Counter[str] = Counter()  # bytes by column
        self.blanked = Tallied(names, plan)

    def without_missing(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers without those that mean missing."""
        for number in self.plan.numbers:
            same = numbers == number
            if same.any():
                numbers = np.where(same, np.nan, numbers)
                self.blanked.add(Blanked(frozenset([number]), {}), 0)
        return numbers

    def words_without_missing(self, words: list[str | None]) -> list[str | None]:
        kept: list[str | None] = []
        for word in words:
            means = word is not None and (float(word) if is_number(word) else word)
            gone = means in self.plan.texts or means in self.plan.numbers
            if gone:
                self.blanked.add(Blanked(frozenset([means]), {}), 0)
            kept.append(None if gone else word)
        return kept

    def as_numbers(self, c: int, batches: Iterable[tuple[list[str | None], NDArray[np.int32]]]) -> list[NDArray[np.float64]]:
        """Words that are numbers; all others are strays."""
        parts, rows = [], 0
        for words, places in batches:
            stray = np.array([*(word is not None and not is_number(word) for word in words), False])
            number = np.array([*(float(word) if word is not None and is_number(word) else np.nan for word in words), np.nan])
            found = np.flatnonzero(stray[places])
            if len(found):
                odd = [word for word, is_stray in zip(words, stray, strict=False) if is_stray and word is not None]
                self.blanked.add(Blanked(frozenset(), {c: (len(found), found[:SHOWN].tolist(), odd)}), rows)
            parts.append(number[places])
            rows += len(places)
        return parts


def _as_text(batch: Any) -> Any:
    """Numbers as words: 1 for a whole number, 1.0 for a float."""
    return pa.array([None if value is None or value != value else str(value) for value in batch.to_pylist()], pa.string())


def _check_type(field: Any) -> None:
    kind, name = field.type, field.name.strip()
    if _is_words(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        return
    if pa.types.is_nested(kind):
        what = "holds lists or structures: make flat columns of it"
    elif pa.types.is_temporal(kind):
        what = "holds dates or times: make numbers of them, such as days since a day, or words"
    elif pa.types.is_decimal(kind):
        what = "holds decimals: make floats or words of them"
    else:
        what = "holds neither numbers nor text: make numbers or words of it, or leave it out"
    raise Rejected(f"the column {named(name)} {what}", column=name)


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_words(kind: Any) -> bool:
    return _is_text(kind) or bool(pa.types.is_boolean(kind))


def _check_size(about: Any, width: int, limits: Limits) -> None:
    """What the file's summary says is within limits, with rows of at least so many bytes; from here on it gets the memory for that, and
    no more."""
    if about.num_rows > limits.rows:
        raise too_many_rows(limits.rows)
    if about.num_rows < 1:
        raise Rejected("the table has no rows: send some")
    size = sum(about.row_group(g).total_byte_size for g in range(about.num_row_groups))
    if size > limits.bytes:
        raise too_many_bytes(limits.bytes)
    if about.num_rows * width > limits.memory:
        raise too_much_memory(limits.memory)
    cells = about.num_rows * about.num_columns
    columns = min(3 * max(size, 0) + 8 * cells, limits.memory)
    room = _address_space() + SPARE + columns + 64 * about.num_rows  # the last for the column that is being read
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _batches(table: Any, name: str, limits: Limits, spent: Counter[str]) -> Iterator[Any]:
    """A column's values, exactly as many as the summary says; the library gives what the pages hold, whatever it says."""
    seen = 0
    for batch in table.iter_batches(batch_size=BATCH, columns=[name], use_threads=False):
        seen += batch.num_rows
        spent[name] += batch.nbytes
        if seen > table.metadata.num_rows or batch.num_columns != 1:
            raise Rejected(DAMAGED)
        if spent.total() > limits.bytes:
            raise too_many_bytes(limits.bytes)
        batch.column(0).validate(full=True)
        yield batch.column(0)
    if seen != table.metadata.num_rows:
        raise Rejected(DAMAGED)


def _numbers(batch: Any) -> NDArray[np.float64]:
    return np.asarray(batch.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def _numbers_column(name: str, batches: list[NDArray[np.float64]]) -> Column:
    numbers = np.concatenate(batches)
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite)) + 2
        raise Rejected(
            f"the column {named(name)} has an infinity in row {row:,}: leave the cell empty or give a number", row=row, column=name
        )
    return numbers_column(name, numbers)


def _words(batch: Any, name: str, limits: Limits, many: bool = False) -> tuple[list[str | None], NDArray[np.int32]]:
    """The words of a batch, stripped, None for nothing; and the code of each row. As `many` as there are, if they will not be words."""
    if pa.types.is_boolean(batch.type):
        return ["false", "true"], np.asarray(batch.cast(pa.int8()).fill_null(-1).to_numpy(zero_copy_only=False), np.int32)
    if not pa.types.is_dictionary(batch.type):
        batch = batch.dictionary_encode()
    codes = np.asarray(batch.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    used = np.unique(codes[codes >= 0])
    if len(used) > limits.categories and not many:
        raise too_many_categories(name, limits.categories)
    words = [(word and word.strip()) or None for word in batch.dictionary.take(pa.array(used)).to_pylist()]
    if any(word is not None and len(word.encode()) > limits.field for word in words):
        raise field_too_long(limits.field, None, name)
    if any(word is not None and "\0" in word for word in words):
        raise Rejected(f"the column {named(name)} has a word with a character of zero: take it out", column=name)
    place = np.searchsorted(used, codes).astype(np.int32)
    place[codes < 0] = -1
    return words, place


def _words_column(name: str, batches: Iterable[tuple[list[str | None], NDArray[np.int32]]], limits: Limits) -> Column:
    codes: dict[str, int] = {}
    parts = []
    for words, places in batches:
        code = np.array([*(-1 if word is None else codes.setdefault(word, len(codes)) for word in words), -1], np.int32)
        parts.append(code[places])
    whole = np.concatenate(parts)
    present = np.unique(whole[whole >= 0])  # of the words of a batch of truths both need not be there
    if len(present) > limits.categories:
        raise too_many_categories(name, limits.categories)
    order = np.full(len(codes) + 1, -1, np.int32)
    order[present] = np.arange(len(present))
    every = list(codes)
    return words_column(name, [every[k] for k in present], order[whole])


if __name__ == "__main__":
    sys.exit(main())
