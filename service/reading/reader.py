"""Bytes as they come, in pieces of any size, to a table; what they hold is told by how they begin."""

import csv
import gzip
import io
import os
import zlib

import numpy as np

from service.reading.columns import Column, Columns, numbers_column, words_column
from service.reading.limits import Limits, Rejected, too_many_bytes, too_many_categories, too_many_columns, too_many_rows


class Reader:
    """Takes a file's bytes as they arrive and gives the table; Rejected as soon as it cannot be one."""

    def __init__(self, limits: Limits | None = None, folder: str | None = None) -> None:
        self.limits = limits or Limits()
        self.folder = folder
        self._parts = bytearray()

    def feed(self, data: bytes | memoryview) -> None:
        self._parts += data
        if len(self._parts) > self.limits.bytes:
            raise too_many_bytes(self.limits.bytes)

    def finish(self) -> Columns:
        data = bytes(self._parts)
        try:
            if data.startswith(b"\x1f\x8b"):
                data = gzip.decompress(data)
            text = data.decode("utf-8-sig")
            rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
        except (csv.Error, ValueError, OSError, EOFError, zlib.error) as error:
            raise Rejected(f"this cannot be read as CSV: {error}") from None
        return _typed(rows, self.limits)

    def close(self) -> None:
        self._parts.clear()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_file(path: str | os.PathLike[str], limits: Limits | None = None) -> Columns:
    """The table in a file: CSV, gzipped CSV or Parquet."""
    with Reader(limits) as reader, open(path, "rb") as file:
        try:
            while part := file.read(1024 * 1024):
                reader.feed(part)
            return reader.finish()
        except Rejected as error:
            raise ValueError(f"{path}: {error}") from None


def _typed(rows: list[list[str]], limits: Limits) -> Columns:
    header = [name.strip() for name in rows[0]] if rows else []
    if not header or not all(header):
        raise Rejected("the first line must name every column", row=1)
    if len(header) > limits.columns:
        raise too_many_columns(limits.columns)
    for i, name in enumerate(header):
        if name in header[:i]:
            raise Rejected(f"the column {name!r} is there more than once: give each a name of its own", row=1, column=name)
    if len(rows) < 2:
        raise Rejected("there are no rows below the first line")
    if len(rows) - 1 > limits.rows:
        raise too_many_rows(limits.rows)
    for number, cells in enumerate(rows, 1):
        if len(cells) != len(header):
            raise Rejected(f"row {number:,} has {len(cells):,} cells, the first line {len(header):,}", row=number)
    return Columns.of([_column(name, [row[i].strip() for row in rows[1:]], limits) for i, name in enumerate(header)])


def _column(name: str, cells: list[str], limits: Limits) -> Column:
    try:
        numbers = np.array([float(cell) if cell else np.nan for cell in cells])
        if not np.isinf(numbers).any():
            return numbers_column(name, numbers)
    except ValueError:
        pass
    words = sorted({cell for cell in cells if cell})
    if len(words) > limits.categories:
        raise too_many_categories(name, limits.categories)
    code = {word: i for i, word in enumerate(words)}
    return words_column(name, words, np.array([code.get(cell, -1) for cell in cells]))
