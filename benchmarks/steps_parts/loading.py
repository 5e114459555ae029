"""A light load on a server, in a process of its own: clients on kept connections, each with one request under way.

The job comes as JSON on stdin, and requests, seconds and percentiles in milliseconds go to stdout:

    {"port": 8000, "clients": 16, "ids": [...], "answers": [...]}                      answer these sessions, one body after the other
    {"port": 8000, "clients": 16, "opening": {...}, "sessions": 100, "answers": [...]}        open them first

Any reply but a fresh 200 or 201 ends the load with an error.
"""

import asyncio
import gc
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import uvloop

ROUTE = b"POST /v1/sessions"
PATIENCE = 600  # seconds for the whole load


def load(port: int, clients: int, answers: list[Any], **sessions: Any) -> dict[str, float]:
    """Run a load in a process of its own; what it found."""
    job = json.dumps({"port": port, "clients": clients, "answers": answers, **sessions})
    done = subprocess.run([sys.executable, str(Path(__file__))], input=job, capture_output=True, text=True, timeout=PATIENCE + 30)
    if done.returncode:
        raise RuntimeError(f"the load failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


class Client(asyncio.Protocol):
    """One connection: it sends what its talk yields and gives back the reply's body."""

    def __init__(self, talk: Generator[bytes, bytes, None], times: list[float], over: asyncio.Future[None]) -> None:
        self.talk, self.times, self.over = talk, times, over
        self.received = b""
        self.sent_at = 0.0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def start(self) -> None:
        self.send(next(self.talk, None))

    def send(self, request: bytes | None) -> None:
        if request is None:
            self.over.set_result(None)
            self.transport.close()
            return
        self.sent_at = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        self.times.append(time.perf_counter() - self.sent_at)
        self.received = b""
        if head[9:12] not in (b"200", b"201") or b"idempotent-replayed" in head:
            self.fail(f"an unexpected reply: {head!r} {body!r}")
            return
        try:
            request = self.talk.send(body)
        except StopIteration:
            request = None
        self.send(request)

    def connection_lost(self, error: Exception | None) -> None:
        self.fail(f"the connection was lost: {error}")

    def fail(self, why: str) -> None:
        if not self.over.done():
            self.over.set_exception(RuntimeError(why))


def talk(ids: Iterator[bytes], opening: bytes | None, answers: list[bytes]) -> Generator[bytes, bytes, None]:
    """The requests of one client: the next session that nobody has taken, from its first question to its last."""
    for id in ids:
        if opening is not None:
            shown = yield opening
            id = json.loads(shown)["id"].encode()
        for rest in answers:
            yield ROUTE + b"/" + id + rest


def after_route(path: str, body: Any) -> bytes:
    """A request from where its route ends."""
    content = json.dumps(body, separators=(",", ":")).encode()
    head = f"{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


async def run(job: dict[str, Any]) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    opening = ROUTE + after_route("", job["opening"]) if "opening" in job else None
    ids = itertools.repeat(b"", job["sessions"]) if opening else iter([id.encode() for id in job["ids"]])
    answers = [after_route("/answers", body) for body in job["answers"]]
    times: list[float] = []
    clients = [Client(talk(ids, opening, answers), times, loop.create_future()) for _ in range(job["clients"])]
    for client in clients:
        await loop.create_connection(lambda client=client: client, "127.0.0.1", job["port"])
    await asyncio.sleep(0.05)
    start = time.perf_counter()
    for client in clients:
        client.start()
    await asyncio.wait_for(asyncio.gather(*(client.over for client in clients)), PATIENCE)
    seconds = time.perf_counter() - start
    times.sort()
    return {
        "requests": len(times),
        "seconds": seconds,
        "p50": 1000 * times[len(times) // 2],
        "p99": 1000 * times[len(times) * 99 // 100],
    }


if __name__ == "__main__":
    gc.disable()  # it lives for seconds, and a collection would count as the server's time
    print(json.dumps(uvloop.run(run(json.load(sys.stdin)))))
