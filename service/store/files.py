"""The files of an SQLite database: for their owner alone, and still those that were opened.

A file that is deleted or replaced under a running server goes on taking writes, and nobody will ever read them. So before a commit is
acknowledged, and when /readyz asks, its name must lead to the file that is open: an open file keeps its number. One that was overwritten in
place (`cp backup.db frugal.db`) keeps its number too. But SQLite writes the database itself only at a checkpoint, and checkpoints are made
here alone: between two of them its size and the time of its last change stay as they are.
"""

import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from frugal.service.errors import DatabaseAway
from frugal.service.store.lock import FileLock, identity

GONE = (
    "The database's file was deleted or replaced under the running service, so nothing can be kept. "
    "Restart the service once the right file is in its place."
)
SPACE = 1 << 20  # bytes
log = logging.getLogger("frugal")


def make_private(file: Path) -> None:
    """The database with what stands beside it, made for its owner alone; those that SQLite makes later follow the database's own mode."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    for beside in ("", "-wal", "-shm"):
        with suppress(OSError):  # it is not there yet, is another user's who gave it to this one, or its disk knows no modes
            os.chmod(f"{file}{beside}", 0o600)


def has_space(folder: Path) -> None:
    """OSError where the disk is full. SQLite's journal keeps room that it once had, so a small write into that shows nothing."""
    with tempfile.TemporaryFile(dir=folder) as trial:
        os.posix_fallocate(trial.fileno(), 0, SPACE)


class Files:
    """The database, its journal, its shared memory and its lock, as they are now that all of them are open."""

    def __init__(self, name: Path, lock: FileLock) -> None:
        database = name.resolve()  # SQLite too keeps its journal beside the file itself, whatever link leads to it
        paths = {str(name), str(database), f"{database}-wal", f"{database}-shm"}
        self._opened = [(path, identity(os.stat(path))) for path in sorted(paths)] + [(str(lock.path), lock.identity)]
        self._database, self._journal = str(database), f"{database}-wal"
        self._told = False
        self.renew()

    def renew(self) -> None:
        """The database was just written, by a checkpoint of this process."""
        self._written = _last_change(os.stat(self._database))

    def journal_size(self) -> int:
        return os.stat(self._journal).st_size

    def check(self) -> None:
        """DatabaseAway where a name leads to another file, or to none."""
        for path, opened in self._opened:
            try:
                status = os.stat(path)
            except OSError:
                status = None
            same = status is not None and identity(status) == opened and (path != self._database or _last_change(status) == self._written)
            if not same:
                self._tell(path)
                raise DatabaseAway(GONE)
        self._told = False

    def _tell(self, path: str) -> None:
        """Once, until it is mended."""
        if not self._told:
            log.error("%s was deleted or replaced while it was open: nothing is acknowledged until that is mended", path)
        self._told = True


def _last_change(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
