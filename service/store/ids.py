"""UUIDv7: ids that sort by the time they were made (RFC 9562)."""

import os
import time
from uuid import UUID


def new_id() -> UUID:
    """48 bits of Unix milliseconds, 12 of their fraction, then 62 random bits: in order within a process, down to a quarter microsecond.

    Examples
    --------
    >>> new_id().version
    7
    >>> new_id() < new_id()
    True
    """
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = rest * 4096 // 1_000_000
    random = int.from_bytes(os.urandom(8)) >> 2
    return UUID(int=(milliseconds & ((1 << 48) - 1)) << 80 | 7 << 76 | fraction << 64 | 2 << 62 | random)
