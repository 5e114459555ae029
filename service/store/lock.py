"""A lock file held for the life of a process: the kernel lets go of it however the process ends."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class FileLock:
    """Held from the start; BusyFileError says who has it if another process does."""

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        while True:
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            self.identity = identity(os.fstat(self.descriptor))
            self._lock(what)
            if _at(path) == self.identity:
                break
            os.close(self.descriptor)  # it was deleted while this waited: whoever comes next would lock another one
        with suppress(OSError):  # another user's, or a disk that knows no modes
            os.fchmod(self.descriptor, 0o600)
        os.ftruncate(self.descriptor, 0)
        os.write(self.descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)

    def _lock(self, what: str) -> None:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self.descriptor, 32).decode(errors="replace").strip()
            os.close(self.descriptor)
            raise BusyFileError(
                f"{what} is in use by process {holder or 'unknown'}: SQLite serves one process at a time. "
                "Stop that one, or use PostgreSQL (FRUGAL_DATABASE=postgresql://...)."
            ) from None


class BusyFileError(ValueError):
    """Another process holds the lock."""


def identity(status: os.stat_result) -> tuple[int, int]:
    """What tells one file from another for as long as it is open, whatever it is called."""
    return status.st_dev, status.st_ino


def _at(path: Path) -> tuple[int, int] | None:
    try:
        return identity(os.stat(path))
    except FileNotFoundError:
        return None
