"""From points to a curve: chosen on validation rows, read on test rows. Nothing here knows what made a point."""

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

READ_AT = (10, 25, 50)  # percent of the cost of everything
FROM, TO = 0.01, 0.5  # shares between which the area is taken


class Point(NamedTuple):
    """One way to serve: what it came to on validation rows, by which it is chosen, and on test rows, by which it is judged."""

    validation_cost: float
    validation_error: float
    cost: float
    wrong: np.ndarray  # per test row

    @property
    def error(self) -> float:
        return float(self.wrong.mean())


def hull(costs: Sequence[float], errors: Sequence[float]) -> list[int]:
    """Positions of the points on the lower convex hull, from the cheapest to the one of least error.

    Examples
    --------
    >>> hull([0, 1, 2, 3, 4], [10, 9, 4, 4, 2])
    [0, 2, 4]
    """
    kept: list[int] = []
    for i in np.lexsort((errors, costs)).tolist():
        if kept and errors[i] >= errors[kept[-1]]:
            continue
        while len(kept) > 1 and _above(kept[-2], kept[-1], i, costs, errors):
            kept.pop()
        kept.append(i)
    return kept


def _above(a: int, b: int, c: int, costs: Sequence[float], errors: Sequence[float]) -> bool:
    """Whether b lies on or above the line from a to c."""
    return (errors[b] - errors[a]) * (costs[c] - costs[a]) >= (errors[c] - errors[a]) * (costs[b] - costs[a])


def chosen(points: list[Point]) -> list[Point]:
    """The points on the hull over validation rows."""
    return [points[i] for i in hull([point.validation_cost for point in points], [point.validation_error for point in points])]


class Reading(NamedTuple):
    """What is expected at one mean cost, where a caller draws between two points: `weight` of the cases are served as by `high`."""

    low: np.ndarray  # wrong or not, per test row
    high: np.ndarray
    weight: float

    @property
    def rows(self) -> np.ndarray:
        return (1 - self.weight) * self.low + self.weight * self.high

    def as_json(self) -> dict[str, Any]:
        """Right and wrong as bits: so that another run's rival can be compared row by row."""
        return {
            "error": round(float(self.rows.mean()), 6),
            "weight": round(self.weight, 6),
            "rows": len(self.low),
            "bits": [_packed(part) for part in (self.low, self.high)],
        }

    @classmethod
    def of_one(cls, wrong: np.ndarray) -> "Reading":
        return cls(wrong, wrong, 0.0)

    @classmethod
    def of(cls, line: dict[str, Any]) -> "Reading":
        return cls(*(_unpacked(part, line["rows"]) for part in line["bits"]), line["weight"])


def read_at(points: list[Point], cost: float) -> Reading:
    """Between the two neighbours in test cost; at and beyond the ends, the end."""
    ordered = sorted(points, key=lambda point: point.cost)
    costs = [point.cost for point in ordered]
    after = int(np.searchsorted(costs, cost, side="right"))
    if after == 0 or after == len(ordered):
        end = ordered[min(after, len(ordered) - 1)].wrong
        return Reading(end, end, 0.0)
    low, high = ordered[after - 1], ordered[after]
    return Reading(low.wrong, high.wrong, (cost - low.cost) / (high.cost - low.cost))


def area(costs: Sequence[float], errors: Sequence[float], start: float = FROM, end: float = TO) -> float:
    """The mean of the error over a linear axis of cost; straight between points, level beyond the first and the last.

    Examples
    --------
    >>> area([0, 0.5], [0.4, 0.2], start=0, end=1)
    0.25
    """
    order = np.argsort(costs, kind="stable")
    x, y = np.asarray(costs, float)[order], np.asarray(errors, float)[order]
    knots = np.concatenate([[start], x[(x > start) & (x < end)], [end]])
    read = np.interp(knots, x, y)
    return float((np.diff(knots) * (read[1:] + read[:-1]) / 2).sum() / (end - start))


def stair_area(aims: Sequence[float], errors: Sequence[float], start: float = FROM, end: float = TO) -> float:
    """The same where each error holds from its aim up to the next one's.

    Examples
    --------
    >>> stair_area([0, 0.5], [0.4, 0.2], start=0, end=1)
    0.3
    """
    edges = np.clip([*aims, end], start, end)
    return float((np.diff(edges) * np.asarray(errors)).sum() / (edges[-1] - edges[0]))


def summed_up(points: list[Point], everything: float) -> dict[str, Any]:
    """A rival's curve as a line of the report holds it."""
    ordered = sorted(points, key=lambda point: point.cost)
    shares, errors = [point.cost / everything for point in ordered], [point.error for point in ordered]
    return {
        "area": round(area(shares, errors), 6),
        "curve": [[round(share, 5), round(error, 6)] for share, error in zip(shares, errors, strict=True)],
        "cells": {str(percent): read_at(points, percent / 100 * everything).as_json() for percent in READ_AT},
    }


def _packed(wrong: np.ndarray) -> str:
    return base64.b64encode(np.packbits(np.asarray(wrong, bool)).tobytes()).decode()


def _unpacked(text: str, rows: int) -> np.ndarray:
    return np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=rows).astype(bool)
