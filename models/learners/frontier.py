"""The best model for any budget: candidates are judged on rows that did not grow them, the best one is grown on all rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from frugal.models.costs import millionths
from frugal.models.ensemble import Ensemble
from frugal.models.frontier import Tried, area, measure
from frugal.models.learners import points
from frugal.models.learners.budget_forest import BudgetForestClassifier
from frugal.models.learners.estimator import Learner
from frugal.models.learners.fixed_set import FixedSet
from frugal.models.learners.greedy import GreedyTreeClassifier
from frugal.models.learners.parameters import Aside, Flag, Names, Number, NumberOr, learned, learner, parameter
from frugal.models.learners.prepared import Prepared, Rows
from frugal.models.learners.priced_boosting import PricedBoostingClassifier
from frugal.models.learners.progress import Progress, Tell, silent

CANDIDATES: dict[str, type[Learner]] = {
    kind.name: kind for kind in (PricedBoostingClassifier, BudgetForestClassifier, GreedyTreeClassifier)
}
FEW, MANY = 1000, 10  # rows below which trees are small, classes above which they are large
MANY_ROWS = 50_000  # that candidates are grown on: of more the same one is the best, and takes the longer
EVEN = (1.0, 0.01)  # worths of money that stay the same, under a cap
EVEN_TREES = 150
BLENDS = (0.5, 0.75)  # shares that a reader may have in what is told; of few rows the first


@dataclass
class Candidate:
    """A learner, and its models: each with rows that did not grow it."""

    learner: Learner
    found: list[tuple[Ensemble, Rows]]
    blend: float = BLENDS[0]
    worth: float = np.inf  # how much is mistaken and doubted: less is better

    def blended(self, blend: float) -> list[tuple[Ensemble, Rows]]:
        return [(ensemble.with_settings(blend=blend), rows) for ensemble, rows in self.found]


@learner
class FrontierClassifier(Learner):
    """Boosting along a path of prices, a reader, and operating points: one model that serves every budget.

    Candidates are grown on a part of the rows and judged on the others (each fifth in turn below 2,000 rows) by what is mistaken and
    doubted at mean costs from 1 to 50 % of everything, or under a hard `cap` by what is at the cap. The best is grown again on all rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50)
    >>> y = X[:, 0] | X[:, 1]
    >>> model = FrontierClassifier(costs=[1, 10], random_state=0).fit(X, y)
    >>> model.acquire([[1, 0], [0, 1]], aim=6).cost.tolist()
    [1.0, 11.0]
    >>> model.acquire([[1, 0], [0, 1]], aim=1).cost.tolist()
    [1.0, 1.0]
    """

    name = "frontier"
    summary = "the best model for any budget: priced boosting, a reader and operating points, chosen on rows held out"
    paper = "Peter, Diego, Hamprecht, Nadler: Cost efficient gradient boosting, NIPS 2017; path, reader and points are ours"
    budget: float | None = parameter(
        Aside("a number of at least 0, or None"), "mean cost per case that sessions aim at if they say nothing else", default=None
    )
    cap: float | None = parameter(
        NumberOr(Number(0), None), "the most that may be spent on a case: all is grown for cases that can buy no more", default=None
    )
    learners: Sequence[str] = parameter(
        Names(tuple(CANDIDATES)), "the candidates by name; each may be given once", default=("priced-boosting",)
    )
    reader: bool = parameter(
        Flag(), "let a second ensemble, grown on cases as they are served, say what the answers mean", default=True, kw_only=True
    )
    points: bool = parameter(Flag(), "operating points, which this learner always has", default=True, kw_only=True)
    learner_: str = learned()
    n_trees_: int = learned()

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, progress: Tell = silent) -> Self:
        """Choose among the candidates and grow the best; `progress` is told how far it has come."""
        if not self.points:
            raise ValueError("points is False: this learner is made of its operating points; the learners it chooses from can do without")
        if self.budget is not None:
            millionths(self.budget, "the budget")
        prepared = self._prepare(X, y, sample_weight)
        tell = _Stages(progress)
        best = self._best(prepared, tell)
        tell.enter(0.6, 1.0)
        ensemble = best.learner._read_for(best.learner._again(prepared, prepared.rows, tell), prepared, prepared.rows)
        ensemble = ensemble.with_settings(blend=best.blend)
        self.learner_, self.n_trees_ = best.learner.name, len(ensemble)
        found = best.blended(best.blend) or [(ensemble, prepared.rows)]  # of a single row there is no other
        settings = points.of_models(found, ensemble, prepared, self.budget, self.cap, self.n_jobs)
        self._finish(ensemble, prepared, prepared.rows, {}, **settings)
        return self

    def _best(self, prepared: Prepared, tell: "_Stages") -> Candidate:
        """Every candidate on every fold, judged."""
        candidates = [Candidate(each, []) for each in self._candidates(prepared)]
        folds = list(points.folds(len(prepared.rows.codes), prepared.seed, MANY_ROWS))
        for i, candidate in enumerate(candidates):
            for k, (kept, judged) in enumerate(folds):
                done = (i + k / len(folds)) / len(candidates)
                tell.enter(0.6 * done, 0.6 * (done + 1 / len(folds) / len(candidates)))
                rows, own = prepared.rows.some(kept), candidate.learner
                candidate.found.append((own._read_for(own._again(prepared, rows, tell), prepared, rows), prepared.rows.some(judged)))
            self._judge(candidate, BLENDS if self.reader and len(prepared.rows.codes) >= FEW else BLENDS[:1])
        return min(candidates, key=lambda candidate: candidate.worth)

    def _judge(self, candidate: Candidate, blends: Sequence[float]) -> None:
        """How good a candidate is, with the share of the reader that suits it best."""
        for blend in blends if candidate.found else ():
            tried = [
                measure(ensemble, rows.codes, rows.classes, rows.weights, cap=self.cap, n_jobs=self.n_jobs)
                for ensemble, rows in candidate.blended(blend)
            ]
            worth = area(Tried.joined(tried), self.cap)
            if worth < candidate.worth:
                candidate.worth, candidate.blend = worth, blend

    def _candidates(self, prepared: Prepared) -> list[Learner]:
        shared = {name: getattr(self, name) for name in ("misclassification_cost", "class_weight", "reader", "points", "n_jobs")}
        found: list[Learner] = []
        for name in self.learners:
            if name == "priced-boosting":
                sizes = _sizes(prepared.rows)
                found += [PricedBoostingClassifier(cap=self.cap, **size, **shared) for size in sizes]
                if self.cap is not None:  # along a path little things are bought first, which may use up what is to be spent
                    even = {**sizes[0], "n_levels": 1, "trees_per_level": EVEN_TREES}
                    found += [PricedBoostingClassifier(cap=self.cap, lam=lam, **even, **shared) for lam in EVEN]
            else:
                found.append(CANDIDATES[name](**shared))
        if self.cap is not None:
            found.append(FixedSet(cap=self.cap, **shared))
        for each in found:
            each.classes_ = self.classes_
        return found


def _sizes(rows: Rows) -> list[dict[str, Any]]:
    """Two sizes of the trees: which is better hangs on the table."""
    if len(rows.codes) < FEW:
        return [{"max_leaves": leaves, "l2": 5.0, "min_rows": 10, "trees_per_level": 4} for leaves in (4, 8)]
    if rows.count > MANY:
        return [{"max_leaves": leaves, "l2": 1.0, "min_rows": 5} for leaves in (32, 128)]
    return [{"max_leaves": 8, "l2": 5.0, "min_rows": 20}, {"max_leaves": 32, "l2": 5.0, "min_rows": 15}]


class _Stages:
    """One progress out of many: what is told of a stage becomes a part of the whole."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._low, self._high = tell, 0.0, 1.0

    def enter(self, low: float, high: float) -> None:
        self._low, self._high = low, high

    def __call__(self, told: Progress) -> None:
        self._tell(Progress("growing", self._low + (self._high - self._low) * told.fraction, told.trees))
