"""scikit-learn's forests: as rivals with everything bought, and, made into our Ensemble, asked under hard budgets until decided.

A category is a column of its own to scikit-learn, 1 where a row has it; in the Ensemble it is a question about its feature again.
"""

from typing import NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks.frontier_parts.curves import Point
from benchmarks.frontier_parts.tables import Data, Rows
from frugal.models import Ensemble, Tree, acquire
from frugal.models.kernels.marks import CUT, LEAF, NO_TEST, NONE, ONE_CATEGORY
from frugal.models.tree import sparse

TREES = 40
BUDGETS = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)  # of the cost of everything


class Columns(NamedTuple):
    """What stands for the features in scikit-learn's table."""

    feature: np.ndarray  # per column
    category: np.ndarray  # per column: the code that it tells, or -1: the number itself

    @classmethod
    def of(cls, sizes: np.ndarray, features: list[int]) -> "Columns":
        pairs = [(i, code) for i in features for code in (range(sizes[i]) if sizes[i] else [-1])]
        return cls(*np.array(pairs).T)

    def table(self, codes: np.ndarray) -> np.ndarray:
        wide = codes[:, self.feature]
        return np.where(self.category >= 0, wide == self.category, wide).astype(np.float32)


def grown(data: Data, threads: int, trees: int = TREES, rows: Rows | None = None, features: list[int] | None = None):
    """A forest and the columns it was grown on."""
    rows, columns = rows or data.train, Columns.of(data.sizes, list(range(len(data.names))) if features is None else features)
    forest = RandomForestClassifier(trees, n_jobs=threads, random_state=data.seed)
    return forest.fit(columns.table(rows.codes), rows.classes), columns


def points(data: Data, threads: int) -> list[Point]:
    forest, columns = grown(data, threads)
    ensemble = as_ensemble(data, forest, columns)
    return [_played(data, ensemble, share * data.everything, threads) for share in BUDGETS]


def error_of_all(data: Data, threads: int) -> float:
    forest, columns = grown(data, threads)
    return float(np.mean(forest.predict(columns.table(data.test.codes)) != data.test.classes))


def as_ensemble(data: Data, forest: RandomForestClassifier, columns: Columns) -> Ensemble:
    """Every tree one vote; asked in the order of votes per price, until the label is decided."""
    trees = (_tree(estimator.tree_, columns) for estimator in forest.estimators_)
    return Ensemble.of(trees, data.schema, data.costs, classes=forest.classes_.tolist(), vote="majority", order="votes", stop="decided")


def _played(data: Data, ensemble: Ensemble, budget: float, threads: int) -> Point:
    seen, judged = (
        acquire(ensemble, rows.codes.astype(np.float32), round(budget, 6), n_jobs=threads) for rows in (data.validation, data.test)
    )
    return Point(
        seen.cost.mean(), float(np.mean(seen.labels != data.validation.classes)), judged.cost.mean(), judged.labels != data.test.classes
    )


def _tree(grown, columns: Columns) -> Tree:
    """Theirs lie in preorder, ours with siblings side by side: the children of the k-th split are 2k + 1 and 2k + 2. Where the question is
    for a category, "yes" is their right child and our first."""
    split = grown.children_left >= 0
    column = np.where(split, grown.feature, 0)
    by_category = split & (columns.category[column] >= 0)
    first, second = np.where(by_category, (grown.children_right, grown.children_left), (grown.children_left, grown.children_right))
    pairs = 1 + 2 * np.arange(split.sum())
    moved = np.zeros(len(split), int)
    moved[first[split]], moved[second[split]] = pairs, pairs + 1
    there = np.argsort(moved)
    child = np.full(len(split), NONE)
    child[moved[split]] = pairs
    cut = np.minimum(grown.threshold, np.finfo(float).max)  # inf: all that is not missing
    missing = np.where(by_category | ~grown.missing_go_to_left.astype(bool), 1, 0)  # missing is in no category
    counts = grown.value[:, 0, :] * grown.weighted_n_node_samples[:, None]
    return Tree(
        feature=np.where(split, columns.feature[column], LEAF)[there].astype(np.int32),
        kind=np.where(split, np.where(by_category, ONE_CATEGORY, CUT), NO_TEST)[there].astype(np.uint8),
        low=np.empty(0),
        threshold=np.where(split, np.where(by_category, columns.category[column], cut), 0.0)[there],
        first_child=child.astype(np.int32),
        missing=np.where(split, missing, NONE)[there].astype(np.int16),
        outcomes=np.empty(0, np.int16),
        **sparse(np.rint(counts)[there]),
    )
