"""Top-down growth shared by the greedy learners: a binned table, a criterion and prices in, trees out.

Tree i is a pure function of (table, parameters, seed, i), whoever grows it and in whatever order.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.binning import Binning
from models.costs import MILLION, CostModel
from models.kernels.growing import Fees, grow
from models.kernels.splitting import Bins, Criterion
from models.schema import CATEGORICAL, Schema
from models.tree import Tree

GRID = 2**20  # weights are rounded to multiples of a power of two this far below the greatest, so that sums and differences are exact


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

    def tree(self, i: int) -> Tree:
        """Tree i: on a bootstrap sample of the rows, or on all of them."""
        entropy = np.random.SeedSequence((self.seed, i))
        weights = self.weights
        if self.bootstrap:
            rows = len(weights)
            picks = np.random.default_rng(entropy).integers(0, rows, rows, dtype=np.int32)
            weights = weights * np.bincount(picks, minlength=rows)
            del picks
        nodes, children, *grown = grow(
            self.bins, weights, self.criterion, self._fees(), self.classes, int(entropy.generate_state(1, np.uint64)[0] >> 1)
        )
        for k, size in enumerate((nodes,) * 6 + (children,) * 2):
            grown[k] = grown[k][:size].copy()  # one at a time, so that no two whole copies are held
        return self._tree(*grown)

    def trees(self, most: int, n_jobs: int = 1) -> Iterator[Tree]:
        """Trees 0, 1, ... in that order; `n_jobs` threads grow ahead."""
        if n_jobs == 1:
            yield from map(self.tree, range(most))
            return
        with ThreadPoolExecutor(n_jobs) as pool:
            waiting: list[Future[Tree]] = [pool.submit(self.tree, i) for i in range(min(most, n_jobs + 1))]
            try:
                for i in range(most):
                    done = waiting.pop(0).result()
                    if i + n_jobs + 1 < most:
                        waiting.append(pool.submit(self.tree, i + n_jobs + 1))
                    yield done
            finally:
                for future in waiting:
                    future.cancel()

    def _fees(self) -> Fees:
        prices = self.costs.served
        floor = prices.floor / MILLION or 1.0
        return Fees(prices.cost / MILLION, prices.cost_in_group / MILLION, prices.group, floor, self.on_path)

    def _tree(self, feature, cut, missing, first, many, values, child, child_bin) -> Tree:  # type: ignore[no-untyped-def]
        """The kernel's nodes with real thresholds, and child tables by category instead of by bin."""
        nodes = len(feature)
        threshold = np.zeros(nodes)
        tables = np.zeros(nodes, np.int64)
        categorical = [i for i, described in enumerate(self.schema.features) if described.kind == CATEGORICAL]
        for f in range(len(self.schema)):
            here = np.flatnonzero(feature == f)
            if f in categorical:
                tables[here] = len(self.schema.features[f].categories)
            else:
                tables[here] = 2
                threshold[here] = self.binning.edges[f][cut[here]] if len(here) else 0.0
        start = np.concatenate([[0], np.cumsum(tables)])
        children = np.full(start[-1], -1, np.int32)
        numeric = np.flatnonzero((feature >= 0) & ~np.isin(feature, categorical))
        children[start[numeric]] = child[first[numeric]]
        children[start[numeric] + 1] = child[first[numeric] + 1]
        for i in np.flatnonzero(np.isin(feature, categorical)):
            by_bin = np.full(257, -1, np.int32)
            by_bin[child_bin[first[i] : first[i] + many[i]]] = child[first[i] : first[i] + many[i]]
            children[start[i] : start[i + 1]] = by_bin[self.binning.bin_of[feature[i]]]
        return Tree(feature, np.full(nodes, -np.inf), threshold, start, children, missing, values)


def on_grid(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights as multiples of a power of two; whole numbers up to a million stay as they are."""
    if not len(weights) or weights.max() <= 0 or (weights == np.rint(weights)).all():
        return weights
    step = 2.0 ** np.ceil(np.log2(weights.max() / GRID))
    return np.asarray(np.rint(weights / step) * step)
