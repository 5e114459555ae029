"""A processor that others keep busy: processes that only burn time, and end with the test however it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

LONGEST = 120  # seconds, then they end by themselves
BURN = f"import signal; signal.alarm({LONGEST})\nwhile True: pass"
NICE = 23  # the capability with which a process may be less nice again


def one_processor() -> int:
    return min(os.sched_getaffinity(0))


@contextmanager
def burning(processor: int, count: int = 4) -> Iterator[None]:
    """So many busy processes on this processor."""
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-S", "-c", BURN]))
            stack.callback(process.send_signal, signal.SIGKILL)
            os.sched_setaffinity(process.pid, {processor})
        yield


def as_ordinary_user() -> None:
    """For `preexec_fn`: what this process starts may not become less nice, as if it were nobody's; its files it may still read."""
    import ctypes

    ctypes.CDLL(None).prctl(24, NICE)  # PR_CAPBSET_DROP; who has it not, needs not drop it
