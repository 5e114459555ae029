"""A fixed set of features that fits a cap, and boosted trees on it: what a person would build, and sometimes the best."""

from typing import Any, ClassVar

import numpy as np

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
        within = self._chosen(prepared, rows)
        codes = rows.codes.copy()
        codes[:, ~within] = np.nan
        seen = Rows(codes, rows.classes, rows.weights, rows.count)
        return self._boosting(lam=0.0, trees_per_level=100)._again(prepared, seen, tell)

    def _chosen(self, prepared: Prepared, rows: Rows) -> Any:
        """The dearest set that fits, found by halving on a scale of logarithms; per feature whether it is in it."""
        names = prepared.schema.names
        best, most = np.zeros(len(names), bool), -1.0
        low, high = np.log(WIDEST)
        for _ in range(TRIES):
            lam = float(np.exp((low + high) / 2))
            used = self._boosting(lam=lam, trees_per_level=60, price="model", max_leaves=8)._again(prepared, rows).used
            together = prepared.costs.total(used)
            if together > self.cap:
                low = np.log(lam)
                continue
            high = np.log(lam)
            if together > most:
                best, most = np.array([name in used for name in names]), together
        return best

    def _boosting(self, **settings: Any) -> PricedBoostingClassifier:
        size = {"n_levels": 1, "max_leaves": 16, "min_rows": 15, "points": self.points, "n_jobs": self.n_jobs} | settings
        made = PricedBoostingClassifier(**size)
        made.classes_ = self.classes_
        return made
