"""BudgetRF: Nan, Wang, Saligrama, Feature-Budgeted Random Forest (2015), Algorithm 1."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from frugal.models.costs import millionths, money
from frugal.models.ensemble import Ensemble
from frugal.models.flat import Flat, Stack
from frugal.models.growing.grower import Grower
from frugal.models.learners import points
from frugal.models.learners.greedy import GreedyLearner
from frugal.models.learners.parameters import Aside, Whole, learned, learner, parameter
from frugal.models.learners.prepared import Prepared, Rows
from frugal.models.learners.progress import Progress, Tell, silent, told

Told = Callable[[int, float], None]  # trees so far, their mean cost on rows held out or nan


@dataclass(frozen=True)
class Grown:
    """The forest of one alpha: its trees, and how it does on the rows held out (nan where none are)."""

    alpha: float
    trees: int
    flat: Flat  # a leaf where not even one tree fits the budget
    error: float
    cost: float


@learner
class BudgetForestClassifier(GreedyLearner):
    """A random forest of greedy minimax trees, as many as fit a budget.

    Trees are grown on bootstrap samples, each node asking for the feature of least c(t) / (F(S) - worst F(S_i)), and added while the mean
    cost of predicting the rows held out stays within `budget`; the tree that breaks it is dropped.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    >>> y = X[:, 0] & X[:, 1]
    >>> forest = BudgetForestClassifier(costs=[1, 10], max_trees=5, random_state=0).fit(X, y)
    >>> forest.acquire([[0, 1], [1, 1]]).cost.tolist()
    [1.0, 11.0]
    """

    name = "budget-forest"
    summary = "a random forest of greedy minimax trees, as many as fit the budget"
    budget: float | None = parameter(
        Aside("a number of at least 0, or None"),
        "mean cost per case allowed on rows held out; None grows `max_trees` and holds nothing out",
        default=None,
        before="impurity",
    )
    max_trees: int = parameter(
        Whole(1, most=1000), "trees at most; a budget may end the forest earlier", default=40, before="validation_fraction"
    )
    n_trees_: int = learned()

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, progress: Tell = silent) -> Self:
        """Grow the forest; `progress` is told after each tree, with the mean held-out cost as last measured."""
        limit = None if self.budget is None else money(millionths(self.budget, "the budget"))
        prepared = self._prepare(X, y, sample_weight)
        grid = self._alphas()
        rows, held_out = prepared.split(self.validation_fraction, hold_out=limit is not None or len(grid) > 1)
        growers = self._growers(prepared, rows, grid, bootstrap=True)

        def told(part: int, trees: int, cost: float) -> None:
            done = (part + trees / self.max_trees) / len(grid)
            progress(Progress("growing", done, trees, None if np.isnan(cost) else cost))

        best: Grown | None = None
        for part, alpha in enumerate(grid):  # of two forests only the better is kept
            grown = self._grow_within(growers[part], prepared, rows, held_out, alpha, limit, partial(told, part))
            if best is None or (grown.error, grown.cost, -alpha) < (best.error, best.cost, -best.alpha):
                best = grown
        assert best is not None
        if not best.trees:
            warnings.warn(
                f"no tree fits the budget of {limit:g} per case: the model is a single leaf that always says the commonest class. "
                "Raise the budget, or alpha for shallower trees",
                stacklevel=2,
            )
        self.alpha_, self.n_trees_ = best.alpha, best.trees
        ensemble = self._ensemble(best.flat, prepared, "majority")
        settings = self._honest(ensemble, prepared, rows, growers[grid.index(best.alpha)]) if best.trees else {}
        ensemble = self._read_for(ensemble, prepared, rows)
        if self.points and (self.reader or not best.trees):  # a reader has seen every row: what it says is judged on others
            settings |= self._points(ensemble, prepared, rows)
        self._finish(ensemble, prepared, rows, {"error": best.error, "mean_cost": best.cost}, **settings)
        return self

    def _honest(self, ensemble: Ensemble, prepared: Prepared, rows: Rows, grower: Grower) -> dict[str, Any]:
        """What makes told probabilities come true, found out of bag: each row is judged by the trees whose samples left it out."""
        self._smoothing = prepared.smoothing()
        some, apart = points.out_of_bag(grower.drawn, len(ensemble), len(rows.codes), prepared.seed)
        if not len(some):
            return {}
        judged = points.Judged(ensemble, rows.some(some), apart)
        self._smoothing = points.likeliest_smoothing(judged, prepared.seed, self.n_jobs)
        if not self.points or self.reader:
            return {"smoothing": self._smoothing}
        judged = judged._replace(ensemble=ensemble.with_settings(smoothing=self._smoothing))
        return {"smoothing": self._smoothing} | points.of_judged([judged], judged.ensemble, prepared, self.budget, n_jobs=self.n_jobs)

    def _again(self, prepared: Prepared, rows: Rows, tell: Tell = silent) -> Ensemble:
        """Where nothing was fitted before: of all trees, with the first alpha."""
        trees = getattr(self, "n_trees_", int(self.max_trees))
        if not trees:
            return self._ensemble(rows.leaf(), prepared, "majority")
        (grower,) = self._growers(prepared, rows, [getattr(self, "alpha_", self._alphas()[0])], bootstrap=True)
        ensemble = self._ensemble(Flat.of(told(grower.trees(trees), trees, tell)), prepared, "majority")
        return ensemble.with_settings(smoothing=getattr(self, "_smoothing", prepared.smoothing()))

    def _grow_within(
        self,
        grower: Grower,
        prepared: Prepared,
        rows: Rows,
        held_out: Rows | None,
        alpha: float,
        limit: float | None,
        told: Told,
    ) -> Grown:
        """Algorithm 1: add trees while the mean cost on the rows held out stays within the limit.

        Measuring a forest takes time in proportion to its trees, so it is not measured at every size, but at 1, 2, 3, 4, 6, 9, ...; when
        one is over the limit, halving finds the last size that is within it and whose successor is not.
        """
        trees = Stack()
        most = int(self.max_trees)
        within, found = 0, (np.nan, np.nan)
        if held_out is not None and limit is not None:  # without one every tree is kept, and the last is measured
            found = self._measure(rows.leaf(), prepared, held_out, "majority")
        due = 1 if limit is not None else most
        for tree in grower.trees(most):
            trees.add(tree)
            if held_out is not None and len(trees) == due:
                next_found = self._measure(trees.flat(), prepared, held_out, "majority")
                if limit is not None and next_found[1] > limit:
                    within, found = self._last_within(trees.flat(), within, found, prepared, held_out, limit)
                    flat = trees.flat().first(within, prepared.schema.arity) if within else rows.leaf()
                    return Grown(alpha, within, flat, *found)
                within, found = due, next_found
                due = min(most, due + max(1, due // 2))
            told(len(trees), found[1])
        return Grown(alpha, len(trees), trees.flat(), *found)

    def _last_within(
        self, trees: Flat, within: int, found: tuple[float, float], prepared: Prepared, held_out: Rows, limit: float
    ) -> tuple[int, tuple[float, float]]:
        """By halving between a size within the limit and all trees, which are over it: (a size whose successor is over, its measures)."""
        over = len(trees.roots)
        while over - within > 1:
            middle = (within + over) // 2
            measured = self._measure(trees.first(middle, prepared.schema.arity), prepared, held_out, "majority")
            if measured[1] > limit:
                over = middle
            else:
                within, found = middle, measured
        return within, found
