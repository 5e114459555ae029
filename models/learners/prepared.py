"""A table as a fit begins with it: checked, encoded, priced, its rows weighed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import CostModel
from frugal.models.flat import Flat
from frugal.models.schema import Schema
from frugal.models.tree import Leaf, Tree

SMOOTHING = 1.0  # cases of the training shares that are added to those of a node: see benchmarks/calibration.py


@dataclass(frozen=True)
class Rows:
    """Some rows of a table, with their classes and weights."""

    codes: NDArray[np.float64]
    classes: NDArray[np.int32]
    weights: NDArray[np.float64]
    count: int  # of classes

    def some(self, which: NDArray[np.int64] | slice) -> "Rows":
        return Rows(self.codes[which], self.classes[which], self.weights[which], self.count)

    def leaf(self) -> Flat:
        """What predicts with nothing asked: a leaf with the weight of every class."""
        counts = np.bincount(self.classes, self.weights, self.count)
        return Flat.of([Tree.of(Leaf(counts.tolist()), Schema([]))])


@dataclass(frozen=True)
class Prepared:
    """A table that is checked, encoded and priced."""

    rows: Rows
    schema: Schema
    costs: CostModel
    penalties: NDArray[np.float64] | None  # what mistakes cost, row: what is said, column: what is true
    seed: int

    def split(self, fraction: float, hold_out: bool) -> tuple[Rows, Rows | None]:
        """Rows to grow on, and rows held out if any are needed."""
        total = len(self.rows.codes)
        if not hold_out:
            return self.rows, None
        if total == 1:
            return self.rows, self.rows
        shuffled = np.random.default_rng((self.seed, 2**32)).permutation(total)
        held = min(total - 1, max(1, round(total * fraction)))
        return self.rows.some(np.sort(shuffled[held:])), self.rows.some(np.sort(shuffled[:held]))

    def mistakes(self, said: NDArray[np.int32], rows: Rows) -> float:
        """The share of rows whose label is wrong or, where mistakes have a price, what they cost in the mean."""
        wrong = said != rows.classes if self.penalties is None else self.penalties[said, rows.classes]
        return float(np.average(wrong, weights=rows.weights))

    def smoothing(self) -> float:
        """How many cases of the training shares are added to a node's own. A weight of 2 is two cases; where all weights are below 1, as
        those that come to 1 together, the greatest is a case."""
        return SMOOTHING * min(1.0, float(self.rows.weights.max()))


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn calls a random state: None, a number, a RandomState or a Generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise ValueError(f"random_state is {random_state!r}: expected None, a whole number of at least 0, a RandomState or a Generator")
    return int(random_state)
