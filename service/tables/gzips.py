"""gzip as it arrives, unpacked in pieces of bounded size: a small file that unpacks to a large one never stands in memory."""

import zlib
from collections.abc import Iterator

from frugal.service.tables.limits import Rejected

PIECE = 1024 * 1024
SLICE = 64 * 1024  # bytes taken at a time: what follows a member is copied once for each that ends there
MOST_MEMBERS, SMALLEST_MEMBER = 10_000, 1024  # so many members of any size; more if they hold so many bytes on average
MAGIC = b"\x1f\x8b"
DAMAGED = "the gzip file is damaged: pack or copy it again"


class Gunzip:
    """Unpacks one or several gzip members, one after the other; zeros behind the last are padding."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None
        self._between = b""  # what stands after a member, until it is known whether another begins
        self._members = 0
        self._unpacked = 0

    def feed(self, data: bytes | memoryview) -> Iterator[bytes]:
        """What can be unpacked so far, in pieces; Rejected at the first damage."""
        view = memoryview(data)
        for start in range(0, len(view), SLICE):
            yield from self._feed(view[start : start + SLICE])

    def _feed(self, rest: bytes | memoryview) -> Iterator[bytes]:
        while len(rest):
            if self._member is None:
                rest = self._next_member(bytes(rest))
                continue
            try:
                piece = self._member.decompress(rest, PIECE)
            except zlib.error:
                raise Rejected(DAMAGED) from None
            rest = self._member.unconsumed_tail
            if self._member.eof:
                rest, self._member = self._member.unused_data, None
            if piece:
                self._unpacked += len(piece)
                yield piece

    def _next_member(self, data: bytes) -> bytes:
        data = self._between + data
        if self._members:
            data = data.lstrip(b"\0")
        if len(data) < len(MAGIC) and MAGIC.startswith(data):
            self._between = data
            return b""
        if not data.startswith(MAGIC):
            raise Rejected("there is something behind the end of the gzip file: pack or copy it again")
        self._between = b""
        self._members += 1
        if self._members > MOST_MEMBERS + self._unpacked // SMALLEST_MEMBER:
            raise Rejected("the gzip file has thousands of members with next to nothing in them: pack the table as one", limit=MOST_MEMBERS)
        self._member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        return data

    def finish(self) -> None:
        if self._member is not None or self._between:
            raise Rejected("the gzip file is cut off: send all of it")
