"""A child that trains and its parent, as real processes: what is left when either is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from frugal.service.training.process import Child
from tests.journeys.processes import gone

ROOT = Path(__file__).parents[3]
PARENT = """
import sys, time
from frugal.service.training.process import Child
child = Child()
child.bring([b"rows" * 1000])
print(child.pid, flush=True)
sys.stdin.read()
"""


def start(folder: Path) -> "subprocess.Popen[str]":
    """A parent whose child warms up for long, because nothing is compiled for it; both keep their files in this folder."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    places = {"NUMBA_CACHE_DIR": str(folder / "kernels"), "TMPDIR": str(folder)}
    return subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, env=os.environ | places, **pipes)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("after", [0.0, 3.0], ids=["starting", "warming"])
def test_a_child_that_warms_up_dies_with_its_parent(tmp_path: Path, after: float) -> None:
    with start(tmp_path) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(after)  # not for anything to happen: it is to be hit at several moments
        parent.kill()
    assert gone(child, 20)  # compiling takes a minute


def test_even_a_child_that_is_stopped_dies_with_its_parent(tmp_path: Path) -> None:
    with start(tmp_path) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        until_it_dies_with_its_parent(child)
        os.kill(child, signal.SIGSTOP)
        parent.kill()
    assert gone(child, 20)


def until_it_dies_with_its_parent(child: int) -> None:
    """It is nice as soon as it has seen to that."""
    end = time.monotonic() + 60
    while os.getpriority(os.PRIO_PROCESS, child) == os.getpriority(os.PRIO_PROCESS, 0):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_child_whose_parent_was_quicker_to_die_ends() -> None:
    late = "import os; from frugal.service.training.child import die_with; die_with(os.getppid() + 1)"
    assert subprocess.run([sys.executable, "-c", late], cwd=ROOT).returncode == 1


def test_a_table_on_its_way_has_no_name_that_could_be_left_behind(tmp_path: Path) -> None:
    with start(tmp_path) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        assert left(tmp_path) == []
        parent.kill()
    assert left(tmp_path) == []


def left(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "kernels" not in path.parts]


def test_a_child_ends_with_its_pipe_too(tmp_path: Path) -> None:
    """As where the kernel knows no signal for the death of a parent."""
    child = Child()
    try:
        assert child.process.stdin is not None
        child.process.stdin.close()
        assert child.process.wait(60) == 1
    finally:
        child.end()


def test_a_long_order_is_given_to_a_child_that_does_not_read() -> None:
    child = Child()
    try:
        os.kill(child.pid, signal.SIGSTOP)
        child.bring([b"rows"])
        child.order({"spec": "x" * 1_000_000})
    finally:
        child.end()


def test_what_was_brought_in_part_is_brought_anew() -> None:
    child = Child()
    try:
        child.bring([b"a part of it"])
        child.bring([b"all", b" of it"])
        child._table.flush()
        assert os.pread(child._table.fileno(), 100, 0) == b"all of it"
    finally:
        child.end()
