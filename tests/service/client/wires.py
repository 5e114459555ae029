"""Clients that need not wait, and wires to a server that lose things."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import httpx

from frugal.service.client import Client


@contextmanager
def quick(server: httpx.Client, key: str | None = None, url: str | None = None) -> Iterator[Client]:
    with Client(url or str(server.base_url), key) as client:
        client.waits = []  # type: ignore[attr-defined]
        client._sleep = client.waits.append  # type: ignore[attr-defined]
        yield client


class Relay:
    """A wire to the server that hands on requests and keeps the next `lose` replies to itself, after the server has given them."""

    def __init__(self, upstream: httpx.URL) -> None:
        self.upstream = (upstream.host, upstream.port)
        self.lose = self.lost = 0
        self.ends: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.upstream)
            except OSError:
                near.close()
                continue
            self.ends += near, far
            threading.Thread(target=self._pump, args=(near, far, lambda: False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, self._loses), daemon=True).start()

    def cut(self) -> None:
        """Lose every connection there is."""
        ends, self.ends = self.ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _loses(self) -> bool:
        if not self.lose:
            return False
        self.lose, self.lost = self.lose - 1, self.lost + 1
        return True

    def _pump(self, source: socket.socket, sink: socket.socket, loses: Callable[[], bool]) -> None:
        with suppress(OSError):
            while (data := source.recv(1 << 16)) and not loses():
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()


@contextmanager
def relayed(upstream: httpx.URL) -> Iterator[Relay]:
    relay = Relay(upstream)
    try:
        yield relay
    finally:
        relay.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        relay.listener.close()
        relay.cut()


@contextmanager
def scripted(*replies: str, heard: list[str] | None = None) -> Iterator[str]:
    """A server that says these lines, one reply per connection; `heard` gets the requests."""
    listener = socket.create_server(("127.0.0.1", 0))

    def speak() -> None:
        for reply in replies:
            head, _, body = reply.partition("\n\n")
            connection, _ = listener.accept()
            with connection:
                request = connection.recv(1 << 16)
                if heard is not None:
                    heard.append(request.decode())
                lines = "".join(f"{line}\r\n" for line in [*head.split("\n"), f"Content-Length: {len(body.encode())}", "Connection: close"])
                connection.sendall(f"HTTP/1.1 {lines}\r\n{body}".encode())

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    thread.join(10)
    listener.close()
