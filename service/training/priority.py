"""How much of the processors a process that trains gets: what others leave, and a turn now and then when they leave nothing.

Its threads are nice, and so is its autogroup, where the kernel shares time between sessions first. An ordinary user may make a thread
nicer and never less nice again: so threads are no nicer than a process can live with for good (docs/decisions/0009-starving.md).
"""

import os
from contextlib import suppress
from pathlib import Path

from frugal.service.training.vitals import Vitals

NICE = 10  # above who started it: a ninth of the share. On two processors with eight busy others, 5 % of one
GROUP = 19  # the nicest: anyone may set an autogroup back
STARVED = 2.0  # seconds with next to nothing of the processors, after which it gets a turn
TURN = 1.0  # seconds of processor time


def lower() -> None:
    """This process gives way to others. To be called while it has one thread: those that it starts are as nice."""
    os.nice(NICE)
    _set_group(os.getpid(), GROUP)


class Turns:
    """Lets a process that starves compete like any other until it has run, where this user may."""

    def __init__(self, vitals: Vitals) -> None:
        self.vitals = vitals
        self._since: float | None = None  # what it had run when it rose

    def give(self) -> None:
        """To be called again and again."""
        if self._since is None:
            if self.vitals.starved >= STARVED and rise(self.vitals.pid):
                self._since = self.vitals.ran
        elif self.vitals.ran - self._since >= TURN:
            fall(self.vitals.pid)
            self._since = None


def rise(pid: int) -> bool:
    """The process is as nice as this one from now on; False where nothing came of it."""
    group = _set_group(pid, 0)
    return _set_threads(pid, _own()) or group


def fall(pid: int) -> None:
    """It gives way again."""
    _set_threads(pid, _own() + NICE)
    _set_group(pid, GROUP)


def _own() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def _set_threads(pid: int, nice: int) -> bool:
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.setpriority(os.PRIO_PROCESS, int(thread), nice)
    except OSError:
        return False
    return True


def _set_group(pid: int, nice: int) -> bool:
    try:
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))
    except OSError:
        return False
    return True
