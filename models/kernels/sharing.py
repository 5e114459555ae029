"""Locks on files, by which processes that fill one folder of compiled kernels take turns.

The operating system drops a lock when its holder ends, however it ends. Two threads of one process exclude each other too. Where there can
be no lock, because the folder is gone or its file system has none, work goes on without: it may then be done twice.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Wait until nobody else holds this file's lock, then hold it."""
    with _opened(file) as descriptor:
        if descriptor is not None:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def is_locked(file: Path) -> bool:
    """Whether somebody holds this file's lock now."""
    with _opened(file) as descriptor:
        try:
            if descriptor is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return isinstance(error, BlockingIOError)
        return False


@contextmanager
def _opened(file: Path) -> Iterator[int | None]:
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)  # and with it the lock
