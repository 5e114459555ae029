"""UUIDv7: ids that sort by the time they were made (RFC 9562)."""

import os
import time
from uuid import UUID


def new_id() -> UUID:
    """48 bits of Unix milliseconds, then 74 random bits.

    Examples
    --------
    >>> new_id().version
    7
    """
    random = int.from_bytes(os.urandom(10))
    stamp = (time.time_ns() // 1_000_000) & ((1 << 48) - 1)
    return UUID(int=stamp << 80 | 7 << 76 | (random >> 68 & 0xFFF) << 64 | 2 << 62 | random & ((1 << 62) - 1))
