"""A lock file held for the life of a process: the kernel lets go of it however the process ends."""

import fcntl
import os
from pathlib import Path


class FileLock:
    """Held from the start; OSError says who has it if another process does."""

    def __init__(self, path: Path, what: str) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self.descriptor, 32).decode(errors="replace").strip()
            os.close(self.descriptor)
            raise BusyFileError(
                f"{what} is in use by process {holder or 'unknown'}: SQLite serves one process at a time. "
                "Stop that one, or use PostgreSQL (FRUGAL_DATABASE=postgresql://...)."
            ) from None
        os.ftruncate(self.descriptor, 0)
        os.write(self.descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)


class BusyFileError(ValueError):
    """Another process holds the lock."""
