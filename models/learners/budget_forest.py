"""BudgetRF: Nan, Wang, Saligrama, Feature-Budgeted Random Forest (2015), Algorithm 1."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from models.costs import millionths, money
from models.grower import Grower
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
        growers = self._growers(prepared, rows, grid, bootstrap=True)
        grown = [
            self._grow_within(grower, prepared, rows, held_out, alpha, limit, progress) for alpha, grower in zip(grid, growers, strict=True)
        ]
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
        self,
        grower: Grower,
        prepared: Prepared,
        rows: Rows,
        held_out: Rows | None,
        alpha: float,
        limit: float | None,
        progress: Progress | None,
    ) -> Grown:
        """Algorithm 1: add trees while the mean cost on the rows held out stays within the limit.

        Measuring a forest takes time in proportion to its trees, so it is not measured at every size, but at 1, 2, 3, 4, 6, 9, ...; when
        one is over the limit, halving finds the last size that is within it and whose successor is not.
        """
        trees: list[Tree] = []
        most = int(self.max_trees)
        within, found = 0, (np.nan, np.nan)
        if held_out is not None and limit is not None:  # without one every tree is kept, and the last is measured
            found = self._measure([Leaf(rows.counts().tolist())], prepared, held_out, "majority")
        due = 1 if limit is not None else most
        for tree in grower.trees(most):
            trees.append(tree)
            if held_out is not None and len(trees) == due:
                next_found = self._measure(trees, prepared, held_out, "majority")
                if limit is not None and next_found[1] > limit:
                    within, found = self._last_within(trees, within, found, prepared, held_out, limit)
                    return Grown(alpha, trees[:within], *found)
                within, found = due, next_found
                due = min(most, due + max(1, due // 2))
            if progress is not None:
                progress(alpha, len(trees), found[1])
        return Grown(alpha, trees, *found)

    def _last_within(
        self, trees: list[Tree], within: int, found: tuple[float, float], prepared: Prepared, held_out: Rows, limit: float
    ) -> tuple[int, tuple[float, float]]:
        """By halving between a size within the limit and all trees, which are over it: (a size whose successor is over, its measures)."""
        over = len(trees)
        while over - within > 1:
            middle = (within + over) // 2
            measured = self._measure(trees[:middle], prepared, held_out, "majority")
            if measured[1] > limit:
                over = middle
            else:
                within, found = middle, measured
        return within, found
