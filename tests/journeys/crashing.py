"""A PostgreSQL that a journey may kill: its own, with nobody else's databases on it."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.databases import PostgresServer


@contextlib.contextmanager
def own_postgresql() -> Iterator[PostgresServer]:
    """A server that no other test needs; its folder has a short name, because its socket lies in it."""
    with TemporaryDirectory() as folder:
        server = PostgresServer(Path(folder) / "data")
        try:
            yield server
        finally:
            server.stop()


def crash(postgresql: PostgresServer) -> None:
    pid = postgresql.server.get_pid()
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.1)
        pytest.skip("nobody here buries a process whose parent has gone")


def restart(postgresql: PostgresServer) -> None:
    """Start it again, as soon as the last of its old processes has noticed and gone."""
    for _ in range(20):
        with contextlib.suppress(subprocess.SubprocessError):
            return postgresql.server.start()
        time.sleep(0.5)
    pytest.fail("PostgreSQL does not come back")
