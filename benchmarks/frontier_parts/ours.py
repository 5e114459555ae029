"""Our own: FrontierClassifier, served at an aim, under a hard budget, and point by point. The one place that knows its interface.

It is fitted on training and validation rows together and holds out rows of its own; with `strict` on training rows alone.
"""

import time
from typing import Any

import numpy as np

from benchmarks.frontier_parts.curves import READ_AT, Point, Reading, stair_area, summed_up
from benchmarks.frontier_parts.tables import Data
from frugal.models import Acquisition, Ensemble
from frugal.models.acquire import acquire
from frugal.models.table import read_table

AIMS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)  # of the cost of everything


class NotThereError(Exception):
    """Something that a part needs and that this checkout does not have yet."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not there yet")


def ours(data: Data, threads: int, strict: bool) -> dict[str, Any]:
    """The part "ours": the curve by mixing neighbours, and the staircase that callers really get."""
    start = time.perf_counter()
    model = fitted(data, threads, strict)
    took = time.perf_counter() - start
    mixed = summed_up([nothing_at_root(data), *points_of(model, data, threads)], data.everything)
    return {"rivals": {"ours": mixed | {"seconds": round(took, 1)}, "ours served": staircase(model, data)}}


def fitted(data: Data, threads: int, strict: bool, cap: float | None = None) -> Any:
    try:
        from frugal import FrontierClassifier
    except ImportError:
        raise NotThereError("frugal.FrontierClassifier") from None
    rows = data.train if strict else data.seen
    capped = {} if cap is None else {"cap": cap}
    model = FrontierClassifier(
        costs=data.costs, categorical=[data.names[i] for i in data.categorical], n_jobs=threads, random_state=data.seed, **capped
    )
    return model.fit(data.frame(rows.codes), rows.classes)


def served(model: Any, data: Data, **how: float) -> Acquisition:
    """Test rows, with `aim` or `budget` in money."""
    return model.acquire(data.frame(data.test.codes), **{name: round(amount, 6) for name, amount in how.items()})


def staircase(model: Any, data: Data) -> dict[str, Any]:
    found = [served(model, data, aim=aim * data.everything) for aim in AIMS]
    wrong = [each.labels != data.test.classes for each in found]
    shares = [float(each.cost.mean()) / (aim * data.everything) for each, aim in zip(found, AIMS, strict=True)]
    errors = [float(each.mean()) for each in wrong]
    return {
        "area": round(stair_area(AIMS, errors), 6),
        "steps": [[aim, round(share, 4), round(error, 6)] for aim, share, error in zip(AIMS, shares, errors, strict=True)],
        "cells": {str(percent): Reading.of_one(wrong[AIMS.index(percent / 100)]).as_json() for percent in READ_AT},
    }


def points_of(model: Any, data: Data, threads: int) -> list[Point]:
    """Every point of the model's frontier, served to the test rows."""
    codes = read_table(data.frame(data.test.codes), schema=model.ensemble_.schema).codes
    points = []
    for point in model.frontier_:
        found = played(model.ensemble_, codes, point, threads)
        points.append(Point(point.cost, point.error, found.cost.mean(), found.labels != data.test.classes))
    return points


def played(ensemble: Ensemble, codes: np.ndarray, point: Any, threads: int) -> Acquisition:
    """Stopped as this point says: a confidence of 1 stops nothing, a cap of None neither."""
    return acquire(ensemble, codes, confidence=point.confidence, cap=point.cap, n_jobs=threads)


def nothing_at_root(data: Data) -> Point:
    """Where no point is free, cases may still be left unasked."""
    said = np.bincount(data.seen.classes).argmax()
    return Point(0.0, 1.0, 0.0, data.test.classes != said)
