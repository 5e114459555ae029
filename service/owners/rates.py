"""Requests per second per key: a bucket of tokens each, refilled as time goes by, in this process."""

import time
from collections import OrderedDict
from collections.abc import Callable
from uuid import UUID

MOST = 10_000  # buckets kept; the longest unused goes first, and would be full again by then


class Rates:
    """At most `rate` requests per second per key, and twice that at once after a pause.

    Examples
    --------
    >>> clock = iter([0.0, 0.0, 0.0, 0.0, 0.5]).__next__
    >>> rates = Rates(2, clock)
    >>> [rates.allows("key") for _ in range(5)]
    [True, True, True, True, True]
    >>> rates = Rates(2, iter([0.0] * 5).__next__)
    >>> [rates.allows("key") for _ in range(5)]
    [True, True, True, True, False]
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._clock = clock
        self._buckets: OrderedDict[UUID | str, tuple[float, float]] = OrderedDict()

    def allows(self, key: UUID | str) -> bool:
        at = self._clock()
        tokens, before = self._buckets.get(key, (2 * self.rate, at))
        tokens = min(2 * self.rate, tokens + (at - before) * self.rate)
        allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if allowed else tokens, at)
        self._buckets.move_to_end(key)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)
        return allowed
