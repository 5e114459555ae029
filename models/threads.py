"""Rows shared among threads."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

BLOCK = 1024  # rows a thread takes at a time: some milliseconds of work


def in_threads(work: Callable[[slice], None], rows: int, n_jobs: int | None) -> None:
    """Run `work` over blocks of rows. Kernels release the GIL, so plain threads share the cores.

    Not numba's prange: its default threading layer aborts the process when two callers enter at once, as two requests would.
    """
    count = threads(n_jobs)
    if count == 1 or rows <= BLOCK:
        work(slice(0, rows))
        return
    with ThreadPoolExecutor(count) as pool:
        for _ in pool.map(work, _blocks(rows)):
            pass


def threads(n_jobs: int | None) -> int:
    """How many threads: None is 1, -1 all cores, -2 all but one."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0):
        raise ValueError(f"n_jobs is {n_jobs!r}: expected None or a whole number other than 0")
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs) if n_jobs is not None and n_jobs < 0 else int(n_jobs or 1)


def _blocks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, BLOCK):
        yield slice(start, min(start + BLOCK, rows))
