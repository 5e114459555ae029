"""What parent and child say to each other over pipes: a letter, a length, and bytes."""

import json
import struct
from collections.abc import Mapping
from typing import IO, Any

HEAD = struct.Struct("<cQ")
JOB, PROGRESS, ABOUT, ARCHIVE, DONE, FAILED = b"J", b"P", b"D", b"A", b"E", b"F"


def send(pipe: IO[bytes], kind: bytes, payload: bytes | Mapping[str, Any] = b"") -> None:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    pipe.write(HEAD.pack(kind, len(data)))
    pipe.write(data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[bytes, bytes] | None:
    """The next frame, or None at the end."""
    head = pipe.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    kind, length = HEAD.unpack(head)
    data = pipe.read(length)
    return (kind, data) if len(data) == length else None
