"""gzip as it arrives, unpacked in pieces of bounded size: a small file that unpacks to a large one never stands in memory."""

import zlib
from collections.abc import Iterator

from service.reading.limits import Rejected

PIECE = 1024 * 1024
MAGIC = b"\x1f\x8b"
DAMAGED = "the gzip file is damaged: pack or copy it again"


class Gunzip:
    """Unpacks one or several gzip members, one after the other; zeros behind the last are padding."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None
        self._between = b""  # what stands after a member, until it is known whether another begins
        self._members = 0

    def feed(self, data: bytes | memoryview) -> Iterator[bytes]:
        """What can be unpacked so far, in pieces; Rejected at the first damage."""
        rest: bytes | memoryview = data
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
        self._member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        return data

    def finish(self) -> None:
        if self._member is not None or self._between:
            raise Rejected("the gzip file is cut off: send all of it")
