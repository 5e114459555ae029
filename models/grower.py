"""Top-down growth shared by the greedy learners: a binned table, a criterion and prices in, trees out.

Tree i is a pure function of (table, parameters, seed, i), whoever grows it and in whatever order.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frugal.models.binning import Binning
from frugal.models.costs import CostModel
from frugal.models.kernels.growth.growing import grow
from frugal.models.kernels.growth.splitting import Bins, Criterion
from frugal.models.kernels.marks import CUT, ENDS, EVERY_CATEGORY, NEVER_SEEN
from frugal.models.memory import memory_limit
from frugal.models.schema import CATEGORICAL, Schema
from frugal.models.tree import Tree, sparse

GRID = 2**20  # weights are rounded to multiples of a power of two this far below the greatest, so that sums and differences are exact
MOST_SLOTS = 4  # histograms of one tree that may wait: more gained nothing on covertype
MOST_BYTES = 1 << 30  # of the histograms of all threads: what others have taken of the machine's memory is not known


@dataclass(frozen=True)
class Grower:
    """Grows trees of one kind on one table."""

    bins: Bins
    binning: Binning
    schema: Schema
    costs: CostModel
    criterion: Criterion
    weights: NDArray[np.float64]
    classes: int
    seed: int
    bootstrap: bool = True
    on_path: bool = False
    threads: int = 1

    def tree(self, i: int) -> Tree:
        """Tree i: on a bootstrap sample of the rows, or on all of them."""
        seed = int(self._entropy(i).generate_state(1, np.uint64)[0] >> 1)
        nodes, children, *grown = grow(
            self.bins, self.drawn(i), self.criterion, self.costs.served, self.on_path, self.classes, self._slots(), seed
        )
        for k, size in enumerate((nodes,) * 6 + (children,) * 2):
            grown[k] = grown[k][:size].copy()  # one at a time, so that no two whole copies are held
        return self._tree(*grown)

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

    def _slots(self) -> int:
        """As many histograms as fit the threads' part of a quarter of the memory, or of a gibibyte; a tree needs none, so the trees are
        the same."""
        cells = int(self.bins.sizes.sum() + len(self.bins.sizes))
        each = max(1, cells * self.classes * 8)
        return min(MOST_SLOTS, min(MOST_BYTES, memory_limit() // 4) // self.threads // each)

    def _tree(self, feature, cut, missing, first, many, values, child, child_bin) -> Tree:  # type: ignore[no-untyped-def]
        """The kernel's nodes with real thresholds, and tables by category instead of by bin."""
        split = np.flatnonzero(feature >= 0)
        first_child = np.full(len(feature), -1, np.int32)
        first_child[split] = child[first[split]]  # the kernel puts the children of a node side by side
        kind, threshold = np.zeros(len(feature), np.uint8), np.zeros(len(feature))
        categories = np.array([len(described.categories) for described in self.schema.features], np.int64)
        kind[split] = np.where(categories[feature[split]] > 0, EVERY_CATEGORY, CUT)
        every = np.flatnonzero(kind == EVERY_CATEGORY)
        ends = np.cumsum(categories[feature[every]])
        outcomes = np.empty(ends[-1] if len(ends) else 0, np.int16)
        for f, described in enumerate(self.schema.features):
            here = np.flatnonzero(feature == f)
            if described.kind == CATEGORICAL:
                by_bin = _outcomes_by_bin(child_bin, first[here], many[here], int(self.bins.sizes[f]))
                start = ends[feature[every] == f] - categories[f]
                outcomes[start[:, None] + np.arange(categories[f])] = by_bin[:, self.binning.bin_of[f]]
            else:
                threshold[here] = self.binning.edges[f][cut[here]]
        return Tree(
            feature=feature,
            kind=kind,
            low=np.empty(0),
            threshold=threshold,
            first_child=first_child,
            missing=np.where(missing >= 0, missing - first_child, ENDS).astype(np.int16),
            outcomes=outcomes,
            **sparse(values),
        )


def _outcomes_by_bin(child_bin: NDArray[np.int32], first: NDArray[np.int64], many: NDArray[np.int32], bins: int) -> NDArray[np.int16]:
    """Nodes x bins: the outcome of each bin of a category, NEVER_SEEN where training saw none."""
    table = np.full((len(first), bins), NEVER_SEEN, np.int16)
    node = np.repeat(np.arange(len(first)), many)
    outcome = np.arange(len(node)) - np.repeat(np.cumsum(many) - many, many)
    bin_ = child_bin[first[node] + outcome]
    seen = bin_ < bins  # missing stands behind the last bin
    table[node[seen], bin_[seen]] = outcome[seen]
    return table


def on_grid(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights as multiples of a power of two, at least one step each: a row that counts does not vanish.

    Whole numbers up to a million stay as they are.

    Examples
    --------
    >>> on_grid(np.array([1.0, 2.0, 0.0])).tolist()
    [1.0, 2.0, 0.0]
    >>> (on_grid(np.array([1.0, 0.5, 1e-9, 0.0])) * GRID).tolist()
    [1048576.0, 524288.0, 1.0, 0.0]
    """
    most = weights.max(initial=0.0)
    if most <= GRID and (weights == np.rint(weights)).all():
        return weights
    step = 2.0 ** np.ceil(np.log2(most / GRID))
    return np.asarray(np.where(weights > 0, np.maximum(np.rint(weights / step), 1.0), 0.0) * step)
