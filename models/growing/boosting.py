"""Boosted trees, each grown on what those before it left: a path along which money comes to count for less and less."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frugal.models.growing import rules
from frugal.models.growing.binning import Binning
from frugal.models.growing.grower import Grower
from frugal.models.growing.targets import FREELY
from frugal.models.kernels.growth import boosting
from frugal.models.kernels.growth.context import Context
from frugal.models.kernels.growth.growing import Limits
from frugal.models.kernels.growth.questions import Bins
from frugal.models.kernels.growth.targets import GRADIENTS, Target
from frugal.models.schema import Schema
from frugal.models.threads import in_threads
from frugal.models.tree import Leaf, Tree, sparse

LOSSES = {"log": boosting.LOG, "squared": boosting.SQUARED}
RAREST = 1e-6  # the least share of a class that the first scores tell


@dataclass(frozen=True)
class Booster:
    """Grows a path of trees on one table. `grower` has the bins, the limits, the prices and the weights.

    Every node keeps its scores, inner ones too: a tree that is cut short says what it knew where it stands.
    """

    grower: Grower
    classes: NDArray[np.int32]
    many: int  # classes
    loss: str
    l2: float
    learning_rate: float
    subsample: float
    scores: NDArray[np.float64]  # rows x scores: what all trees so far say; of two classes there is one score

    @classmethod
    def of(
        cls,
        bins: Bins,
        binning: Binning,
        context: Context,
        classes: NDArray[np.int32],
        many: int,
        weights: NDArray[np.float64],
        *,
        loss: str,
        l2: float,
        learning_rate: float,
        subsample: float,
        limits: Limits,
        trend: NDArray[np.int8] = FREELY,
        seed: int,
        threads: int,
    ) -> "Booster":
        start = _first_scores(classes, many, weights, loss)
        scores = np.tile(start, (len(classes), 1))
        sums = 2 * len(start)
        target = Target(GRADIENTS, np.empty(0, np.int32), sums, sums + 1, sums, np.empty((len(classes), sums)), 0.0, False, 1.0, trend)
        grower = Grower(bins, binning, target, rules.loss(l2), context, weights, seed, limits, bootstrap=False, threads=threads)
        return cls(grower, classes, many, loss, l2, learning_rate, subsample, scores)

    def trees(self, lams: Sequence[float], each: int) -> Iterator[Tree]:
        """First one that asks nothing, then at most `each` for every worth of money: the next comes at once where no question is worth
        its price."""
        yield Tree.of(Leaf(self._served(self.scores[:1])[0].tolist()), Schema([]))
        drawn = 0
        for lam in lams:
            for _ in range(each):
                tree = self._next(lam, drawn)
                drawn += 1
                if tree is None:
                    break
                yield tree

    def _next(self, lam: float, drawn: int) -> Tree | None:
        grower, scores = self.grower, self.scores
        boosting.derive(LOSSES[self.loss], self.classes, grower.weights, scores, grower.target.derivatives)
        rows = self._rows(drawn)
        tree, node = grower.grown(rows, grower.weights[rows], rules.loss(self.l2, lam), grower.context)
        if tree.feature[0] < 0:
            return None
        sums = tree.values.reshape(-1, 2, scores.shape[1])
        values = -sums[:, 0] / (sums[:, 1] + self.l2)
        if len(grower.target.trend):
            values = np.clip(values, node.low[: len(values), None], node.high[: len(values), None])
        values *= self.learning_rate
        values[0] = 0.0  # a tree that has not been asked anything says nothing: with nothing known, the shares of the classes are told

        def work(part: slice) -> None:
            boosting.settle(node, grower.bins, grower.context, part.start, part.stop, values, scores)

        in_threads(work, len(scores), grower.threads)
        return tree._replace(**sparse(self._served(values)))

    def _rows(self, drawn: int) -> NDArray[np.int32]:
        total = len(self.classes)
        if self.subsample == 1:
            return np.arange(total, dtype=np.int32)
        chance = np.random.default_rng((self.grower.seed, drawn)).random(total, np.float32)
        return np.flatnonzero(chance < self.subsample).astype(np.int32)

    def _served(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of all classes, as votes are counted: of two the first has none. Those of squared loss, between -1 and 1, count twice:
        their softmax is then nearest to a probability."""
        told = scores * (2.0 if self.loss == "squared" else 1.0)
        return np.column_stack([np.zeros(len(told)), told]) if self.many == 2 else told


def _first_scores(classes: NDArray[np.int32], many: int, weights: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """What is said of every row before the first tree: the shares of the classes."""
    shares = np.bincount(classes, weights, many)
    shares = np.maximum(shares / shares.sum(), RAREST)
    if loss == "squared":
        return np.asarray(2 * (shares[1:] if many == 2 else shares) - 1)
    return np.asarray(np.log(shares[1:] / shares[0]) if many == 2 else np.log(shares))
