"""The parent's side of a child that trains: start it ahead of time, give it a job, hear it, end it."""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from frugal.service.tables.children import PACKAGES, child_environment
from frugal.service.training import frames

AHEAD = 8  # frames


@dataclass(frozen=True)
class Ended:
    """The child is gone: its exit code, negative for a signal."""

    code: int

    def __str__(self) -> str:
        if self.code >= 0:
            return f"the process that trained it ended with code {self.code}"
        name = signal.Signals(-self.code).name if -self.code in signal.valid_signals() and -self.code < 32 else f"signal {-self.code}"
        return f"the process that trained it was ended by {name}" + (", as a machine out of memory does" if name == "SIGKILL" else "")


Heard = tuple[bytes, bytes] | Ended


class Child:
    """One process for one job. Its frames are read by a thread, a few ahead of what was heard: a large model never lies here whole.

    The table is handed over in a file that has no name, so that whoever is killed leaves none behind. The child ends with the thread that
    made this.
    """

    command: tuple[str, ...] = (sys.executable, "-m", "frugal.service.training.child")

    def __init__(self) -> None:
        self._table = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is handed over
        table = self._table.fileno()
        self.process = subprocess.Popen(
            [*self.command, str(table), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a log has no values in it, and nobody can promise that of what a library prints
            pass_fds=(table,),
            cwd=PACKAGES,
            env=child_environment(),
            start_new_session=True,  # its priority is its own, and Ctrl-C is for its parent
        )
        self._heard: queue.Queue[Heard] = queue.Queue(AHEAD)
        self._deaf = threading.Event()
        threading.Thread(target=self._listen, name="frugal-child", daemon=True).start()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def bring(self, rows: Iterable[bytes]) -> None:
        """Lay out the table; again from its beginning where that was broken off."""
        self._table.seek(0)
        self._table.truncate()
        self._table.writelines(rows)

    def order(self, asked: Mapping[str, Any]) -> None:
        """Let it train; it may still be warming up. One that is dead already is heard of by `hear`."""
        assert self.process.stdin is not None
        rows = self._table.tell()
        self._table.write(json.dumps(asked).encode())  # not by the pipe, which holds no more than a few words until they are read
        self._table.close()
        with suppress(BrokenPipeError):
            frames.send(self.process.stdin, frames.JOB, str(rows).encode())

    def hear(self, patience: float) -> Heard | None:
        """The next thing it says, or None if it says nothing for so long."""
        try:
            return self._heard.get(timeout=patience)
        except queue.Empty:
            return None

    def end(self) -> None:
        """Gone when this returns, whatever it was doing."""
        self._deaf.set()
        self._table.close()
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as pipe:
            while (frame := frames.receive(pipe)) is not None:
                self._pass_on(frame)
        self._pass_on(Ended(self.process.wait()))

    def _pass_on(self, heard: Heard) -> None:
        """Wait until there is room, or nobody listens any more."""
        while not self._deaf.is_set():
            with suppress(queue.Full):
                self._heard.put(heard, timeout=1)
                return
