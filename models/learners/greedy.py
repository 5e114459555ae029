"""GreedyTree: the subroutine of Algorithm 1 in Nan, Wang, Saligrama, Feature-Budgeted Random Forest (2015); and what its forest shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from frugal.models.acquire import acquire_classes, threads
from frugal.models.calibrate import States, fit
from frugal.models.costs import CostModel
from frugal.models.ensemble import Ensemble
from frugal.models.flat import Flat
from frugal.models.growing.binning import MOST_BINS, Binning
from frugal.models.growing.grower import Grower
from frugal.models.growing.rules import IMPURITIES, SPLITS, STUMPS, impurity, minimax
from frugal.models.growing.targets import constant, counts, on_grid, on_path
from frugal.models.learners import points
from frugal.models.learners.estimator import Learner
from frugal.models.learners.parameters import Choice, Grid, Number, Terms, Whole, check_parameters, learned, learner, parameter
from frugal.models.learners.progress import Progress, Tell, silent
from frugal.models.schema import Schema
from frugal.models.table import read_weights
from frugal.models.tree import Leaf, Tree

SMOOTHING = 1.0  # cases of the training shares that are added to those of a node: see benchmarks/calibration.py


@dataclass(frozen=True)
class Rows:
    """Some rows of a table, with their classes and weights."""

    codes: NDArray[np.float64]
    classes: NDArray[np.int32]
    weights: NDArray[np.float64]
    count: int  # of classes

    def some(self, which: NDArray[np.int64]) -> "Rows":
        return Rows(self.codes[which], self.classes[which], self.weights[which], self.count)

    def leaf(self) -> Flat:
        """What predicts with nothing asked: a leaf with the weight of every class."""
        counts = np.bincount(self.classes, self.weights, self.count)
        return Flat.of([Tree.of(Leaf(counts.tolist()), Schema([]))])


@dataclass(frozen=True)
class Prepared:
    """A table that is checked, encoded and priced."""

    rows: Rows
    schema: Schema
    costs: CostModel
    seed: int

    def split(self, fraction: float, hold_out: bool) -> tuple[Rows, Rows | None]:
        """Rows to grow on, and rows held out if any are needed."""
        total = len(self.rows.codes)
        if not hold_out:
            return self.rows, None
        if total == 1:
            return self.rows, self.rows
        shuffled = np.random.default_rng((self.seed, 2**32)).permutation(total)
        held = min(total - 1, max(1, round(total * fraction)))
        return self.rows.some(np.sort(shuffled[held:])), self.rows.some(np.sort(shuffled[:held]))

    def smoothing(self) -> float:
        """How many cases of the training shares are added to a node's own. A weight of 2 is two cases; where all weights are below 1, as
        those that come to 1 together, the greatest is a case."""
        return SMOOTHING * min(1.0, float(self.rows.weights.max()))


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

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        check_parameters(self)
        table, classes = self._read(X, y)
        weights = read_weights(sample_weight, len(classes))
        schema, costs = self._priced(table.schema)
        rows = Rows(table.codes, classes, weights, len(self.classes_))
        if not weights.all():  # a row of weight 0 is a row that is not there
            kept = weights > 0
            rows = Rows(table.codes[kept], classes[kept], weights[kept], len(self.classes_))
        return Prepared(rows, schema, costs, seed_of(self.random_state))

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
        settings: dict[str, Any] = {"vote": vote, "order": self.order, "stop": self.stop, "smoothing": prepared.smoothing()}
        return Ensemble(trees, prepared.schema, prepared.costs, classes=self.classes_.tolist(), **settings)

    def _measure(self, trees: Flat, prepared: Prepared, rows: Rows, vote: Any) -> tuple[float, float]:
        """Error and mean cost of trees on some rows, under the learner's own order and stop."""
        ensemble = self._ensemble(trees, prepared, vote)
        found = acquire_classes(ensemble, rows.codes, n_jobs=self.n_jobs)
        wrong = float(np.average(found.labels != rows.classes, weights=rows.weights))
        return wrong, float(np.average(found.cost, weights=rows.weights))

    def _finish(self, ensemble: Ensemble, rows: Rows, metrics: dict[str, float], **honest: Any) -> None:
        """Set what a fit leaves behind; `honest` is what makes told probabilities come true."""
        parameters = {name: _plain(value) for name, value in self.get_params().items() if name not in ("costs", "categorical", "n_jobs")}
        known = {name: value for name, value in metrics.items() if np.isfinite(value)}
        self.ensemble_ = ensemble.with_settings(
            learner=self.name, parameters=parameters, metrics={"held_out": known} if known else {}, **honest
        )
        walked = acquire_classes(self.ensemble_, rows.codes, to_leaves=True, n_jobs=self.n_jobs)
        self.expected_cost_ = float(np.average(walked.cost, weights=rows.weights))


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
        honest = self._honest(prepared, rows, self.alpha_) if self.points else {}
        self._finish(self._ensemble(best[3], prepared, "counts"), rows, {"error": best[0], "mean_cost": best[1]}, **honest)
        return self

    def _honest(self, prepared: Prepared, rows: Rows, alpha: float) -> dict[str, Any]:
        """What makes told probabilities come true, fitted on trees that are like this one, each grown on four fifths of the rows and judged
        on the others."""
        found = []
        for kept, judged in points.folds(len(rows.codes), prepared.seed):
            (grower,) = self._growers(prepared, rows.some(kept), [alpha], bootstrap=False)
            ensemble = self._ensemble(Flat.of([grower.tree(0)]), prepared, "counts")
            found.append(points.states(points.Judged(ensemble, rows.some(judged), np.ones((len(judged), 1))), prepared.seed, self.n_jobs))
        return {"calibration": fit(States.joined(found), rows.count).as_dict()} if found else {}


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn calls a random state: None, a number, a RandomState or a Generator."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise ValueError(f"random_state is {random_state!r}: expected None, a whole number of at least 0, a RandomState or a Generator")
    return int(random_state)


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)
