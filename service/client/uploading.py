"""A table's bytes on their way out: read from disk as they are sent, and from their beginning for every attempt."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import IO

BLOCK = 1 << 18
Table = bytes | str | PathLike[str] | IO[bytes]  # the bytes themselves, a file's path, or a file that is open


class Upload:
    """What httpx sends block by block. A pipe has no length and cannot be read twice: it is sent once."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.repeats = file, file.seekable()
        self.begin = file.tell() if self.repeats else 0

    @property
    def headers(self) -> dict[str, str]:
        kind = {"Content-Type": "application/octet-stream"}  # the server tells by how the bytes begin what they are
        return kind | {"Content-Length": str(self.file.seek(0, io.SEEK_END) - self.begin)} if self.repeats else kind

    def __iter__(self) -> Iterator[bytes]:
        if self.repeats:
            self.file.seek(self.begin)
        while block := self.file.read(BLOCK):
            yield block


@contextmanager
def opened(table: Table) -> Iterator[Upload]:
    if isinstance(table, (str, PathLike)):
        with open(table, "rb") as file:
            yield Upload(file)
    elif isinstance(table, bytes):
        yield Upload(io.BytesIO(table))
    elif isinstance(table, io.TextIOBase) or not hasattr(table, "read"):
        raise TypeError(f"a table is a path, bytes or a file that is open for bytes, not {type(table).__name__}")
    else:
        yield Upload(table)
