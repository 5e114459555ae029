"""Server-sent events, and how long a listener that has lost its server goes on looking for it."""

import json
import time
from collections.abc import Iterable, Iterator

from frugal.service.client.problems import Json
from frugal.service.client.wire import backoff

PATIENCE = 300.0  # seconds that a server which has answered before may be away
LONGEST = 5.0  # seconds between two looks for it


def parsed(parts: Iterable[bytes]) -> Iterator[Json]:
    """Events as dicts: `id`, `event`, and the fields of their data. Comments are passed over.

    Examples
    --------
    >>> list(parsed([b": hello\\n\\nid: 3\\nevent: progress\\nda", b'ta: {"fraction": 0.5}\\n\\nid: 4\\nevent: do']))
    [{'id': 3, 'event': 'progress', 'fraction': 0.5}]
    """
    fields: dict[str, str] = {}
    for line in _lines(parts):
        name, _, value = line.partition(":")
        if line and name:
            fields[name] = value.removeprefix(" ")
        elif not line and "data" in fields:
            yield {"id": int(fields["id"]), "event": fields["event"], **json.loads(fields["data"])}
            fields = {}


def _lines(parts: Iterable[bytes]) -> Iterator[str]:
    """Lines end with a line feed and nothing else: what else Unicode takes for an end may stand in the data."""
    rest = b""
    for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line.decode().removesuffix("\r")


class Patience:
    """How long to look for a server: a few times for one that was never there, for a while after it has answered once."""

    def __init__(self, attempts: int, seconds: float) -> None:
        self.attempts, self.seconds = attempts, seconds
        self.answered, self.losses, self.lost_at = False, 0, 0.0

    def connected(self) -> None:
        self.answered, self.lost_at = True, 0.0

    def heard(self) -> None:
        self.losses = 0

    def wait_after_loss(self, asked: float | None = None) -> float | None:
        """Seconds to wait before looking again, of which the server may have `asked` for some; None when it is enough."""
        self.losses += 1
        self.lost_at = self.lost_at or time.monotonic()
        gone = time.monotonic() - self.lost_at >= self.seconds if self.answered else self.losses >= self.attempts
        return None if gone else min(LONGEST, backoff(self.losses) if asked is None else asked)
