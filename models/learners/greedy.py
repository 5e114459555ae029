"""GreedyTree: the subroutine of Algorithm 1 in Nan, Wang, Saligrama, Feature-Budgeted Random Forest (2015); and what its forest shares."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np

from frugal.models.acquire import acquire_classes
from frugal.models.ensemble import Ensemble
from frugal.models.flat import Flat
from frugal.models.growing.binning import MOST_BINS, Binning
from frugal.models.growing.grower import Grower
from frugal.models.growing.rules import IMPURITIES, SPLITS, STUMPS, impurity, minimax
from frugal.models.growing.targets import constant, counts, on_grid, on_path
from frugal.models.learners.estimator import Learner
from frugal.models.learners.parameters import Choice, Grid, Number, Terms, Whole, learned, learner, parameter
from frugal.models.learners.prepared import Prepared, Rows
from frugal.models.learners.progress import Progress, Tell, silent
from frugal.models.threads import threads


@learner
class GreedyLearner(Learner):
    """The criterion, the table and the end of a fit, shared by the tree and the forest."""

    paper = "Nan, Wang, Saligrama: Feature-Budgeted Random Forest, ICML 2015"
    impurity: Literal["threshold-pairs", "clipped-pairs", "powers", "polynomial"] = parameter(
        Choice(tuple(IMPURITIES)),
        "what makes a set of cases impure: equation 11, the appendix's variant of it, 14 or 13 of the paper",
        default="threshold-pairs",
    )
    alpha: float | Sequence[float] = parameter(
        Grid(Number(0)),
        "cases of a class that count as noise; a list is a grid, decided by least error on rows held out within the budget",
        default=0.0,
    )
    power: int = parameter(Whole(2, 16), "the exponent of the impurities powers and polynomial", default=2)
    split: Literal["minimax", "expected"] = parameter(
        Choice(SPLITS), "judge a question by its worst outcome, or by the mean outcome", default="minimax"
    )
    stumps: Literal["exact", "random"] = parameter(
        Choice(STUMPS), "try every cut of the bins, or a random few as in section 3", default="exact"
    )
    validation_fraction: float = parameter(Number(0, 1, open=True), "rows held out where there is a budget or a grid", default=0.3)
    max_bins: int = parameter(Whole(2, MOST_BINS), "distinct values of a number that growing tells apart", default=255)
    order: Literal["votes", "sequential"] = parameter(
        Choice(("votes", "sequential")), "ask what most votes per cost wait for, or tree after tree", default="votes"
    )
    stop: Literal["decided", "leaf"] = parameter(
        Choice(("decided", "leaf")), "stop when no answer can change the label, or at the leaves", default="decided"
    )
    price: Literal["constant", "path"] = parameter(
        Choice(("constant", "path")), "the paper's cost, or next to nothing for what the path has bought", default="constant"
    )
    terms: Any = parameter(Terms(), "of the polynomial: pairs of a factor and one exponent per class", default=None)
    alpha_: float = learned()

    def _alphas(self) -> list[float]:
        """The grid: alpha itself, or each of a sequence."""
        grid = [float(alpha) for alpha in Grid.values(self.alpha)]
        for alpha in grid:
            impurity(self.impurity, len(self.classes_), alpha, self.power, self.terms)
        return grid

    def _growers(self, prepared: Prepared, rows: Rows, alphas: Sequence[float], bootstrap: bool) -> list[Grower]:
        """One for each alpha, all on the same bins."""
        jobs = threads(self.n_jobs)
        binning = Binning.of(rows.codes, prepared.schema, self.max_bins, jobs, prepared.seed)
        bins, weights = binning.apply(rows.codes, prepared.schema, jobs), on_grid(rows.weights)
        return [
            Grower(
                bins=bins,
                binning=binning,
                context=on_path(prepared.costs) if self.price == "path" else constant(prepared.costs),
                target=counts(rows.classes, rows.count),
                rule=minimax(impurity(self.impurity, rows.count, alpha, self.power, self.terms), self.split, self.stumps),
                weights=weights,
                seed=prepared.seed,
                bootstrap=bootstrap,
                threads=jobs,
            )
            for alpha in alphas
        ]

    def _ensemble(self, trees: Flat, prepared: Prepared, vote: Any) -> Ensemble:
        """Trees as they are to be served."""
        stop = "leaf" if self.reader else self.stop
        settings: dict[str, Any] = {"vote": vote, "order": self.order, "stop": stop, "smoothing": prepared.smoothing()}
        settings |= {"penalties": prepared.penalties, "sureness": self._sureness(prepared)}
        return Ensemble(trees, prepared.schema, prepared.costs, classes=self.classes_.tolist(), **settings)

    def _measure(self, trees: Flat, prepared: Prepared, rows: Rows, vote: Any) -> tuple[float, float]:
        """Error, or what mistakes cost, and mean cost of trees on some rows, under the learner's own order and stop."""
        ensemble = self._ensemble(trees, prepared, vote)
        found = acquire_classes(ensemble, rows.codes, n_jobs=self.n_jobs)
        return prepared.mistakes(found.labels, rows), float(np.average(found.cost, weights=rows.weights))


@learner
class GreedyTreeClassifier(GreedyLearner):
    """One greedy minimax tree, grown until F is zero or no question lowers it.

    The parameters are those of `BudgetForestClassifier`, less the budget and the number of trees.

    Examples
    --------
    >>> tree = GreedyTreeClassifier(costs={"x0": 1, "x1": 5}).fit([[0, 0], [0, 1], [1, 0], [1, 1]], ["no", "no", "no", "yes"])
    >>> print(tree.ensemble_.text(0))
    x0 <= 0.5?  [3, 1]
      yes: no  [2, 0]
      no: x1 <= 0.5?  [1, 1]
        yes: no  [1, 0]
        no: yes  [0, 1]
    """

    name = "greedy-tree"
    summary = "one greedy minimax tree: the subroutine of the forest's Algorithm 1"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, progress: Tell = silent) -> Self:
        """Grow the tree; `progress` is told after each alpha."""
        prepared = self._prepare(X, y, sample_weight)
        grid = self._alphas()
        rows, held_out = prepared.split(self.validation_fraction, hold_out=len(grid) > 1)
        best: tuple[float, float, float, Flat] | None = None
        for alpha, grower in zip(grid, self._growers(prepared, rows, grid, bootstrap=False), strict=True):
            tree = Flat.of([grower.tree(0)])
            error, cost = (np.nan, np.nan) if held_out is None else self._measure(tree, prepared, held_out, "counts")
            progress(Progress("growing", (grid.index(alpha) + 1) / len(grid), 1, None if np.isnan(cost) else cost))
            if best is None or (error, cost, -alpha) < best[:3]:
                best = (error, cost, -alpha, tree)
        assert best is not None
        self.alpha_ = -best[2]
        ensemble = self._read_for(self._ensemble(best[3], prepared, "counts"), prepared, rows)
        settings = self._points(ensemble, prepared, rows) if self.points else {}
        self._finish(ensemble, prepared, rows, {"error": best[0], "mean_cost": best[1]}, **settings)
        return self

    def _again(self, prepared: Prepared, rows: Rows, tell: Tell = silent) -> Ensemble:
        (grower,) = self._growers(prepared, rows, [getattr(self, "alpha_", self._alphas()[0])], bootstrap=False)
        return self._ensemble(Flat.of([grower.tree(0)]), prepared, "counts")
