"""Parquet as it arrives: kept in a temporary file, because it is read from its end, then read in a process of its own.

The library gives what the pages hold, whatever the file's summary says: one of 0.4 MB that claimed 10 rows gave 150,000,000. 36,000 damaged
files did not bring it down, but strangers feed it. So that process may have only the memory that the summary
accounts for and some to spare, and whatever becomes of it, this one lives on.
"""

import json
import mmap
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from typing import Any

from frugal.service.tables.children import PACKAGES, child_environment
from frugal.service.tables.choices import Choices
from frugal.service.tables.columns import Columns
from frugal.service.tables.limits import Limits, Rejected
from frugal.service.tables.packing import unpack
from frugal.service.tables.remarks import Remark

DONE, REFUSED = 0, 3  # how the process ends when it ends well
DAMAGED = "the Parquet file is damaged, or larger than it says: write it again, or send CSV"
SECONDS = 300  # until it is ended, whatever it does


class ParquetReader:
    """Takes the bytes of a Parquet file in pieces and gives its columns."""

    def __init__(self, limits: Limits, folder: str | None = None, choices: Choices | None = None) -> None:
        self._limits = limits
        self._choices = choices or Choices()
        self._folder = folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by close()

    def feed(self, data: bytes | memoryview) -> None:
        self._file.write(data)

    def finish(self) -> Columns:
        self._file.flush()
        with tempfile.TemporaryFile(dir=self._folder) as out, tempfile.TemporaryFile(dir=self._folder) as said:
            code = _read_apart((self._file.fileno(), out.fileno(), said.fileno()), self._limits, self._choices)
            said.seek(0)
            if code == REFUSED:
                raise Rejected(**json.load(said))
            if code != DONE:
                raise Rejected(DAMAGED)
            table = unpack(mmap.mmap(out.fileno(), 0, access=mmap.ACCESS_READ))
            about = json.load(said)
            return replace(table, remarks=tuple(_remark(each) for each in about["remarks"]), left_out=tuple(about["left_out"]))

    def close(self) -> None:
        self._file.close()


def _remark(said: dict[str, Any]) -> Remark:
    return Remark(**said | {"rows": tuple(said["rows"]), "values": tuple(said["values"])})


def _read_apart(files: tuple[int, int, int], limits: Limits, choices: Choices) -> int:
    asked = json.dumps({"limits": asdict(limits), "choices": asdict(choices)})
    command = [sys.executable, "-m", "frugal.service.tables.parquet_child", *map(str, files), asked]
    # the system's own allocator: the library's reserves more address space than the limit leaves
    settings = {**child_environment(), "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            pass_fds=files,
            env=settings,
            cwd=PACKAGES,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:  # the child is gone by now
        raise Rejected(f"the Parquet file takes more than {SECONDS} seconds to read: send fewer rows or columns, or send CSV") from None
    return done.returncode
