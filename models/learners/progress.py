"""How far a fit is, as the learner itself tells it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Progress:
    """`fraction` from 0 to 1 of the whole; the mean cost so far on rows held out, where any are."""

    phase: str
    fraction: float
    trees: int | None = None
    mean_cost: float | None = None


Tell = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Nobody listens."""


def told(trees: Iterator[Any], most: int, tell: Tell) -> Iterator[Any]:
    """Trees as they come, each told of."""
    for i, tree in enumerate(trees):
        tell(Progress("growing", i / most, i + 1))
        yield tree
