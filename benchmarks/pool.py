"""Our pool of connections to PostgreSQL beside asyncpg's own, which is not asked to reset connections: one statement at a time, as the
ledger has it.

    python benchmarks/pool.py [--rounds 9] [--statements 5000]

Processor time of this process per statement, and the clock's, with 16 tasks on 8 connections; medians of interleaved rounds.
The last line is JSON.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import asyncpg
import uvloop

from frugal.service.address import Address
from frugal.service.sessions.pool import Pool
from tests.databases import PostgresServer

TASKS, SIZE = 16, 8
STATEMENT = "SELECT status, spent FROM sessions WHERE id = '00000000-0000-0000-0000-000000000000'"
Fetch = Callable[[str], Awaitable[Any]]


async def one_round(fetch: Fetch, statements: int) -> tuple[float, float]:
    """Microseconds per statement: the processor's and the clock's."""

    async def ask() -> None:
        for _ in range(statements // TASKS):
            await fetch(STATEMENT)

    used, begun = time.process_time(), time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(TASKS)))
    scale = 1e6 / (statements // TASKS * TASKS)
    return scale * (time.process_time() - used), scale * (time.perf_counter() - begun)


async def compare(url: str, rounds: int, statements: int) -> dict[str, Any]:
    ours = Pool(Address.read(url), SIZE)
    theirs = await asyncpg.create_pool(url, min_size=SIZE, max_size=SIZE, reset=None)
    ways: dict[str, Fetch] = {"ours": ours.fetchrow, "asyncpg": theirs.fetchrow}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, fetch in ways.items():
            found[name].append(await one_round(fetch, statements))
    await ours.close()
    await theirs.close()
    report: dict[str, Any] = {}
    for name, taken in found.items():
        report[f"{name}_processor_us"], report[f"{name}_us"] = (round(median(column), 1) for column in zip(*taken[1:], strict=True))
        print(
            f"{name:8} {report[f'{name}_processor_us']:6.1f} us of processor time a statement, {report[f'{name}_us']:6.1f} us by the clock"
        )
    report["ratio"] = round(report["ours_processor_us"] / report["asyncpg_processor_us"], 2)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--statements", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = PostgresServer(Path(folder) / "data")
        try:
            with server.fresh() as url:
                print(json.dumps(uvloop.run(compare(url, options.rounds, options.statements))))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
