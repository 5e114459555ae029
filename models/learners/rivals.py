"""What a user would do instead: a forest or boosted trees with everything bought, and boosted trees on the best fixed set of features for
the same money. A model is reported beside them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from frugal.models.ensemble import Ensemble
from frugal.models.flat import Flat
from frugal.models.growing.binning import MOST_BINS, Binning
from frugal.models.growing.grower import Grower
from frugal.models.growing.rules import per_case
from frugal.models.growing.targets import constant, counts, on_grid
from frugal.models.learners.estimator import Learner
from frugal.models.learners.fixed_set import FixedSet
from frugal.models.learners.prepared import Prepared, Rows
from frugal.models.threads import threads

TREES = 40  # of the forest
ENOUGH = 10_000  # rows that rivals are grown on: of more, the report would take longer than the training


class Rivals(NamedTuple):
    """Grown on the rows of a training, or on some of them."""

    forest: Ensemble
    boosted: Ensemble
    fixed: tuple[Ensemble, ...]  # one for each amount of money


def rivals(learner: Learner, X: Any, y: Any, money: Sequence[float]) -> Rivals:
    """What the rows that a learner was fitted on give without it; `money` is what fixed sets may cost."""
    prepared = learner._prepare(X, y, None)
    rows = prepared.rows.some(np.sort(np.random.default_rng(prepared.seed).permutation(len(prepared.rows.codes))[:ENOUGH]))
    fixed = FixedSet(n_jobs=learner.n_jobs)
    fixed.classes_ = learner.classes_
    sets = fixed.by_worth(prepared, rows) if money else []
    grown: dict[frozenset[str], Ensemble] = {}
    for most in money:
        best = fixed.dearest_within(sets, prepared, most)
        if best not in grown:
            grown[best] = fixed.boosted(prepared, rows, best)
    chosen = tuple(grown[fixed.dearest_within(sets, prepared, most)] for most in money)
    everything = frozenset(price.feature for price in prepared.costs.prices if price.cost is not None)
    return Rivals(_forest(learner, prepared, rows), fixed.boosted(prepared, rows, everything), chosen)


def _forest(learner: Learner, prepared: Prepared, rows: Rows) -> Ensemble:
    """Bagged trees by Gini's impurity, prices left out of account."""
    jobs = threads(learner.n_jobs)
    binning = Binning.of(rows.codes, prepared.schema, MOST_BINS, jobs, prepared.seed)
    grower = Grower(
        bins=binning.apply(rows.codes, prepared.schema, jobs),
        binning=binning,
        target=counts(rows.classes, rows.count),
        rule=per_case("gini"),
        context=constant(prepared.costs),
        weights=on_grid(rows.weights),
        seed=prepared.seed,
        threads=jobs,
    )
    settings: dict[str, Any] = {"vote": "majority", "penalties": prepared.penalties, "smoothing": prepared.smoothing()}
    return Ensemble(Flat.of(grower.trees(TREES)), prepared.schema, prepared.costs, classes=learner.classes_.tolist(), **settings)
