"""Works that start at the same moment, in threads of their own."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from frugal.service.errors import Problem


def at_once(works: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each gave, in their order: its result, or the problem it was told. Any other exception is the test's to fail on."""
    start = threading.Barrier(len(works))

    def begin(work: Callable[[], Any]) -> Any:
        start.wait()
        try:
            return work()
        except Problem as problem:
            return problem

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(begin, works))


def slugs(outcomes: Sequence[Any]) -> list[str]:
    """The problems among them, by name."""
    return sorted(outcome.slug for outcome in outcomes if isinstance(outcome, Problem))
