"""Who gives way, and who gets a turn, with real processes: as who may do anything, and as an ordinary user."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from frugal.service.training import priority
from frugal.service.training.priority import GROUP, NICE, Turns
from frugal.service.training.vitals import LOOK, Vitals
from tests.busy import as_ordinary_user, burning, one_processor

ROOT = Path(__file__).parents[3]
GROUPS = Path("/proc/self/autogroup").exists()
LOWERED = """
import threading
from frugal.service.training import priority

def burn():
    while True: pass

priority.lower()
threading.Thread(target=burn, daemon=True).start()
print("low", flush=True)
burn()
"""
ASKED = "import sys; from frugal.service.training import priority; print(priority.rise(int(sys.argv[1])))"


@contextmanager
def lowered(preexec: Callable[[], None] | None = None) -> Iterator[int]:
    """A process of two busy threads that gives way."""
    command = [sys.executable, "-c", LOWERED]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True, preexec_fn=preexec) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"low\n"
        try:
            yield process.pid
        finally:
            process.kill()
            process.stdout.close()


def own() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def nices(pid: int) -> set[int]:
    return {os.getpriority(os.PRIO_PROCESS, int(thread)) for thread in os.listdir(f"/proc/{pid}/task")}


def group(pid: int) -> int | None:
    return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1]) if GROUPS else None


def may_rise() -> bool:
    """Whether whoever runs this test may make a process less nice."""
    with lowered() as pid:
        return priority._set_threads(pid, own())


MAY_RISE = may_rise()


def test_every_thread_and_the_group_give_way() -> None:
    with lowered() as pid:
        assert nices(pid) == {own() + NICE}
        assert group(pid) in (GROUP, None)


@pytest.mark.skipif(not MAY_RISE, reason="an ordinary user's processes do not become less nice")
def test_one_that_rises_is_as_its_parent_and_falls_again() -> None:
    with lowered() as pid:
        assert priority.rise(pid)
        assert (nices(pid), group(pid)) == ({own()}, 0 if GROUPS else None)
        priority.fall(pid)
        assert (nices(pid), group(pid)) == ({own() + NICE}, GROUP if GROUPS else None)


def test_an_ordinary_users_process_rises_by_its_group_and_else_stays_as_it_was() -> None:
    with lowered(as_ordinary_user) as pid:
        said = subprocess.run(
            [sys.executable, "-c", ASKED, str(pid)], cwd=ROOT, capture_output=True, text=True, preexec_fn=as_ordinary_user
        )
        assert said.stdout == f"{GROUPS}\n", said.stderr
        assert nices(pid) == {own() + NICE}
        assert group(pid) in (0, None)


@pytest.mark.skipif(not (MAY_RISE or GROUPS), reason="an ordinary user's processes do not become less nice")
def test_a_process_that_starves_gets_a_turn_until_it_has_run_and_then_gives_way_again() -> None:
    with lowered() as pid, burning(one_processor()):
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), {one_processor()})
        seen = Vitals(pid)
        turns, ran, end = Turns(seen), 0.0, time.monotonic() + 120
        while (risen := turns._since) is None:
            step(seen, turns, end)
        assert nices(pid) == {own()} or group(pid) == 0
        while turns._since is not None:
            step(seen, turns, end)
            ran = seen.ran - risen
        assert ran >= priority.TURN
        assert nices(pid) == {own() + NICE}
        assert group(pid) in (GROUP, None)


def step(seen: Vitals, turns: Turns, end: float) -> None:
    assert time.monotonic() < end
    time.sleep(LOOK)
    seen.look()
    turns.give()


def test_a_process_that_gets_its_share_gets_no_turn() -> None:
    seen = Vitals(os.getpid())
    turns = Turns(seen)
    seen.starved = priority.STARVED / 2
    turns.give()
    assert turns._since is None
