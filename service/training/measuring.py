"""How an ensemble does on rows that its learner never saw: error, honesty, cost, feature use, and the curve of cost against error."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models import Acquisition, Ensemble, acquire
from frugal.models.calibrate import calibration_error
from frugal.models.curves import Point, by_budget, by_trees
from frugal.models.growing.binning import sample_rows
from frugal.models.table import read_table

BUDGETS = 12  # points of the curve of hard budgets
SIZES = 12  # points of the curve of trees
ENOUGH = 5_000  # rows for a point of the curves: its error is then known to less than a per cent


def measured(ensemble: Ensemble, X: Any, y: Any, n_jobs: int | None = None, seed: int = 0) -> Ensemble:
    """The same ensemble with its metrics on these rows and labels; `curve`, on rows drawn with the seed, among them."""
    return ensemble.with_settings(metrics={**ensemble.metrics, **measure(ensemble, X, y, n_jobs, seed)})


def measure(ensemble: Ensemble, X: Any, y: Any, n_jobs: int | None = None, seed: int = 0) -> dict[str, Any]:
    codes = read_table(X, schema=ensemble.schema).codes
    truth = np.asarray(y).astype(str)
    found = acquire(ensemble, codes, n_jobs=n_jobs)
    labels = found.labels.astype(str)
    use = found.acquired.mean(axis=0).tolist()
    some = sample_rows(len(truth), ENOUGH, seed)
    true = np.asarray(y)[some]
    return {
        "rows": len(truth),
        "error": float(np.mean(labels != truth)),
        "calibration_error": calibration_error(_told(ensemble, found), labels == truth),
        "commonest_class_error": 1 - max(float(np.mean(truth == label)) for label in set(truth.tolist())),
        "mean_cost": float(found.cost.mean()),
        "max_cost": float(found.cost.max()),
        "cost_of_everything": ensemble.costs.total(ensemble.costs.features),
        "confusion": _confusion(truth.tolist(), labels.tolist()),
        **_with_penalties(ensemble, truth, labels, found.cost),
        "feature_use": {name: share for name, share in zip(ensemble.schema.names, use, strict=True) if share > 0},
        "curve": [
            *(_shown("trees", point) for point in by_trees(ensemble, codes[some], true, _sizes(len(ensemble)), n_jobs)),
            *(_shown("budget", point) for point in by_budget(ensemble, codes[some], true, _limits(found.cost), n_jobs)),
        ],
    }


def mistakes(ensemble: Ensemble, found: Acquisition, y: Any) -> float:
    """The share of wrong labels or, where mistakes have prices, what they cost in the mean; a label that training never saw is a mistake
    without a price."""
    truth, said = np.asarray(y).astype(str), found.labels.astype(str)
    if ensemble.penalties is None:
        return float(np.mean(truth != said))
    place = {str(label): k for k, label in enumerate(ensemble.classes)}
    known = [(place[s], place[t]) for s, t in zip(said.tolist(), truth.tolist(), strict=True) if t in place]
    return float(np.mean([ensemble.penalties[pair] for pair in known])) if known else 0.0


def _told(ensemble: Ensemble, found: Acquisition) -> NDArray[np.float64]:
    """The told probability of each row's label."""
    place = {label: k for k, label in enumerate(ensemble.classes)}
    return found.probabilities[np.arange(len(found.labels)), [place[label] for label in found.labels.tolist()]]


def _with_penalties(ensemble: Ensemble, truth: NDArray[Any], labels: NDArray[Any], cost: NDArray[Any]) -> dict[str, float]:
    """Total cost, of questions and mistakes, and the same over the standard cost (Turney 1995; ACT's section 4.2.2)."""
    if ensemble.penalties is None:
        return {}
    place = {str(label): k for k, label in enumerate(ensemble.classes)}
    unseen = sorted(set(truth.tolist()) - set(place))
    if unseen:
        raise ValueError(f"no row to learn from has the label {unseen[0]!r}, so its penalties mean nothing: use a smaller test_fraction")
    true, said = (np.array([place[label] for label in column.tolist()]) for column in (truth, labels))
    frequent = np.bincount(true, minlength=len(place)) / len(true)
    total = float(np.mean(cost + ensemble.penalties[said, true]))
    standard = ensemble.costs.total(ensemble.costs.features) + float((1 - frequent).min() * ensemble.penalties.max())
    constant = float((ensemble.penalties @ (np.bincount(true, minlength=len(place)) / len(true))).min())
    return {"total_cost": total, "standard_cost": standard, "penalty_of_one_label": constant} | (
        {"normalised_cost": total / standard} if standard else {}
    )


def _sizes(trees: int) -> list[int]:
    """Numbers of trees from 1 to all, close together where the curve bends.

    Examples
    --------
    >>> _sizes(40)
    [1, 2, 3, 4, 5, 7, 10, 15, 20, 29, 40]
    """
    if trees <= SIZES:
        return list(range(1, trees + 1))
    sizes: list[int] = np.unique(np.geomspace(1, trees, SIZES).round().astype(int)).tolist()
    return sizes


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
