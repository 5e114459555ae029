"""The process that trains: started ahead of time, warm, at low priority; one job, then it ends. It never opens a database.

Rows come in a file, progress and the model go out by a pipe. When the parent's end of its input closes, however the parent ended, this
process ends at once: nothing trains on for nobody.
"""

import json
import mmap
import os
import resource
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from models import dump
from models.warm import warm_up
from service.reading import unpack
from service.registry.describing import describe
from service.training import frames
from service.training.run import Progress, train
from service.training.spec import Spec

BEAT = 1.0  # seconds
PIECE = 1 << 20  # bytes of the model that are sent at once


class Voice:
    """The way out: progress when it changes, and a beat every second with the work's CPU time, so that a hung child is seen to hang."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.pipe = pipe
        self.lock = threading.Lock()
        self.progress = Progress("reading", 0.0)
        self.beaten = 0.0  # processor time of the beats themselves, which are no work

    def tell(self, progress: Progress) -> None:
        self.progress = progress
        self.say(frames.PROGRESS, {**asdict(progress), "cpu": time.process_time() - self.beaten})

    def say(self, kind: bytes, payload: Any = b"") -> None:
        with self.lock:
            frames.send(self.pipe, kind, payload)

    def beat_forever(self) -> None:
        while True:
            time.sleep(BEAT)
            self.tell(self.progress)
            self.beaten = time.thread_time()


def main() -> None:
    lower_priority()
    source, voice = sys.stdin.buffer, Voice(_own_output())
    warm_up("predicting", "growing")
    voice.say(frames.READY)
    order = frames.receive(source)
    if order is None:
        return
    threading.Thread(target=_end_with_parent, args=(source,), daemon=True).start()
    threading.Thread(target=voice.beat_forever, daemon=True).start()
    folder = Path(order[1].decode())
    asked = json.loads((folder / "order").read_text())
    try:
        limit_memory(asked["memory"])
        _train(folder, asked, voice)
    except MemoryError:
        voice.say(frames.FAILED, {"detail": f"The training needs more than the {asked['memory']:,} bytes of memory that it may use."})
    except (ValueError, TypeError, OverflowError) as error:  # what learners raise about what they are given
        voice.say(frames.FAILED, {"detail": f"The learner refused: {error}"})
    except Exception as error:
        voice.say(frames.FAILED, {"detail": f"The training failed: {type(error).__qualname__}."})


def _train(folder: Path, asked: dict[str, Any], voice: Voice) -> None:
    rows = folder / "rows"
    with rows.open("rb") as file:
        rows.unlink()  # whoever is killed from here on leaves no table behind
        table = unpack(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # stays mapped: the columns are views of it
    done = train(table, Spec.from_json(asked["spec"]), voice.tell)
    voice.tell(Progress("publishing", 1.0, len(done.ensemble), done.ensemble.metrics.get("mean_cost")))
    voice.say(frames.ABOUT, {"about": describe(done.ensemble), "warnings": done.warnings})
    archive = dump(done.ensemble)
    for start in range(0, len(archive), PIECE):
        voice.say(frames.ARCHIVE, archive[start : start + PIECE])
    voice.say(frames.DONE)


def lower_priority() -> None:
    """Whoever answers requests goes first, and at once: p99 of a step beside a training was 5.6 times its idle value with nice alone."""
    os.nice(19)
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError):  # where the kernel shares time between sessions first, nice counts only within one
        Path("/proc/self/autogroup").write_text("19")


def limit_memory(size: int) -> None:
    """What the process may allocate; address space that is only reserved, as threads do, does not count."""
    if size:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _own_output() -> IO[bytes]:
    """Standard output for frames alone: what anything prints goes to standard error."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return pipe


def _end_with_parent(source: IO[bytes]) -> None:
    """The parent says nothing after the order; when its end closes, it has ended or wants this to."""
    while source.read(1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
