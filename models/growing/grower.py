"""Top-down growth shared by all learners: a binned table, a target, a rule and prices in, trees out.

Tree i is a pure function of (table, parameters, seed, i), whoever grows it and in whatever order.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from frugal.models.growing.binning import Binning
from frugal.models.growing.layout import Layout
from frugal.models.kernels.growth.context import Context
from frugal.models.kernels.growth.growing import NO_ROOM, Limits, grow
from frugal.models.kernels.growth.nodes import Nodes, Space, new_space
from frugal.models.kernels.growth.questions import Bins
from frugal.models.kernels.growth.rules import Rule
from frugal.models.kernels.growth.targets import Target
from frugal.models.memory import memory_limit
from frugal.models.tree import Tree

MOST_SLOTS = 4  # histograms of one tree that may wait: more gained nothing on covertype
MOST_BYTES = 1 << 30  # of the histograms of all threads: what others have taken of the machine's memory is not known
PLACES = 512  # nodes that may wait and know which features are dead
NO_LIMIT = 2**31 - 1


def limits(depth: int = NO_LIMIT, leaves: int = 0, rows: int = 1, weight: float = 0.0, gain: float = 0.0, score: float = 0.0) -> Limits:
    """Where growing ends: by default where nothing is gained. With a number of `leaves` the best question of all is asked next."""
    return Limits(depth, leaves or NO_LIMIT, rows, float(weight), float(gain), float(score), leaves > 0)


ANYWHERE = limits()


@dataclass(frozen=True)
class Grower:
    """Grows trees of one kind on one table."""

    bins: Bins
    binning: Binning
    target: Target
    rule: Rule
    context: Context
    weights: NDArray[np.float64]
    seed: int
    limits: Limits = ANYWHERE
    bootstrap: bool = True
    threads: int = 1
    _own: threading.local = field(default_factory=threading.local, init=False, compare=False)

    @cached_property
    def _layout(self) -> Layout:
        return Layout.of(self.bins, self.binning)

    def tree(self, i: int) -> Tree:
        """Tree i: on a bootstrap sample of the rows, or on all of them."""
        seed = int(self._entropy(i).generate_state(1, np.uint64)[0] >> 1)
        weights = self.drawn(i)
        rows = np.flatnonzero(weights > 0).astype(np.int32)
        return self.grow(rows, weights[rows], seed)

    def grow(self, rows: NDArray[np.int32], weights: NDArray[np.float64], seed: int = 0, context: Context | None = None) -> Tree:
        """A tree on some rows, each with its weight; `context` says what is bought already on the way to them."""
        return self.grown(rows, weights, self.rule, context or self.context, seed)[0]

    def grown(
        self, rows: NDArray[np.int32], weights: NDArray[np.float64], rule: Rule, context: Context, seed: int = 0
    ) -> tuple[Tree, Nodes]:
        """A tree by another rule, and as it stands in this thread's space until the next one grows."""
        while True:
            space = self._space(len(rows))
            nodes, sums = grow(self.bins, self.target, rows, weights, rule, context, self.limits, space, seed)
            if nodes != NO_ROOM:
                return self._layout.tree(space.node, nodes, sums), space.node
            self._own.room *= 2

    def drawn(self, i: int) -> NDArray[np.float64]:
        """The weight of every row in tree i: 0 for those that its bootstrap sample left out."""
        if not self.bootstrap:
            return self.weights
        rows = len(self.weights)
        picks = np.random.default_rng(self._entropy(i)).integers(0, rows, rows, dtype=np.int32)
        return self.weights * np.bincount(picks, minlength=rows)

    def _entropy(self, i: int) -> np.random.SeedSequence:
        return np.random.SeedSequence((self.seed, i))

    def trees(self, most: int) -> Iterator[Tree]:
        """Trees 0, 1, ... in that order; threads grow ahead."""
        if self.threads == 1:
            yield from map(self.tree, range(most))
            return
        ahead = self.threads + 1
        with ThreadPoolExecutor(self.threads) as pool:
            waiting: list[Future[Tree]] = [pool.submit(self.tree, i) for i in range(min(most, ahead))]
            try:
                for i in range(most):
                    done = waiting.pop(0).result()
                    if i + ahead < most:
                        waiting.append(pool.submit(self.tree, i + ahead))
                    yield done
            finally:
                for future in waiting:
                    future.cancel()

    def _space(self, rows: int) -> Space:
        """Room to grow in: of this thread, made once for the whole table, and anew only where rows that are shared out need more."""
        room = max(getattr(self._own, "room", 0), len(self.weights), rows)
        if getattr(self._own, "room", 0) < room or len(self._own.space.at.rows) < room:
            sizes = self.bins.sizes + 1
            widest = int(sizes.max(initial=1))
            self._own.space = new_space(
                len(sizes), int(sizes.sum()), widest, self.target.sums, self.context, room, self._slots(), self._places()
            )
        self._own.room = room
        return self._own.space  # type: ignore[no-any-return]

    def _places(self) -> int:
        """Nodes that may wait and know which features are dead; the others find out anew."""
        return min(PLACES, self.limits.leaves + 1) if self.limits.leafwise else PLACES

    def _slots(self) -> int:
        """As many histograms as fit the threads' part of a quarter of the memory, or of a gibibyte; a tree needs none, so the trees are
        the same."""
        cells = int(self.bins.sizes.sum() + len(self.bins.sizes))
        each = max(1, cells * self.target.sums * 8)
        return min(MOST_SLOTS, min(MOST_BYTES, memory_limit() // 4) // self.threads // each)
