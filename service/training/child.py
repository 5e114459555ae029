"""The process that trains: started ahead of time, warm, giving way to others; one job, then it ends. It never opens a database.

Rows come in a file without a name, progress and the model go out by a pipe. When the parent ends, however it does, this process ends at
once, from its first moment on: nothing trains for nobody. So what it needs to train is imported only after that is seen to.
"""

import ctypes
import os
import queue
import signal
import sys
import threading
from contextlib import suppress
from typing import IO

from frugal.service.training import frames, priority

PR_SET_PDEATHSIG = 1


def main(table: int, parent: int) -> None:
    """`table` is the descriptor of the file that the rows will be in; `parent` the process that this one belongs to."""
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_watch_parent, args=(sys.stdin.buffer, orders), daemon=True).start()
    die_with(parent)
    priority.lower()
    from frugal.service.training import errand  # a second or two, and far more where the kernels are not compiled yet

    voice = errand.Voice(_own_output())
    errand.prepare()
    errand.run(table, int(orders.get()), voice)


def die_with(parent: int) -> None:
    """The kernel kills this process with the thread that started it, even while it can do nothing for itself. Linux only."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it had ended before that was asked for
        os._exit(1)


def _watch_parent(source: IO[bytes], orders: "queue.SimpleQueue[bytes]") -> None:
    """The parent says nothing but the order; when its end of the pipe closes, it has ended or wants this to."""
    while (heard := frames.receive(source)) is not None:
        orders.put(heard[1])
    os._exit(1)


def _own_output() -> IO[bytes]:
    """Standard output for frames alone: what anything prints goes to standard error."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return pipe


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
