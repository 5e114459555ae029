"""A second ensemble that says what is known means: everything unanswered is missing to it.

The trees that ask are made to ask well; the reader was grown on cases as they stand while they are served, so it knows what the same few
answers have meant before. What is told is a blend of both.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.serving.nodes import any_step
from frugal.models.kernels.serving.values import class_at, stretch, value_at


class Reader(NamedTuple):
    """Boosted trees whose scores are summed; with no trees it says nothing."""

    nodes: NDArray[np.void]
    outcomes: NDArray[np.int16]
    roots: NDArray[np.int32]
    value_start: NDArray[np.int32]
    value_class: NDArray[np.uint8]
    class_bytes: int
    values: NDArray[np.uint8]
    value_bytes: int
    blend: float  # its share of what is told


class Sight(NamedTuple):
    """What a reader sees of a case, and what it says."""

    seen: NDArray[np.float64]  # per feature: its value, or nan where it is not answered
    chances: NDArray[np.float64]  # per class


@kernel
def new_sight(reader, features, classes):
    """Room to read in: none where nobody reads."""
    reads = len(reader.roots) > 0
    return Sight(np.full(features if reads else 0, np.nan), np.empty(classes if reads else 0))


@inlined
def reads(reader):
    return len(reader.roots) > 0


@inlined
def sees(sight):
    """Whether anything is known: where nothing is, the shares of the training need no reader."""
    for value in sight.seen:
        if value == value:
            return True
    return False


@inlined
def close_eyes(reader, sight):
    """Nothing is known yet."""
    if reads(reader):
        sight.seen[:] = np.nan


@inlined
def read(reader, sight):
    """Fill in the chances of the classes, given what is seen."""
    chances = sight.chances
    chances[:] = 0.0
    for t in range(len(reader.roots)):
        i = np.int64(reader.roots[t])
        while reader.nodes[i]["feature"] >= 0:
            child = any_step(reader, i, sight.seen[reader.nodes[i]["feature"]])
            if child < 0:
                break
            i = child
        begin, end = stretch(reader, i)
        for k in range(begin, end):
            chances[class_at(reader, k)] += value_at(reader, k)
    top, total = chances[0], 0.0
    for c in range(1, len(chances)):
        top = max(top, chances[c])
    for c in range(len(chances)):
        chances[c] = np.exp(chances[c] - top)
        total += chances[c]
    for c in range(len(chances)):
        chances[c] /= total
