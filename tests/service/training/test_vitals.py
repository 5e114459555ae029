"""What /proc tells of real processes: those that work, sleep, stand still, only say that they are there, or wait for a processor."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from frugal.service.training import vitals
from frugal.service.training.vitals import LOOK, Spell, Thread, Vitals, between
from tests.busy import burning, one_processor

READY = "import sys, time; print('up', flush=True)\n"
WORKS = READY + "while True: pass"
SLEEPS = READY + "time.sleep(100)"
BEATS = READY + "while True: time.sleep(0.5); print('here', flush=True)"
NOTHING = {7: Thread("S", 1.0, 1.0)}


@contextmanager
def running(code: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()
            process.stdout.close()


def looked_at(pid: int, looks: int) -> Vitals:
    """A process after so many looks."""
    seen = Vitals(pid)
    for _ in range(looks):
        time.sleep(LOOK)
        seen.look()
    return seen


def test_a_process_that_works_is_never_still() -> None:
    with running(WORKS) as pid:
        seen = looked_at(pid, 4)
    assert seen.still == 0
    assert seen.ran > 0


@pytest.mark.parametrize("code", [SLEEPS, BEATS], ids=["sleeps", "only beats"])
def test_a_process_that_does_nothing_is_still(code: str) -> None:
    with running(code) as pid:
        time.sleep(2 * LOOK)  # what it did to start is over
        seen = looked_at(pid, 4)
    assert seen.still >= 4 * LOOK
    assert seen.starved == 0


def test_a_process_that_is_stopped_is_still() -> None:
    with running(WORKS) as pid:
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED)
        seen = looked_at(pid, 4)
    assert seen.still >= 4 * LOOK


def test_a_process_that_waits_for_a_processor_starves_and_is_not_still() -> None:
    with running(WORKS) as pid, burning(one_processor()):
        os.sched_setaffinity(pid, {one_processor()})
        os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
        seen, end = Vitals(pid), time.monotonic() + 60
        while seen.starved < 4 * LOOK:
            time.sleep(LOOK)
            seen.look()
            assert seen.still < 4 * LOOK  # on a busy machine a single look may find it on its way into the queue
            assert time.monotonic() < end


def test_to_wait_is_to_stand_in_the_queue_from_one_look_to_the_next() -> None:
    queued = {7: Thread("R", 1.0, 1.0)}
    assert between(queued, queued, 1.0) == Spell(1.0, 0.0, 1.0)
    assert between(NOTHING, queued, 1.0) == Spell(1.0, 0.0, 0.0)  # it may have come this moment
    assert between(queued, {7: Thread("R", 1.25, 1.5)}, 1.0) == Spell(1.0, 0.25, 0.75)
    assert between(queued, {7: Thread("S", 1.0, 9.0)}, 1.0) == Spell(1.0, 0.0, 1.0)  # no longer than time went by


@pytest.mark.parametrize(
    ("ran", "wanted", "works", "starved"),
    [(0.02, 0.02, True, False), (0.005, 0.1, False, False), (0.0, 0.6, True, True), (0.05, 0.9, True, True), (0.2, 1.0, True, False)],
)
def test_work_is_processor_time_or_the_wish_for_it(ran: float, wanted: float, works: bool, starved: bool) -> None:
    spell = Spell(1.0, ran, wanted)
    assert (spell.works, spell.starved) == (works, starved)


def test_what_happened_while_nobody_looked_is_not_held_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "threads", lambda pid: NOTHING)
    times = iter([0.0, 600.0, 600.0])
    seen = Vitals(1, lambda: next(times))
    seen.look()
    assert seen.still == 2 * LOOK


def test_progress_shows_that_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "threads", lambda pid: NOTHING)
    times = iter([0.0, 1.0, 1.0])
    seen = Vitals(1, lambda: next(times))
    seen.look()
    assert seen.still == 1.0
    seen.progressed()
    assert seen.still == 0


def test_a_process_that_has_ended_has_nothing_held_against_it() -> None:
    with running(SLEEPS) as pid:
        pass
    assert looked_at(pid, 2).still == 0
