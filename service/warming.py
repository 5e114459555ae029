"""Kernels beyond those that sessions need: compiled by a process of its own while the server answers, waited for by who comes earlier.

Once per machine. The process fills the cache and ends; whoever needs a part that it has not finished waits, in any process, and then loads
it.
"""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from frugal.models.kernels.compiling import Kernels, before_compiling, cache_folder, kernels, taken
from frugal.models.warm import PARTS as OF_MODELS
from frugal.models.warm import Parts
from frugal.service.tables.children import PACKAGES, child_environment
from frugal.service.tables.warm import read_tiny

PARTS = Parts({"deciding": OF_MODELS.work["deciding"], "reading": read_tiny, **OF_MODELS.work}, OF_MODELS.threaded)
LATER = ("reading", "predicting")  # what a server needs beside sessions; its training processes need growing too
POLL = 0.1  # seconds between two looks whether a part is compiled
NICE = 10  # requests go first; but somebody may wait for it, so it is not put behind everything else


class Compiler:
    """A process that compiles parts, in their order. It ends with this one, whichever way this one ends."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "frugal.service.warming", *parts],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=PACKAGES,
            env=child_environment(),
        )  # in the server's own session: where the kernel shares time between sessions first, nice counts within one only

    def end(self) -> None:
        """Gone when this returns."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


def compile_later() -> Compiler | None:
    """Have what the cache lacks compiled beside this process, and say so; None where nothing is missing. Sessions' kernels are left out."""
    before_compiling(lambda: _say("compiling the kernels that sessions need, once on this machine (a quarter of a minute if it is idle)"))
    missing = [part for part in LATER if not PARTS.load_cached(part)]
    if not missing or cache_folder() is None:  # without a folder every process compiles for itself
        return None
    _say("kernels for tables, /v1/predict and training compile in the background; what needs them waits until they are done")
    return Compiler([*missing, "growing"])


class Warming:
    """What a server process has loaded. Requests wait here for a part, one thread for however many of them."""

    def __init__(self) -> None:
        self._loaded: set[str] = set()
        self._loading: dict[str, asyncio.Task[None]] = {}

    def begin(self) -> Kernels:
        """What sessions need, compiled if need be; of the rest what the cache has."""
        PARTS.warm_up("deciding")
        self._loaded.update(part for part in LATER if PARTS.load_cached(part))
        return kernels()

    async def ready(self, part: str) -> None:
        """Return once a part is loaded. Compiles it here if nobody else does."""
        if part in self._loaded:
            return
        loading = self._loading.get(part)
        if loading is None or (loading.done() and loading.exception() is not None):
            loading = self._loading[part] = asyncio.create_task(self._load(part))
        await asyncio.shield(loading)

    async def _load(self, part: str) -> None:
        while not await asyncio.to_thread(PARTS.load_cached, part):
            if not taken(part):
                await asyncio.to_thread(PARTS.warm_up, part)
                break
            await asyncio.sleep(POLL)  # not in a thread: one that waits for a lock could not be stopped
        self._loaded.add(part)


def _say(line: str) -> None:
    print(f"frugal: {line}", file=sys.stderr, flush=True)


def main() -> None:
    with suppress(OSError):
        os.nice(NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    PARTS.compile_ahead(*sys.argv[1:])


def _end_with_parent() -> None:
    """The parent says nothing; when its end closes, it has ended."""
    os.read(sys.stdin.fileno(), 1)  # not sys.stdin.read: the interpreter aborts where it ends while a thread holds that
    os._exit(1)


if __name__ == "__main__":
    main()
