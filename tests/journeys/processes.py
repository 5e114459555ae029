"""Real processes for journeys: `frugal` started as people start it, and gone however the test ends."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "service.cli")
PATIENCE = 150  # seconds for a start: a machine that has compiled no kernels yet takes a minute


def frugal(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A command that runs to its end; one that does not is killed, and fails the test."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [*COMMAND, *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=_environment(environment), text=True, start_new_session=True, **pipes) as process:
        try:
            out, errors = process.communicate(timeout=PATIENCE)
        finally:
            _kill(process)
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


class Server:
    """`frugal serve` on a free port, in a process group of its own."""

    def __init__(self, folder: Path, database: str, *options: str, **environment: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"serve-{self.port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "serve", "--port", str(self.port), "--database", database, *options],
                cwd=ROOT,
                env=_environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What it has printed."""
        return self.log.read_text()

    def ready(self) -> "Server":
        """Wait until it serves; fail with what it said if it ends before."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.process.poll() is not None:
                pytest.fail(f"frugal serve ended with {self.process.returncode} before it was ready:\n{self.said}")
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return self
            time.sleep(0.05)
        pytest.fail(f"frugal serve was not ready within {PATIENCE} seconds:\n{self.said}")

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30)

    def terminate(self) -> None:
        """SIGTERM to the process that was started, as a service manager sends it."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        """Until it has ended, which must be with exit code 0."""
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            pytest.fail(f"frugal serve has not ended:\n{self.said}")
        if code:
            raise subprocess.CalledProcessError(code, "frugal serve", self.said)

    def kill(self) -> None:
        """SIGKILL to it and all its workers."""
        _kill(self.process)


@contextmanager
def starting(folder: Path, database: str, *options: str, **environment: str) -> Iterator[Server]:
    """A server that may not be ready yet."""
    server = Server(folder, database, *options, **environment)
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def serving(folder: Path, database: str, *options: str, **environment: str) -> Iterator[Server]:
    """A server that serves."""
    with starting(folder, database, *options, **environment) as server:
        yield server.ready()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _kill(process: "subprocess.Popen[Any]") -> None:
    """The process and all that it has started; what has ended already stays as it is."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(more: dict[str, str]) -> dict[str, str]:
    """This process's environment without settings of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FRUGAL_")} | more
