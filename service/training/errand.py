"""What a child is there for: a table and an order in, a model out, and a word now and then about how far it is."""

import json
import mmap
import os
import resource
import threading
from dataclasses import asdict
from typing import IO, Any

from frugal.models.archive import archived
from frugal.models.learners.progress import Progress
from frugal.models.memory import lacks_memory
from frugal.models.warm import warm_up
from frugal.service.registry.describing import describe
from frugal.service.tables import unpack
from frugal.service.training import frames
from frugal.service.training.run import train
from frugal.service.training.spec import Spec

PIECE = 1 << 20  # bytes of the model that are sent at once


class Voice:
    """The way out: the parent hears of progress when there is some. Whether the process lives it sees for itself."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.pipe = pipe
        self.lock = threading.Lock()  # a learner may tell from any of its threads

    def tell(self, progress: Progress) -> None:
        self.say(frames.PROGRESS, asdict(progress))

    def say(self, kind: bytes, payload: Any = b"") -> None:
        with self.lock:
            frames.send(self.pipe, kind, payload)


def prepare() -> None:
    """All that can be done before there is an order."""
    warm_up("predicting", "growing")


def run(file: int, rows: int, voice: Voice) -> None:
    """The file has so many bytes of rows, and then the order as JSON."""
    asked = json.loads(os.pread(file, os.fstat(file).st_size - rows, rows))
    try:
        limit_memory(asked["memory"])
        _train(file, rows, asked, voice)
    except (ValueError, TypeError, OverflowError) as error:  # what learners raise about what they are given
        voice.say(frames.FAILED, {"detail": f"The learner refused: {error}"})
    except Exception as error:
        few = f"The training needs more than the {asked['memory']:,} bytes of memory that it may use."
        voice.say(frames.FAILED, {"detail": few if lacks_memory(error) else f"The training failed: {type(error).__qualname__}."})


def _train(file: int, rows: int, asked: dict[str, Any], voice: Voice) -> None:
    table = unpack(mmap.mmap(file, rows, access=mmap.ACCESS_READ))  # stays mapped: the columns are views of it
    done = train(table, Spec.from_json(asked["spec"]), voice.tell)
    voice.tell(Progress("publishing", 1.0, len(done.ensemble), done.ensemble.metrics.get("mean_cost")))
    voice.say(frames.ABOUT, {"about": describe(done.ensemble), "warnings": done.warnings})
    for part in archived(done.ensemble):
        for start in range(0, len(part), PIECE):
            voice.say(frames.ARCHIVE, bytes(part[start : start + PIECE]))
    voice.say(frames.DONE)


def limit_memory(size: int) -> None:
    """What the process may allocate; address space that is only reserved, as threads do, does not count."""
    if size:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
