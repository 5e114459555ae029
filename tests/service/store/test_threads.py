"""Threads with a queue that ends: who comes too late is told at once, and nothing that was told so is done."""

import asyncio
import threading

import pytest

from frugal.service.errors import Busy, DatabaseAway
from frugal.service.store import threads
from frugal.service.store.threads import Threads, compute, within


def held(pool: Threads) -> threading.Event:
    """Keep its one thread busy until the event is set."""
    begun, release = threading.Event(), threading.Event()
    pool.submit(lambda: (begun.set(), release.wait(30)))
    assert begun.wait(10)
    return release


def test_past_its_limit_a_queue_takes_no_more() -> None:
    pool, done = Threads(1, "test", most=2), []
    release = held(pool)

    async def main() -> None:
        waiting = [asyncio.create_task(within(30, pool, lambda i=i: done.append(i))) for i in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await within(30, pool, lambda: done.append(9))
        release.set()
        await asyncio.gather(*waiting)
        await within(30, pool, lambda: done.append(2))

    asyncio.run(main())
    assert (done, pool.waiting) == ([0, 1, 2], 0)


def test_work_whose_turn_does_not_come_is_not_done_and_leaves_its_place() -> None:
    pool, done = Threads(1, "test", most=1), []
    release = held(pool)

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(Busy):
                await within(0.05, pool, lambda: done.append(1))
        assert pool.waiting == 0
        leaver = asyncio.create_task(within(30, pool, lambda: done.append(2)))
        await asyncio.sleep(0.05)
        leaver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaver
        assert pool.waiting == 0
        release.set()
        await within(30, pool, lambda: done.append(3))

    asyncio.run(main())
    assert done == [3]


def test_work_that_has_begun_and_does_not_end_is_a_database_that_is_away() -> None:
    pool, release = Threads(1, "test"), threading.Event()

    async def main() -> None:
        with pytest.raises(DatabaseAway):
            await within(0.05, pool, lambda: release.wait(30))

    asyncio.run(main())
    release.set()


def test_computing_may_take_longer_than_waiting_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, release = Threads(1, "test"), threading.Event()
    monkeypatch.setattr(threads, "COMPUTE", pool)
    monkeypatch.setattr(threads, "PATIENCE", 0.05)

    async def main() -> None:
        long = asyncio.create_task(compute(lambda: release.wait(30)))
        await asyncio.sleep(0.01)
        with pytest.raises(Busy):
            await compute(lambda: None)
        release.set()
        assert await long is True

    asyncio.run(main())
    assert pool.waiting == 0
