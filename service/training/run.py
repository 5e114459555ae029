"""From a table to an ensemble that is measured on rows its learner never saw. No database, no HTTP: this runs in a child process too."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models import Ensemble
from frugal.models.learners import LEARNERS
from frugal.models.learners.progress import Progress, Tell, silent
from frugal.models.naming import quoted
from frugal.service.tables import Columns
from frugal.service.training.advising import advise, words
from frugal.service.training.measuring import measured
from frugal.service.training.pricing import cost_model
from frugal.service.training.spec import Penalties, Spec, why_no_mistake


@dataclass(frozen=True)
class Trained:
    """A model, and what its learner warned of."""

    ensemble: Ensemble
    warnings: list[str]


GROWN = 0.9  # of the whole, when growing is over
FEWEST = 2  # classes, and rows to learn from


def train(table: Columns, spec: Spec, tell: Tell = silent, n_jobs: int = -1) -> Trained:
    """Grow on part of the table, measure on the rest."""
    labels = table.labels(spec.label)
    X = table.only([name for name in table.columns if name != spec.label])
    learner = make_learner(spec, X.columns, n_jobs)
    test, kept = split(len(X), spec.test_fraction, spec.seed)
    if len(labels) and (labels == labels[0]).all():
        raise ValueError(f"{spec.label!r} is the same in every row: there is nothing to learn")
    if len(set(labels[kept].tolist())) < FEWEST:
        raise ValueError(f"the {len(kept):,} rows to learn from have one label only: use more rows, or a smaller test_fraction")
    check_penalties(spec.penalties, labels[kept])
    tell(Progress("growing", 0.0))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        learner.fit(X.rows(kept), labels[kept], progress=lambda told: tell(replace(told, fraction=GROWN * told.fraction)))
    ensemble: Ensemble = learner.ensemble_
    tell(Progress("measuring", GROWN, len(ensemble)))
    warned = [str(warning.message) for warning in said]
    if len(test):
        ensemble = measured(ensemble, X.rows(test), labels[test], n_jobs, spec.seed)
        advice = advise(learner, X.rows(kept), labels[kept], X.rows(test), labels[test], n_jobs)
        ensemble = ensemble.with_settings(metrics={**ensemble.metrics, **advice})
        warned += words(ensemble.metrics, spec.budget)
    return Trained(ensemble, warned)


def split(rows: int, test_fraction: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(rows to measure on, rows to learn from), each in the table's order."""
    order = np.random.default_rng(seed).permutation(rows)
    held = int(rows * test_fraction)
    return np.sort(order[:held]), np.sort(order[held:])


def make_learner(spec: Spec, features: list[str], n_jobs: int) -> Any:
    settings = {"costs": cost_model(spec.costs, features), "n_jobs": n_jobs, "random_state": spec.seed, **spec.params}
    settings["misclassification_cost"] = spec.penalties
    if spec.budget is not None:
        settings["budget"] = spec.budget
    return LEARNERS[spec.learner](**settings)


def check_penalties(penalties: Penalties | None, labels: NDArray[np.str_]) -> None:
    """Before anything is grown: penalties name labels that there are."""
    if isinstance(penalties, Mapping):
        known = sorted(set(labels.tolist()))
        strangers = sorted({label for true, row in penalties.items() for label in (true, *row)} - set(known))
        if strangers:
            raise ValueError(f"penalties name {quoted(strangers)}: the labels are {', '.join(known[:40])}")
        if why := why_no_mistake(penalties):
            raise ValueError(f"penalties: {why}")
