"""A fixed set of features that fits a cap, and boosted trees on it: what a person would build, and sometimes the best."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from frugal.models.costs import CostModel, Price
from frugal.models.ensemble import Ensemble
from frugal.models.learners.estimator import Learner
from frugal.models.learners.parameters import Number, learner, parameter
from frugal.models.learners.prepared import Prepared, Rows
from frugal.models.learners.priced_boosting import PricedBoostingClassifier
from frugal.models.learners.progress import Tell, silent

TRIES = 9  # worths of money that sets are looked for with, by halving
WIDEST = (1e-6, 10.0)  # between these worths


@learner
class FixedSet(Learner):
    """Which features: those that boosting uses when a feature is paid for once, for as little worth of money as still fits the cap."""

    name = "fixed-set"
    summary = "boosted trees on a fixed set of features"
    paper: ClassVar[str] = ""
    cap: float = parameter(Number(0), "what the features may cost together", default=0.0)

    def _again(self, prepared: Prepared, rows: Rows, tell: Tell = silent) -> Ensemble:
        chosen = self._chosen(prepared, rows)
        return self._boosting(lam=0.0, trees_per_level=100)._again(prepared, _hiding(rows, prepared, chosen), tell)

    def _chosen(self, prepared: Prepared, rows: Rows) -> frozenset[str]:
        """A set that fits, and then what fits into what it leaves, until nothing more does."""
        chosen: frozenset[str] = frozenset()
        while True:
            costs = _given(prepared.costs, chosen)
            left = self.cap - prepared.costs.total(chosen)
            affordable = {price.feature for price in costs.prices if price.cost is not None and price.cost <= left}
            if affordable <= chosen:
                return chosen
            more = self._dearest_within(replace(prepared, costs=costs), _hiding(rows, prepared, affordable | chosen), left) | chosen
            if more == chosen:
                return chosen
            chosen = more

    def _dearest_within(self, prepared: Prepared, rows: Rows, cap: float) -> frozenset[str]:
        """By halving between worths of money, on a scale of logarithms: the less money is worth, the more is used."""
        best: frozenset[str] = frozenset()
        low, high = np.log(WIDEST)
        for _ in range(TRIES):
            middle = (low + high) / 2
            used = self._boosting(lam=float(np.exp(middle)), trees_per_level=60, price="model", max_leaves=8)._again(prepared, rows).used
            if prepared.costs.total(used) > cap:
                low = middle
            else:
                high = middle
                best = max(best, used, key=prepared.costs.total)
        return best

    def _boosting(self, **settings: Any) -> PricedBoostingClassifier:
        size = {"n_levels": 1, "max_leaves": 16, "min_rows": 15, "points": self.points, "n_jobs": self.n_jobs} | settings
        made = PricedBoostingClassifier(**size)
        made.classes_ = self.classes_
        return made


def _hiding(rows: Rows, prepared: Prepared, shown: Collection[str]) -> Rows:
    """The rows with all other features missing."""
    codes = rows.codes.copy()
    codes[:, [name not in shown for name in prepared.schema.names]] = np.nan
    return replace(rows, codes=codes)


def _given(costs: CostModel, bought: Collection[str]) -> CostModel:
    """What everything costs who has bought these."""
    return CostModel(Price(price.feature, None if price.cost is None else costs.marginal(price.feature, bought)) for price in costs.prices)
