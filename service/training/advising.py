"""Help with the budget: what each mean cost buys, beside what a user would do instead, on rows that the learner never saw."""

from typing import Any

import numpy as np

from frugal.models import Ensemble, acquire
from frugal.models.acquire import Acquisition
from frugal.models.learners.estimator import Learner
from frugal.models.learners.rivals import rivals
from frugal.models.table import read_table
from frugal.service.training.measuring import mistakes

SHARES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.25, 0.4, 0.6, 1.0)  # of what everything costs
HALF = 0.5  # of a budget that less is used of: said in words


def advise(learner: Learner, X: Any, y: Any, test_X: Any, test_y: Any, n_jobs: int | None) -> dict[str, Any]:
    """Metrics: `aims`, a table of operating points by what a caller may aim at, and `instead`, what else could be done."""
    ensemble = learner.ensemble_
    codes = read_table(test_X, schema=ensemble.schema).codes
    aims = _aims(ensemble)
    found = rivals(learner, X, y, aims)
    everything = {"forest": found.forest, "boosted": found.boosted}
    return {
        "aims": [
            {**_at(ensemble, codes, test_y, aim, n_jobs), "fixed_set_error": _error(set_, codes, test_y, n_jobs), "fixed_set": _names(set_)}
            for aim, set_ in zip(aims, found.fixed, strict=True)
        ],
        "suggested_aim": _suggested(ensemble),
        "instead": {name: _error(each, codes, test_y, n_jobs) for name, each in everything.items()},
    }


def _aims(ensemble: Ensemble) -> list[float]:
    """Mean costs to show: shares of everything, and what the default point costs."""
    if ensemble.frontier is None:
        return []
    everything = ensemble.costs.total(ensemble.costs.features)
    suggested = _suggested(ensemble)
    return sorted({round(share * everything, 6) for share in SHARES} | ({suggested} if suggested is not None else set()))


def _suggested(ensemble: Ensemble) -> float | None:
    return None if ensemble.frontier is None else ensemble.frontier.points[ensemble.frontier.default].cost


def _at(ensemble: Ensemble, codes: Any, truth: Any, aim: float, n_jobs: int | None) -> dict[str, Any]:
    found = acquire(ensemble, codes, aim=aim, n_jobs=n_jobs)
    whole = acquire(ensemble, codes, confidence=1.0, n_jobs=n_jobs)
    early = float(np.mean(found.acquired.sum(axis=1) < whole.acquired.sum(axis=1)))
    return {"aim": aim, "mean_cost": float(found.cost.mean()), "error": mistakes(ensemble, found, truth), "stop_early": early}


def _error(ensemble: Ensemble, codes: Any, truth: Any, n_jobs: int | None) -> float:
    found: Acquisition = acquire(ensemble, codes, n_jobs=n_jobs)
    return mistakes(ensemble, found, truth)


def _names(ensemble: Ensemble) -> list[str]:
    return sorted(ensemble.used, key=ensemble.schema.names.index)


def words(metrics: dict[str, Any], budget: float | None) -> list[str]:
    """What a user must be told of a model that does not do what it was made for."""
    said: list[str] = []
    if "total_cost" in metrics and metrics["total_cost"] >= metrics["penalty_of_one_label"]:
        said.append(
            "this model is no better than asking nothing and always saying one label: questions and mistakes cost "
            f"{metrics['total_cost']:,.2f} in the mean on rows it never saw, and that {metrics['penalty_of_one_label']:,.2f}"
        )
    elif "total_cost" not in metrics and metrics["error"] >= metrics["commonest_class_error"]:
        said.append(
            f"this model is no better than always saying the commonest class: on rows it never saw it is wrong in {metrics['error']:.1%} "
            f"of cases, always saying that in {metrics['commonest_class_error']:.1%}. More rows, other features or a larger budget may help"
        )
    if budget is not None and metrics["mean_cost"] < HALF * budget:
        said.append(
            f"of a budget of {budget:g} this model uses {metrics['mean_cost']:,.2f} in the mean: asking more did not make it any better on "
            "rows held out"
        )
    return said
