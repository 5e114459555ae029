"""Processes that fill one folder of compiled kernels: they take turns, and nothing of one is lost or mixed up by another."""

import subprocess
import sys
import threading
from pathlib import Path

import numba
import pytest

from frugal.models.kernels import compiling
from frugal.models.kernels.sharing import is_locked, locked

ROOT = Path(__file__).parents[3]
HOLD = """
import sys, pathlib
from frugal.models.kernels.sharing import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(file: Path) -> "subprocess.Popen[str]":
    """A process that holds the lock when this returns."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(file)], cwd=ROOT, text=True, **pipes)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_has_one_holder_and_is_seen_by_others(tmp_path):
    file, entered = tmp_path / "lock", threading.Event()

    def second() -> None:
        with locked(file):
            entered.set()

    assert not is_locked(file)
    thread = threading.Thread(target=second)
    with locked(file):
        assert is_locked(file)
        thread.start()
        assert not entered.wait(0.2)
    assert entered.wait(30)
    thread.join()
    assert not is_locked(file)


def test_a_holder_that_is_killed_lets_go(tmp_path):
    with holder(tmp_path / "lock") as process:
        assert is_locked(tmp_path / "lock")
        process.kill()
        process.wait()
        assert not is_locked(tmp_path / "lock")


def test_without_a_folder_work_goes_on_without_a_lock(tmp_path):
    """As where somebody has emptied the temporary folder under a server."""
    done = []
    with locked(tmp_path / "gone" / "lock"):
        assert not is_locked(tmp_path / "gone" / "lock")
        done.append(True)
    assert done
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "gone" / "lock"):
        raise ZeroDivisionError


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_two_that_save_a_kernel_at_once_both_find_their_own_again(tmp_path):
    """The second comes while the first has chosen its file, as two processes would."""
    files = [numba.core.caching.IndexDataCacheFile(str(tmp_path), "kernel", "stamp") for _ in range(2)]
    for each in files:
        compiling._share(each, tmp_path / "lock")
    first, second = files
    between, done = threading.Event(), threading.Event()
    save_index = first._save_index

    def slowly(overloads: object) -> None:
        between.set()
        done.wait(0.5)  # all of which the second one has, if it is let in
        save_index(overloads)

    first._save_index = slowly

    def save_other() -> None:
        between.wait()
        second.save("floats", "code for floats")
        done.set()

    thread = threading.Thread(target=save_other)
    thread.start()
    first.save("integers", "code for integers")
    thread.join()
    assert [second.load(key) for key in ("integers", "floats")] == ["code for integers", "code for floats"]
