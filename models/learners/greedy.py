"""GreedyTree: the subroutine of Algorithm 1 in Nan, Wang, Saligrama, Feature-Budgeted Random Forest (2015); and what its forest shares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from models.acquire import acquire, threads
from models.binning import Binning
from models.costs import CostModel
from models.criteria import criterion, impurity
from models.ensemble import Ensemble
from models.grower import Grower, on_grid
from models.learners.estimator import Learner
from models.schema import Schema
from models.table import read_weights
from models.tree import Leaf, Tree


@dataclass(frozen=True)
class Rows:
    """Some rows of a table, with their classes and weights."""

    codes: NDArray[np.float64]
    classes: NDArray[np.int32]
    weights: NDArray[np.float64]
    count: int  # of classes

    def counts(self) -> NDArray[np.float64]:
        return np.asarray(np.bincount(self.classes, self.weights, self.count), np.float64)


@dataclass(frozen=True)
class Prepared:
    """A table that is checked, encoded and priced."""

    rows: Rows
    schema: Schema
    costs: CostModel
    seed: int

    def split(self, fraction: float, hold_out: bool) -> tuple[Rows, Rows | None]:
        """Rows to grow on, and rows held out if any are needed."""
        if isinstance(fraction, bool) or not isinstance(fraction, (int, float, np.floating)) or not 0 < fraction < 1:
            raise ValueError(f"validation_fraction is {fraction!r}: expected a number between 0 and 1")
        total = len(self.rows.codes)
        if not hold_out:
            return self.rows, None
        if total == 1:
            return self.rows, self.rows
        shuffled = np.random.default_rng((self.seed, 2**32)).permutation(total)
        held = min(total - 1, max(1, round(total * fraction)))
        return self._some(np.sort(shuffled[held:])), self._some(np.sort(shuffled[:held]))

    def _some(self, which: NDArray[np.int64]) -> Rows:
        return Rows(self.rows.codes[which], self.rows.classes[which], self.rows.weights[which], self.rows.count)


class GreedyLearner(Learner):
    """The criterion, the table and the end of a fit, shared by the tree and the forest."""

    alpha: Any
    impurity: str
    power: int
    terms: Any
    split: str
    stumps: str
    price: str
    max_bins: int
    order: Any
    stop: Any
    validation_fraction: float
    n_jobs: int | None
    random_state: Any

    def _alphas(self) -> list[float]:
        """The grid: alpha itself, or each of a sequence."""
        grid = [self.alpha] if np.ndim(self.alpha) == 0 else list(self.alpha)
        if not grid:
            raise ValueError("alpha is an empty grid: give a number or a sequence of numbers")
        for alpha in grid:
            impurity(self.impurity, len(self.classes_), alpha, self.power, self.terms)
        return [float(alpha) for alpha in grid]

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
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
        if self.price not in ("constant", "path"):
            raise ValueError(f"price is {self.price!r}: expected 'constant' or 'path'")
        jobs = threads(self.n_jobs)
        binning = Binning.of(rows.codes, prepared.schema, self.max_bins, jobs, prepared.seed)
        bins, weights = binning.apply(rows.codes, rows.classes, prepared.schema, jobs), on_grid(rows.weights)
        return [
            Grower(
                bins=bins,
                binning=binning,
                schema=prepared.schema,
                costs=prepared.costs,
                criterion=criterion(impurity(self.impurity, rows.count, alpha, self.power, self.terms), self.split, self.stumps),
                weights=weights,
                classes=rows.count,
                seed=prepared.seed,
                bootstrap=bootstrap,
                on_path=self.price == "path",
                threads=jobs,
            )
            for alpha in alphas
        ]

    def _measure(self, trees: Sequence[Tree | Leaf], prepared: Prepared, rows: Rows, vote: Any) -> tuple[float, float]:
        """Error and mean cost of trees on some rows, under the learner's own order and stop."""
        ensemble = Ensemble.of(
            trees, prepared.schema, prepared.costs, classes=range(rows.count), vote=vote, order=self.order, stop=self.stop
        )
        found = acquire(ensemble, rows.codes, n_jobs=self.n_jobs)
        wrong = float(np.average(found.labels != rows.classes, weights=rows.weights))
        return wrong, float(np.average(found.cost, weights=rows.weights))

    def _finish(
        self, prepared: Prepared, rows: Rows, trees: Sequence[Tree | Leaf], vote: Any, learner: str, metrics: dict[str, float]
    ) -> None:
        """Set what a fit leaves behind."""
        parameters = {name: _plain(value) for name, value in self.get_params().items() if name not in ("costs", "categorical", "n_jobs")}
        known = {name: value for name, value in metrics.items() if np.isfinite(value)}
        self.ensemble_ = Ensemble.of(
            trees,
            prepared.schema,
            prepared.costs,
            classes=self.classes_.tolist(),
            vote=vote,
            order=self.order,
            stop=self.stop,
            learner=learner,
            parameters=parameters,
            metrics={"held_out": known} if known else {},
        )
        walked = acquire(self.ensemble_, rows.codes, to_leaves=True, n_jobs=self.n_jobs)
        self.expected_cost_ = float(np.average(walked.cost, weights=rows.weights))


class GreedyTreeClassifier(GreedyLearner):
    """One greedy minimax tree, grown until F is zero or no question lowers it.

    The parameters are those of `BudgetForestClassifier`, less the budget and the number of trees.

    Examples
    --------
    >>> tree = GreedyTreeClassifier(costs={"x0": 1, "x1": 5}).fit([[0, 0], [0, 1], [1, 0], [1, 1]], ["no", "no", "no", "yes"])
    >>> print(tree.ensemble_.text(0))
    x0 <= 0.5?  [3, 1]
      yes, missing: no  [2, 0]
      no: x1 <= 0.5?  [1, 1]
        yes, missing: no  [1, 0]
        no: yes  [0, 1]
    """

    def __init__(
        self,
        impurity: Literal["threshold-pairs", "clipped-pairs", "powers", "polynomial"] = "threshold-pairs",
        alpha: float | Sequence[float] = 0.0,
        power: int = 2,
        split: Literal["minimax", "expected"] = "minimax",
        stumps: Literal["exact", "random"] = "exact",
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
        self.impurity = impurity
        self.alpha = alpha
        self.power = power
        self.split = split
        self.stumps = stumps
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the tree."""
        prepared = self._prepare(X, y, sample_weight)
        grid = self._alphas()
        rows, held_out = prepared.split(self.validation_fraction, hold_out=len(grid) > 1)
        best: tuple[float, float, float, Tree] | None = None
        for alpha, grower in zip(grid, self._growers(prepared, rows, grid, bootstrap=False), strict=True):
            tree = grower.tree(0)
            error, cost = (np.nan, np.nan) if held_out is None else self._measure([tree], prepared, held_out, "counts")
            if best is None or (error, cost, -alpha) < best[:3]:
                best = (error, cost, -alpha, tree)
        assert best is not None
        self.alpha_ = -best[2]
        self._finish(prepared, rows, [best[3]], "counts", "greedy-tree", {"error": best[0], "mean_cost": best[1]})
        return self


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
