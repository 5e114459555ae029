"""Many who watch one job, in a process of their own: a connection each, on which they read its events as they come.

    python benchmarks/steps_parts/watchers.py PORT JOB COUNT

prints the statuses they got once each has one, and at the end of its input how many events they read.
"""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 120  # seconds until all have an answer


@contextmanager
def watching(port: int, job: str, count: int) -> Iterator[dict[str, int]]:
    """So many watchers, until the block is left; gives the statuses they got, and after the block `events`."""
    command = [sys.executable, str(Path(__file__)), str(port), job, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found: dict[str, int] = json.loads(process.stdout.readline())
        try:
            yield found
        finally:
            found["events"] = json.loads(process.communicate("")[0])


class Watcher(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self.request, self.status, self.events = request, asyncio.get_running_loop().create_future(), 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if not self.status.done():
            self.status.set_result(data[9:12].decode())
        self.events += data.count(b"\nevent: ")

    def connection_lost(self, error: Exception | None) -> None:
        if not self.status.done():
            self.status.set_result("lost")


async def run(port: int, job: str, count: int) -> None:
    request = f"GET /v1/admin/training-jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    made = [await loop.create_connection(lambda: Watcher(request), "127.0.0.1", port) for _ in range(count)]
    async with asyncio.timeout(PATIENCE):
        statuses = await asyncio.gather(*(watcher.status for _, watcher in made))
    print(json.dumps(Counter(statuses)), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(sum(watcher.events for _, watcher in made))


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
