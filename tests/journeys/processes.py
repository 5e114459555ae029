"""Real processes for journeys: `frugal` started as people start it, and gone however the test ends."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "frugal.service.commands.main")
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


class Started:
    """A long-running `frugal` in a process group of its own, its words in a file."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.name = f"frugal {arguments[0]}"
        self.log = Path(tempfile.mkstemp(prefix=f"{arguments[0]}-", suffix=".log", dir=folder)[1])
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*COMMAND, *arguments],
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

    def children(self) -> list[int]:
        """The processes that it has started and that live."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    def signal(self, number: int) -> None:
        """To the process alone, as a service manager or a person sends it."""
        self.process.send_signal(number)

    def terminate(self) -> None:
        self.signal(signal.SIGTERM)

    def wait(self) -> None:
        """Until it has ended, which must be with exit code 0."""
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{self.name} has not ended:\n{self.said}")
        if code:
            raise subprocess.CalledProcessError(code, self.name, self.said)

    def kill(self) -> None:
        """SIGKILL to it and all that it has started."""
        _kill(self.process)


class Server(Started):
    """`frugal serve` on a free port."""

    def __init__(self, folder: Path, database: str, *options: str, **environment: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        super().__init__(folder, "serve", "--port", str(self.port), "--database", database, *options, **environment)

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
        """For many threads: past its limit of idle connections httpx closes some, even one that another thread was just given."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=None)
        return httpx.Client(base_url=self.url, timeout=30, limits=limits)


@contextmanager
def working(folder: Path, database: str, **environment: str) -> Iterator[Started]:
    """`frugal worker`."""
    worker = Started(folder, "worker", "--database", database, **environment)
    try:
        yield worker
    finally:
        worker.kill()


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


def gone(pid: int, within: float) -> bool:
    """Whether a process ends within so many seconds; one that nobody has buried yet has ended."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


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
