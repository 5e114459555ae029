"""BudgetRF: Nan, Wang, Saligrama, Feature-Budgeted Random Forest (2015), Algorithm 1."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from models.acquire import threads
from models.costs import millionths, money
from models.learners.greedy import GreedyLearner, Prepared, Rows
from models.tree import Leaf, Tree

Progress = Callable[[float, int, float], None]


@dataclass(frozen=True)
class Grown:
    """The forest of one alpha: its trees, and how it does on the rows held out (nan where none are)."""

    alpha: float
    trees: list[Tree]
    error: float
    cost: float


class BudgetForestClassifier(GreedyLearner):
    """A random forest of greedy minimax trees, as many as fit a budget.

    Trees are grown on bootstrap samples, each node asking for the feature of least c(t) / (F(S) - worst F(S_i)), and added while the mean
    cost of predicting the rows held out stays within `budget`; the tree that breaks it is dropped.

    Parameters
    ----------
    budget : the mean cost per case allowed on held-out rows; None grows `max_trees` and holds nothing out
    impurity : "threshold-pairs" (equation 11), "clipped-pairs" (the appendix's, without its last term), "powers" (14), "polynomial" (13)
    alpha : the threshold of the first two; a sequence is a grid, decided by least held-out error within the budget
    power, terms : of the last two; see `models.criteria.impurity`
    split : "minimax" or "expected", the mean impurity of the outcomes instead of the worst
    stumps : "exact", every cut of the bins; or "random", 80, 40 or 20 per feature as in section 3
    price : "constant", the paper's c(t); or "path", where what the path has bought is next to free
    order, stop : how the forest asks and when it stops, as in `Ensemble`

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    >>> y = X[:, 0] & X[:, 1]
    >>> forest = BudgetForestClassifier(costs=[1, 10], max_trees=5, random_state=0).fit(X, y)
    >>> forest.acquire([[0, 1], [1, 1]]).cost.tolist()
    [1.0, 11.0]
    """

    def __init__(
        self,
        budget: float | None = None,
        impurity: Literal["threshold-pairs", "clipped-pairs", "powers", "polynomial"] = "threshold-pairs",
        alpha: float | Sequence[float] = 0.0,
        power: int = 2,
        split: Literal["minimax", "expected"] = "minimax",
        stumps: Literal["exact", "random"] = "exact",
        max_trees: int = 40,
        validation_fraction: float = 0.3,
        max_bins: int = 255,
        order: Literal["votes", "sequential"] = "votes",
        stop: Literal["decided", "leaf"] = "decided",
        price: Literal["constant", "path"] = "constant",
        terms: Any = None,
        costs: Any = None,
        categorical: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.budget = budget
        self.impurity = impurity
        self.alpha = alpha
        self.power = power
        self.split = split
        self.stumps = stumps
        self.max_trees = max_trees
        self.validation_fraction = validation_fraction
        self.max_bins = max_bins
        self.order = order
        self.stop = stop
        self.price = price
        self.terms = terms
        self.costs = costs
        self.categorical = categorical
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, progress: Progress | None = None) -> Self:
        """Grow the forest; `progress` is told alpha, the number of trees and their mean held-out cost after each (nan: not measured)."""
        if isinstance(self.max_trees, bool) or not isinstance(self.max_trees, (int, np.integer)) or self.max_trees < 1:
            raise ValueError(f"max_trees is {self.max_trees!r}: expected a whole number of at least 1")
        limit = None if self.budget is None else money(millionths(self.budget, "the budget"))
        prepared = self._prepare(X, y, sample_weight)
        grid = self._alphas()
        rows, held_out = prepared.split(self.validation_fraction, hold_out=limit is not None or len(grid) > 1)
        grown = [self._grow_within(prepared, rows, held_out, alpha, limit, progress) for alpha in grid]
        best = min(grown, key=lambda forest: (forest.error, forest.cost, -forest.alpha)) if held_out is not None else grown[0]
        if not best.trees:
            warnings.warn(
                f"no tree fits the budget of {limit:g} per case: the model is a single leaf that always says the commonest class. "
                "Raise the budget, or alpha for shallower trees",
                stacklevel=2,
            )
        self.alpha_, self.n_trees_ = best.alpha, len(best.trees)
        trees: Sequence[Tree | Leaf] = best.trees or [Leaf(rows.counts().tolist())]
        self._finish(prepared, rows, trees, "majority", "budget-forest", {"error": best.error, "mean_cost": best.cost})
        return self

    def _grow_within(
        self, prepared: Prepared, rows: Rows, held_out: Rows | None, alpha: float, limit: float | None, progress: Progress | None
    ) -> Grown:
        """Algorithm 1: add trees while the mean cost on the rows held out stays within the limit."""
        trees: list[Tree] = []
        grower = self._grower(prepared, rows, alpha, bootstrap=True)
        error, cost = np.nan, np.nan
        if held_out is not None and limit is not None:  # without one every tree is kept, and the last is measured
            error, cost = self._measure([Leaf(rows.counts().tolist())], prepared, held_out, "majority")
        for tree in grower.trees(int(self.max_trees), threads(self.n_jobs)):
            last = len(trees) + 1 == self.max_trees
            if held_out is not None and (limit is not None or last):
                found = self._measure([*trees, tree], prepared, held_out, "majority")
                if limit is not None and found[1] > limit:
                    break
                error, cost = found
            trees.append(tree)
            if progress is not None:
                progress(alpha, len(trees), cost)
        return Grown(alpha, trees, error, cost)
