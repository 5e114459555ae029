"""Whether a process works, waits for a processor or hangs, as the kernel tells it to whoever watches: the process itself is not asked.

/proc has of each thread its state, the time it has run, and the time it stood in a queue for a processor until it last got one; a thread
that still stands there is in state R and has run no longer than before.

    ran, or wanted to most of the time      it works; if it got next to nothing of what it wanted, it is starved
    neither                                 it is still: asleep, or stopped
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOOK = 0.5  # seconds between two looks
WORKS = 0.01  # of the time: a process that only says now and then that it is there uses a hundredth of this
WANTS = 0.5  # of the time
ENOUGH = 0.1  # of a processor: less is next to nothing
TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds


@dataclass(frozen=True)
class Thread:
    """What the kernel says of a thread: its state, and for how many seconds it has run, and waited until it ran."""

    state: str
    ran: float
    waited: float


@dataclass(frozen=True)
class Spell:
    """What a process did between two looks, in seconds over all its threads."""

    passed: float
    ran: float
    wanted: float  # ran, or waited for a processor

    @property
    def works(self) -> bool:
        return self.ran >= WORKS * self.passed or self.wanted >= WANTS * self.passed

    @property
    def starved(self) -> bool:
        return self.wanted >= WANTS * self.passed and self.ran < ENOUGH * self.passed


class Vitals:
    """A process that is looked at: for how long it has been `still`, or `starved`, and how long it `ran` in all."""

    def __init__(self, pid: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.pid, self._clock = pid, clock
        self.still = self.starved = self.ran = 0.0
        self._seen, self._at = threads(pid), clock()

    def look(self) -> None:
        """Look, unless that was just done. What happened while nobody looked for long is not held against it."""
        passed = self._clock() - self._at
        if passed < LOOK:
            return
        seen = threads(self.pid)
        if self._seen and seen:
            self._judge(between(self._seen, seen, passed), min(passed, 2 * LOOK))
        self._seen, self._at = seen, self._clock()

    def progressed(self) -> None:
        """It has shown by what it did that it works."""
        self.still = 0.0

    def _judge(self, spell: Spell, passed: float) -> None:
        self.ran += spell.ran
        self.still = 0.0 if spell.works else self.still + passed
        self.starved = self.starved + passed if spell.starved else 0.0


def threads(pid: int) -> dict[int, Thread]:
    """The threads of a process; none where it has ended, or where there is no /proc: there nothing is ever held against it."""
    found = {}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):  # it has ended meanwhile
            fields = (task / "stat").read_text().rpartition(")")[2].split()  # after the name, which may be anything
            ran, waited = _times(task) or (TICK * (int(fields[11]) + int(fields[12])), 0.0)
            found[int(task.name)] = Thread(fields[0], ran, waited)
    return found


def _times(task: Path) -> tuple[float, float] | None:
    """Seconds that a thread has run and waited; None where the kernel does not count them."""
    try:
        ran, waited = (task / "schedstat").read_text().split()[:2]
    except OSError:
        return None
    return int(ran) / 1e9, int(waited) / 1e9


def between(before: Mapping[int, Thread], after: Mapping[int, Thread], passed: float) -> Spell:
    """What the threads did between two looks.

    Examples
    --------
    >>> queued = {7: Thread("R", 1.0, 3.0)}
    >>> between(queued, queued, 0.5)
    Spell(passed=0.5, ran=0.0, wanted=0.5)
    >>> between({7: Thread("S", 1.0, 3.0)}, {7: Thread("S", 1.25, 3.125)}, 0.5)
    Spell(passed=0.5, ran=0.25, wanted=0.375)
    """
    ran = wanted = 0.0
    for id, now in after.items():
        then = before.get(id, Thread("S", 0.0, 0.0))
        ran += now.ran - then.ran
        queued = then.state == now.state == "R" and now.ran == then.ran
        wanted += passed if queued else min(passed, now.ran - then.ran + now.waited - then.waited)
    return Spell(passed, ran, wanted)
