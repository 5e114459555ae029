"""Boosting that subtracts from a question's worth what its cases would really pay for it; along a path, money counts for less and less."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import millionths, shown
from frugal.models.ensemble import Ensemble
from frugal.models.flat import Flat
from frugal.models.growing.binning import MOST_BINS, Binning
from frugal.models.growing.boosting import LOSSES, Booster
from frugal.models.growing.grower import limits
from frugal.models.growing.targets import FREELY, NOBODY, of_cases, of_model, on_grid, owing
from frugal.models.kernels.growth.context import Context
from frugal.models.kernels.growth.questions import Bins
from frugal.models.kernels.marks import CUT, ENDS, SOME_CATEGORIES
from frugal.models.learners import reading
from frugal.models.learners.estimator import Learner
from frugal.models.learners.parameters import Choice, Directions, Number, NumberOr, Whole, learned, learner, parameter
from frugal.models.learners.prepared import Prepared, Rows
from frugal.models.learners.progress import Tell, silent, told
from frugal.models.naming import meant
from frugal.models.schema import NUMERIC, Feature
from frugal.models.threads import threads
from frugal.models.tree import Leaf, Split, Tree

DEAREST, CHEAPEST = 8.0, 0.0005  # what the price of everything is worth at the first level of a path, and at the last


@learner
class PricedBoostingClassifier(Learner):
    """Gradient boosting in which a question is worth what it takes off the loss, less the money that its cases would pay.

    Money counts for much at first and for less from level to level: early trees use the little that is worth most for its price, later
    ones buy more. Asked in this order and stopped early, one ensemble serves every budget.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> y = X[:, 0] | X[:, 1]
    >>> boosted = PricedBoostingClassifier(costs=[1, 10], random_state=0).fit(X, y)
    >>> boosted.acquire([[1, 0], [0, 1]]).labels.tolist()
    [1, 1]
    """

    name = "priced-boosting"
    summary = "boosted trees that subtract the price each case would pay: one model for every budget"
    paper = "Peter, Diego, Hamprecht, Nadler: Cost efficient gradient boosting, NIPS 2017; the path is ours"
    lam: float | Literal["path"] = parameter(
        NumberOr(Number(0), "path"),
        "what the price of everything is worth, in units of loss per case; or a path from 8 to .0005",
        default="path",
    )
    price: Literal["case", "model"] = parameter(
        Choice(("case", "model")), "each case pays for what it is asked first, or the model once for what it uses", default="case"
    )
    loss: Literal["log", "squared"] = parameter(Choice(tuple(LOSSES)), "what trees lower", default="log")
    n_levels: int = parameter(Whole(1, most=1000), "worths of money along the path", default=25)
    trees_per_level: int = parameter(Whole(1, most=1000), "trees at most for each of them", default=8)
    max_leaves: int = parameter(Whole(2, most=10_000), "leaves of a tree at most", default=8)
    l2: float = parameter(Number(0), "added to the second derivatives: large values make leaves cautious", default=5.0)
    min_rows: int = parameter(Whole(1), "cases on each side of a question at least", default=20)
    learning_rate: float = parameter(Number(0, 1), "the share of each tree's scores that is used", default=0.1)
    subsample: float = parameter(Number(0, 1), "the share of the rows that each tree is grown on", default=0.7)
    max_bins: int = parameter(Whole(2, MOST_BINS), "distinct values of a number that growing tells apart", default=255)
    cap: float | None = parameter(
        NumberOr(Number(0), None), "the most that may be spent on a case: trees are grown for cases that can buy no more", default=None
    )
    monotone: Any = parameter(
        Directions(),
        "numbers of which more can only raise (1) or lower (-1) the probability of the second class, by column",
        default=None,
    )
    n_trees_: int = learned()

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, progress: Tell = silent) -> Self:
        """Grow the path; `progress` is told after each tree."""
        prepared = self._prepare(X, y, sample_weight)
        rows = prepared.rows
        ensemble = self._again(prepared, rows, progress)
        self.n_trees_ = len(ensemble)
        ensemble = self._read_for(ensemble, prepared, rows)
        settings = self._points(ensemble, prepared, rows, self.cap) if self.points else {}
        self._finish(ensemble, prepared, rows, {}, **settings)
        return self

    def _again(self, prepared: Prepared, rows: Rows, tell: Tell = silent) -> Ensemble:
        booster, (lams, each) = self._booster(prepared, rows), self._levels(prepared)
        trees = rows.leaf()  # where there is one class
        if rows.count > 1:
            trees = Flat.of(told(booster.trees(lams, each), len(lams) * each, tell))
        settings: dict[str, Any] = {"vote": "additive", "order": "sequential", "stop": "leaf"}
        settings |= {"penalties": prepared.penalties, "sureness": self._sureness(prepared)}
        return Ensemble(trees, prepared.schema, prepared.costs, classes=self.classes_.tolist(), **settings)

    def _read_for(self, ensemble: Ensemble, prepared: Prepared, rows: Rows, tell: Tell = silent) -> Ensemble:
        """With directions to hold, everything that is used is asked in the end: a reader that sees more or less of a case from value to
        value could not hold them."""
        if not self.reader or rows.count < 2:
            return ensemble
        trend = self._trend(prepared)
        if len(trend):
            ensemble = asking_everything(ensemble)
        return ensemble.with_settings(reader=reading.grow(ensemble, prepared, rows, self.n_jobs, cap=self.cap, trend=trend, tell=tell))

    def _booster(self, prepared: Prepared, rows: Rows) -> Booster:
        jobs = threads(self.n_jobs)
        binning = Binning.of(rows.codes, prepared.schema, self.max_bins, jobs, prepared.seed)
        bins = binning.apply(rows.codes, prepared.schema, jobs, CUT, SOME_CATEGORIES)
        weights = on_grid(rows.weights / rows.weights.mean())
        return Booster.of(
            bins,
            binning,
            self._context(prepared, bins, weights),
            rows.classes,
            rows.count,
            weights,
            loss=self.loss,
            l2=float(self.l2),
            learning_rate=float(self.learning_rate),
            subsample=float(self.subsample),
            limits=limits(leaves=int(self.max_leaves), rows=int(self.min_rows)),
            trend=self._trend(prepared),
            seed=prepared.seed,
            threads=jobs,
        )

    def _context(self, prepared: Prepared, bins: Bins, weights: NDArray[np.float64]) -> Context:
        """Who pays, and out of which purse."""
        if self.price == "case":
            purses = NOBODY if self.cap is None else np.full(len(weights), millionths(self.cap, "the cap"))
            return of_cases(prepared.costs, owing(bins.codes, bins.sizes), purses)
        if self.cap is not None:
            raise ValueError("a cap is on what each case pays: price='model' counts what the model uses, not what cases pay")
        return of_model(prepared.costs, self.subsample * weights.sum())

    def _trend(self, prepared: Prepared) -> NDArray[np.int8]:
        """Per feature 1, -1 or 0, or nothing at all where nothing is held."""
        if not self.monotone:
            return FREELY
        if len(self.classes_) > 2:
            raise ValueError(f"monotone is for two classes: there are {len(self.classes_)}")
        trend = np.zeros(len(prepared.schema), np.int8)
        for name, way in self.monotone.items():
            if name not in prepared.schema.index:
                raise ValueError(f"monotone names {shown(name)}{meant(name, prepared.schema.names)}, which is no column")
            if prepared.schema[name].kind != NUMERIC:
                raise ValueError(f"monotone names {name!r}: its values are categories, which have no order")
            trend[prepared.schema.index[name]] = way
        return trend

    def _levels(self, prepared: Prepared) -> tuple[list[float], int]:
        """The worth of a unit of money at each level, and how many trees each has."""
        everything = prepared.costs.total(prepared.schema.names) or 1.0
        first, last = (DEAREST, CHEAPEST) if self.lam == "path" else (self.lam, self.lam)
        lams = np.geomspace(first, last, int(self.n_levels)) if last else np.zeros(int(self.n_levels))
        return (lams / everything).tolist(), int(self.trees_per_level)


def asking_everything(ensemble: Ensemble) -> Ensemble:
    """The same with trees that say nothing behind it, one for each feature that it uses."""
    nothing = [0.0] * len(ensemble.classes)
    schema = ensemble.schema
    asking = Flat.of(Tree.of(_mere_question(schema[name], nothing), schema) for name in schema.names if name in ensemble.used)
    return ensemble.followed_by(asking)


def _mere_question(feature: Feature, values: list[float]) -> Split:
    if feature.kind == NUMERIC:
        return Split(feature.name, values, [Leaf(values), Leaf(values)], threshold=0.0, missing=ENDS)
    return Split(feature.name, values, [Leaf(values)], branches=dict.fromkeys(feature.categories, 0), missing=ENDS)
