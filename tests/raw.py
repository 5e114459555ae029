"""Raw sockets for hostile tests: what is sent is what is written here, and replies are read one by one."""

import json
import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

HOST = b"Host: localhost\r\n"
LIVEZ = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def problem(self, status: int, slug: str) -> Any:
        """The body of a problem that must be this one."""
        assert (self.status, self.headers["content-type"]) == (status, "application/problem+json"), self
        said = json.loads(self.body)
        assert (said["type"], said["status"]) == (f"urn:frugal:problem:{slug}", status), said
        assert said["request_id"] == self.headers["x-request-id"]
        assert said["title"]
        assert said["detail"]
        return said


class Raw:
    """One connection."""

    def __init__(self, port: int, patience: float = 60) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self.read = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> Self:
        self.socket.sendall(data)
        return self

    def try_send(self, data: bytes) -> bool:
        """Whether the server still takes it: False once it has closed."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def flood(self, data: bytes, most: int) -> int:
        """Send the same again and again until the server says something or closes; how many bytes it took, `most` at most."""
        sent = 0
        while sent < most and not select.select([self.socket], [], [], 0)[0] and self.try_send(data):
            sent += len(data)
        return sent

    def reply(self) -> Reply:
        """The next reply, whole."""
        while b"\r\n\r\n" not in self.read:
            self._more()
        head, _, self.read = self.read.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        size = int(headers.get("content-length", 0))
        while len(self.read) < size:
            self._more()
        body, self.read = self.read[:size], self.read[size:]
        return Reply(int(first.split()[1]), headers, body)

    def ended(self) -> bool:
        """Wait for the end of the connection; whether nothing came before it."""
        with suppress(ConnectionResetError):
            while part := self.socket.recv(65_536):
                self.read += part
        return not self.read

    def _more(self) -> None:
        part = self.socket.recv(65_536)
        assert part, f"the connection ended after {self.read!r}"
        self.read += part


def seconds_to_live(port: int) -> float:
    """How long somebody else waits for /livez, from connecting to its last byte."""
    begun = time.monotonic()
    with Raw(port) as other:
        assert other.send(LIVEZ).reply().status == 200
    return time.monotonic() - begun
