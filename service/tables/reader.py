"""Bytes as they come, in pieces of any size, to a table; what they hold is told by how they begin."""

import os
from typing import Protocol

from frugal.service.tables import gzips
from frugal.service.tables.choices import Choices
from frugal.service.tables.columns import Columns
from frugal.service.tables.csvs import CsvReader
from frugal.service.tables.gzips import Gunzip
from frugal.service.tables.limits import Limits, Rejected, too_many_bytes
from frugal.service.tables.parquets import ParquetReader

PIECE = 1024 * 1024
PARQUET, ZIP = b"PAR1", b"PK\x03\x04"
# A person's own files on their own machine: only what memory could not hold anyway.
LOCAL = Limits(bytes=2**40, rows=2**31 - 1, columns=2**16, categories=1_000_000, field=2**20, memory=2**36, words=2**30)


class Format(Protocol):
    """One way to write a table."""

    def feed(self, data: bytes | memoryview) -> None: ...
    def finish(self) -> Columns: ...
    def close(self) -> None: ...


class Reader:
    """Takes a file's bytes as they arrive and gives the table; Rejected as soon as it cannot be one.

    Examples
    --------
    >>> with Reader() as reader:
    ...     reader.feed(b"age,sex\\n63,fem")
    ...     reader.feed(b"ale\\n,male\\n")
    ...     table = reader.finish()
    >>> table["age"].tolist(), table["sex"].tolist()
    ([63.0, None], ['female', 'male'])
    """

    def __init__(self, limits: Limits | None = None, folder: str | None = None, choices: Choices | None = None) -> None:
        self._limits = limits or Limits()
        self._choices = choices or Choices()
        self._folder = folder
        self._start = b""
        self._gunzip: Gunzip | None = None
        self._format: Format | None = None
        self._bytes = 0

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes, as many as there are; from one thread at a time."""
        if self._gunzip is None and self._format is None:
            self._start += bytes(data)
            if len(self._start) < len(PARQUET):
                return
            data, self._start = self._start, b""
            if data.startswith(gzips.MAGIC):
                self._gunzip = Gunzip()
        self._pass_on(data)

    def finish(self) -> Columns:
        """The table, once all bytes are in."""
        if self._gunzip is not None:
            self._gunzip.finish()
        if self._format is None:
            short, self._start = self._start, b""
            self._take(short, last=True)
        assert self._format is not None
        return self._format.finish()

    def close(self) -> None:
        """Let go of threads and temporary files; may be called again."""
        if self._format is not None:
            self._format.close()
        self._start = b""

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pass_on(self, data: bytes | memoryview) -> None:
        if self._gunzip is None:
            self._take(data)
            return
        for piece in self._gunzip.feed(data):
            self._take(piece)

    def _take(self, data: bytes | memoryview, last: bool = False) -> None:
        """Unpacked bytes, within the limit."""
        self._bytes += len(data)
        if self._bytes > self._limits.bytes:
            raise too_many_bytes(self._limits.bytes)
        if self._format is None:
            self._start += bytes(data)
            if len(self._start) < len(PARQUET) and not last:
                return
            data, self._start = self._start, b""
            self._format = self._chosen(data)
        self._format.feed(data)

    def _chosen(self, start: bytes) -> Format:
        if self._gunzip is not None and start.startswith((gzips.MAGIC, PARQUET)):
            raise Rejected("a gzip file that holds a gzip or Parquet file: send what is in it")
        if start.startswith(ZIP):
            raise Rejected("a zip file or a spreadsheet: save the table as CSV, and send that, gzipped or not")
        if start.startswith(PARQUET):
            return ParquetReader(self._limits, self._folder, self._choices)
        return CsvReader(self._limits, self._choices)


def read_file(path: str | os.PathLike[str], limits: Limits | None = None, choices: Choices | None = None) -> Columns:
    """The table in a file, CSV, gzipped CSV or Parquet; ValueError with the path and what is wrong."""
    with Reader(limits or LOCAL, choices=choices) as reader, open(path, "rb") as file:
        try:
            while part := file.read(PIECE):
                reader.feed(part)
            return reader.finish()
        except Rejected as error:
            raise ValueError(f"{path}: {error.local or error}") from None
