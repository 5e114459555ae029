"""Connections to PostgreSQL are lent in order, to so many and no more."""

import asyncio
from collections.abc import Iterator

import pytest

from frugal.service.address import Address
from frugal.service.errors import Busy
from frugal.service.sessions.pool import Pool
from tests.databases import PostgresServer


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with postgres.fresh() as url:
        yield url


def test_past_its_limit_nobody_else_waits(url: str) -> None:
    async def main() -> None:
        pool = Pool(Address.read(url), 1, most=2)
        order: list[str] = []

        async def ask(name: str, seconds: float, first: bool = False) -> None:
            await pool.fetchval("SELECT pg_sleep($1)", seconds, first=first)
            order.append(name)

        await ask("connect", 0.0)
        asked = [asyncio.create_task(ask(name, 0.3)) for name in ("working", "second", "third")]
        await asyncio.sleep(0.1)
        assert pool.waiting == 2
        with pytest.raises(Busy):
            await ask("late", 0.0)
        await ask("readiness", 0.0, first=True)  # before those who wait, and beyond the limit
        await asyncio.gather(*asked)
        assert order == ["connect", "working", "readiness", "second", "third"]
        assert pool.waiting == 0
        await ask("later", 0.0)
        await pool.close()

    asyncio.run(main())
