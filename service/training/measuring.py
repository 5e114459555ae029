"""How an ensemble does on rows that its learner never saw: error, cost, feature use, and the curve of cost against error."""

from dataclasses import asdict
from typing import Any

import numpy as np

from models import Ensemble, acquire
from models.curves import Point, by_budget, by_trees
from models.table import read_table

BUDGETS = 12  # points of the curve of hard budgets


def measured(ensemble: Ensemble, X: Any, y: Any, n_jobs: int | None = None) -> Ensemble:
    """The same ensemble with its metrics on these rows and labels; `curve` among them."""
    return ensemble.with_settings(metrics={**ensemble.metrics, **measure(ensemble, X, y, n_jobs)})


def measure(ensemble: Ensemble, X: Any, y: Any, n_jobs: int | None = None) -> dict[str, Any]:
    codes = read_table(X, schema=ensemble.schema).codes
    truth = np.asarray(y).astype(str)
    found = acquire(ensemble, codes, n_jobs=n_jobs)
    labels = found.labels.astype(str)
    use = found.acquired.mean(axis=0).tolist()
    return {
        "rows": len(truth),
        "error": float(np.mean(labels != truth)),
        "commonest_class_error": 1 - max(float(np.mean(truth == label)) for label in set(truth.tolist())),
        "mean_cost": float(found.cost.mean()),
        "max_cost": float(found.cost.max()),
        "cost_of_everything": ensemble.costs.total(ensemble.costs.features),
        "confusion": _confusion(truth.tolist(), labels.tolist()),
        "feature_use": {name: share for name, share in zip(ensemble.schema.names, use, strict=True) if share > 0},
        "curve": [
            *(_shown("trees", point) for point in by_trees(ensemble, codes, y, n_jobs=n_jobs)),
            *(_shown("budget", point) for point in by_budget(ensemble, codes, y, _limits(found.cost))),
        ],
    }


def _limits(cost: Any) -> list[float]:
    """Budgets from the cheapest row's cost to the dearest's."""
    limits: list[float] = np.unique(np.quantile(cost, np.linspace(0, 1, BUDGETS)).round(6)).tolist()
    return limits


def _shown(by: str, point: Point) -> dict[str, Any]:
    return {"by": by, **asdict(point)}


def _confusion(truth: list[str], labels: list[str]) -> dict[str, dict[str, int]]:
    """Counts by true label, then by the label that was said."""
    counts: dict[str, dict[str, int]] = {}
    for true, said in zip(truth, labels, strict=True):
        row = counts.setdefault(true, {})
        row[said] = row.get(said, 0) + 1
    return counts
