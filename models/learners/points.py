"""What a model says of rows that did not grow it, as they stood when they were served: at the end of their sessions and before.

With `points=True` told probabilities are calibrated on these. Whatever else is to be measured on rows that grew no tree, as operating
points are, belongs here: it needs the same rows.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from frugal.models.acquire import acquire_classes, in_threads
from frugal.models.calibrate import States
from frugal.models.costs import MILLION
from frugal.models.decide import UNLIMITED
from frugal.models.ensemble import Ensemble
from frugal.models.kernels.serving import judging
from frugal.models.kernels.serving.walking import AT_LEAVES, Forest

if TYPE_CHECKING:
    from frugal.models.learners.greedy import Rows

ENOUGH = 10_000  # rows: two numbers are fitted
FEW = 2_000  # rows below which every fifth is held out in turn
FOLDS = 5


def folds(rows: int, seed: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(rows to grow on, rows to judge): a fifth is judged, or each fifth in turn where rows are few."""
    shuffled = np.random.default_rng((seed, 2**32 + 1)).permutation(rows)
    for k in range(min(FOLDS, rows) if rows < FEW else 1):
        judged = np.zeros(rows, bool)
        judged[shuffled[k::FOLDS]] = True
        if not judged.all():
            yield np.flatnonzero(~judged), np.flatnonzero(judged)


def out_of_bag(drawn: Callable[[int], NDArray[np.float64]], trees: int, rows: int, seed: int) -> tuple[Any, NDArray[np.float64]]:
    """(some rows, rows x trees: 1 where the tree's sample left the row out); rows that every tree has seen are not among them."""
    some = np.sort(np.random.default_rng((seed, 2**32 + 1)).permutation(rows)[:ENOUGH])
    apart = np.empty((len(some), trees))
    for tree in range(trees):
        apart[:, tree] = drawn(tree)[some] == 0
    judged = apart.any(axis=1)
    return some[judged], apart[judged]


def states(ensemble: Ensemble, rows: "Rows", apart: NDArray[np.float64], seed: int, n_jobs: int | None) -> States:
    """Every row at the end of its session, and twice cut short by budgets drawn between nothing and what the session would have cost.

    Sessions here go on to the leaves: a forest is decided early where it is right about a row, which the trees that grew on that row are
    too often, so that to stop there would give the truth away.
    """
    forest = ensemble.served._replace(stop=AT_LEAVES)
    cost = np.rint(acquire_classes(ensemble, rows.codes, to_leaves=True, n_jobs=n_jobs).cost * MILLION)
    shares = np.random.default_rng((seed, 2**32 + 2)).random((2, len(cost)))
    budgets = [np.full(len(cost), UNLIMITED), *(cost * shares).astype(np.int64)]
    return States.joined([_judged(forest, ensemble, rows, apart, each, n_jobs) for each in budgets])


def _judged(
    forest: Forest, ensemble: Ensemble, rows: "Rows", apart: NDArray[np.float64], budgets: NDArray[np.int64], n_jobs: int | None
) -> States:
    count = len(rows.codes)
    labels, (told, far, done) = np.empty(count, np.int32), np.empty((3, count))

    def work(part: slice) -> None:
        judging.judge(
            forest,
            ensemble.trail,
            ensemble.prices,
            rows.codes[part],
            budgets[part],
            apart[part],
            labels[part],
            told[part],
            far[part],
            done[part],
        )

    in_threads(work, count, n_jobs)
    return States(labels, told, far, done, labels == rows.classes, rows.weights)
