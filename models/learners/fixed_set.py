"""A fixed set of features that fits a cap, and boosted trees on it: what a person would build, and sometimes the best."""

from collections.abc import Collection, Sequence
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

WORTHS = np.geomspace(4.0, 1e-5, 12)  # of the money of everything, under which sets are looked for
HALVINGS = 4  # between two of them


@learner
class FixedSet(Learner):
    """Which features: those that boosting uses where a feature is paid for once, at the least worth of money at which they fit the cap."""

    name = "fixed-set"
    summary = "boosted trees on a fixed set of features"
    paper: ClassVar[str] = ""
    cap: float = parameter(Number(0), "what the features may cost together", default=0.0)

    def _again(self, prepared: Prepared, rows: Rows, tell: Tell = silent) -> Ensemble:
        return self.boosted(prepared, rows, self._chosen(prepared, rows), tell)

    def boosted(self, prepared: Prepared, rows: Rows, features: Collection[str], tell: Tell = silent) -> Ensemble:
        """Boosted trees on a set of features, prices left out of account."""
        return self._boosting(lam=0.0, trees_per_level=100)._again(prepared, _hiding(rows, prepared, features), tell)

    def _chosen(self, prepared: Prepared, rows: Rows) -> frozenset[str]:
        """A set that fits, and then what fits into what it leaves, until nothing more does."""
        chosen: frozenset[str] = frozenset()
        while True:
            costs = _given(prepared.costs, chosen)
            left = self.cap - prepared.costs.total(chosen)
            affordable = {price.feature for price in costs.prices if price.cost is not None and price.cost <= left}
            if affordable <= chosen:
                return chosen
            here = replace(prepared, costs=costs)
            more = self._dearest(here, _hiding(rows, prepared, affordable | chosen), left) | chosen
            if more == chosen:
                return chosen
            chosen = more

    def _dearest(self, prepared: Prepared, rows: Rows, cap: float) -> frozenset[str]:
        """Of the sets at some worths of money, and at more between the last that fits and the first that does not, the dearest that
        fits."""
        sets = self.by_worth(prepared, rows)
        fits = [prepared.costs.total(one) <= cap for one in sets]
        if True in fits and False in fits[fits.index(True) :]:
            first = fits.index(False, fits.index(True))
            low, high = np.log(WORTHS[first - 1]), np.log(WORTHS[first])
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                sets.append(self._used(prepared, rows, float(np.exp(middle))))
                low, high = (middle, high) if prepared.costs.total(sets[-1]) <= cap else (low, middle)
        return self.dearest_within(sets, prepared, cap)

    def by_worth(self, prepared: Prepared, rows: Rows) -> list[frozenset[str]]:
        """The sets that are used where money is worth less and less."""
        return [self._used(prepared, rows, float(lam)) for lam in WORTHS]

    def _used(self, prepared: Prepared, rows: Rows, lam: float) -> frozenset[str]:
        return self._boosting(lam=lam, trees_per_level=60, price="model", max_leaves=8)._again(prepared, rows).used

    @staticmethod
    def dearest_within(sets: Sequence[frozenset[str]], prepared: Prepared, cap: float) -> frozenset[str]:
        """The dearest of some sets that fits, or nothing."""
        fitting = [one for one in sets if prepared.costs.total(one) <= cap]
        return max([frozenset(), *fitting], key=prepared.costs.total)

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
