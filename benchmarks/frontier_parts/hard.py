"""The part "hard": a limit that no case may pass. Ours is trained for the limit; beside it CEGB's trees asked by our engine until it is
reached, and LightGBM on a fixed set of features that fits it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.frontier_parts import cegb
from benchmarks.frontier_parts.anchors import PLAIN
from benchmarks.frontier_parts.converting import as_ensemble
from benchmarks.frontier_parts.curves import Reading
from benchmarks.frontier_parts.ours import fitted, served
from benchmarks.frontier_parts.selection import Selection
from benchmarks.frontier_parts.tables import Data, Rows
from frugal.models import Ensemble, acquire

BUDGETS = (5, 10, 25, 50)  # percent of the cost of everything


def hard_anchors(data: Data, threads: int, strict: bool) -> dict[str, Any]:
    selection, lazy = Selection(data, threads), played_boosters(data, threads)

    def rivals(budget: float) -> dict[str, Any]:
        return {
            "cegb played": best_played(data, lazy, budget, threads),
            "fixed set": fixed_set(data, selection.best(budget), threads, strict),
        }

    return under_budgets(data, BUDGETS, rivals)


def hard(data: Data, threads: int, strict: bool) -> dict[str, Any]:
    """Ours, trained for cases that can spend no more."""

    def rivals(budget: float) -> dict[str, Any]:
        found = served(fitted(data, threads, strict, cap=budget), data, budget=budget)
        assert found.cost.max() <= budget, "a case passed its limit"
        return {"ours": cell(data, found.labels, found.cost)}

    return under_budgets(data, BUDGETS, rivals)


def under_budgets(data: Data, percents: tuple[int, ...], rivals: Callable[[float], dict[str, Any]]) -> dict[str, Any]:
    return {"budgets": {str(percent): rivals(round(percent / 100 * data.everything, 6)) for percent in percents}}


def cell(data: Data, labels: np.ndarray, cost: np.ndarray) -> dict[str, Any]:
    """One rival under one budget."""
    return Reading.of_one(labels != data.test.classes).as_json() | {"cost": round(float(cost.mean()) / data.everything, 5)}


def played_boosters(data: Data, threads: int) -> list[Ensemble]:
    """The lazy models of the fair grid."""
    ensembles = []
    cuts = cegb.cuts(data, cegb.LAZY)
    for leaves in cegb.LEAVES:
        for tradeoff in cegb.GRID:
            booster = cegb.trained(data, cegb.Recipe(cegb.LAZY, tradeoff, leaves, max(cuts)), threads)
            ensembles += [as_ensemble(data, booster, trees) for trees in cuts]
    return ensembles


def best_played(data: Data, ensembles: list[Ensemble], budget: float, threads: int) -> dict[str, Any]:
    """The one that errs least on validation rows under this budget."""

    def error(ensemble: Ensemble) -> float:
        return float(np.mean(acquire(ensemble, data.validation.codes, budget, n_jobs=threads).labels != data.validation.classes))

    found = acquire(min(ensembles, key=error), data.test.codes, budget, n_jobs=threads)
    return cell(data, found.labels, found.cost)


def fixed_set(data: Data, features: list[int], threads: int, strict: bool) -> dict[str, Any]:
    """Plain LightGBM on this set, its size chosen on validation rows; refitted on those too, as ours sees them."""
    asked = np.zeros(data.test.codes.shape, bool)
    asked[:, features] = True
    said = np.full(len(asked), np.bincount(data.train.classes).argmax())
    if features:
        rows = data.validation

        def error(recipe: cegb.Recipe) -> float:
            booster = cegb.trained(data, recipe, threads, features=features)
            return float(np.mean(cegb.labels(booster, rows.codes[:, features]) != rows.classes))

        refitted = cegb.trained(data, min(PLAIN, key=error), threads, all_rows(data, strict), features)
        said = cegb.labels(refitted, data.test.codes[:, features])
    return cell(data, said, data.spent(data.test, asked)) | {"features": [data.names[i] for i in features]}


def all_rows(data: Data, strict: bool) -> Rows:
    return data.train if strict else data.seen
