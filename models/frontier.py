"""Operating points: where a model stops asking, and what that costs and errs.

A case is over once the model is sure enough of its label (`confidence`), or when the next question would bring what was spent above a
`cap`. Many pairs of the two are tried on rows that did not grow the trees. Those that nothing beats are the frontier:

    error |*                  it starts at cost 0, with nothing asked that costs anything; for a mean cost that somebody aims at
          |  o                the dearest point not above it says when to stop
          |     *      +
          |         *         * on the lower convex hull   o between two of those   + beaten: not kept
          |____________
             mean cost

A caller gets one point, not a mixture of two: so where the hull has a wide gap, the best points within it are kept as well.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import MILLION, MOST, millionths, money, shown
from frugal.models.kernels.serving import tracing
from frugal.models.kernels.serving.acquiring import UNLIMITED
from frugal.models.kernels.serving.deciding import NEVER
from frugal.models.threads import BLOCK, in_threads

DOUBTS = np.concatenate([np.linspace(0.5, 0.1, 61)[:-1], np.geomspace(0.1, 0.001, 25)])  # 1 - confidence
SHARES = np.geomspace(0.01, 0.7, 14)  # caps, of what everything costs
GAP = 1.05  # two points whose costs are further apart than this have others between them, if there are any
LITTLE = 0.002  # of what everything costs: gaps below this are none
MOST_POINTS = 1000


class Point(NamedTuple):
    """When to stop, and what that gave on rows that did not grow the trees: means over the cases.

    `error` is the share of wrong labels or, where mistakes have prices, what they cost; `early` the share of cases that were over before
    their trees were. A confidence of 1 stops nothing; a cap of None neither.
    """

    cost: float
    error: float
    log_loss: float
    confidence: float
    cap: float | None
    early: float


class Frontier(NamedTuple):
    """Points by rising cost, and which of them holds where nobody says anything."""

    points: tuple[Point, ...]
    default: int

    @classmethod
    def of(cls, given: Any) -> "Frontier":
        """From what an archive holds; ValueError if sessions could not be stopped by it."""
        if isinstance(given, Frontier):
            return given
        if not isinstance(given, Mapping) or set(given) != set(cls._fields) or not isinstance(given["points"], list):
            raise ValueError(f"the frontier is {shown(given)}: expected {' and '.join(cls._fields)}, or None")
        if not 0 < len(given["points"]) <= MOST_POINTS:
            raise ValueError(f"the frontier has {len(given['points']):,} points: expected 1 to {MOST_POINTS:,}")
        points = tuple(_point(each) for each in given["points"])
        if any(after.cost < before.cost for before, after in itertools.pairwise(points)):
            raise ValueError("the frontier's points must rise in cost")
        if type(given["default"]) is not int or not 0 <= given["default"] < len(points):
            raise ValueError(f"the frontier's default is {shown(given['default'])}: expected the number of one of its points")
        return cls(points, given["default"])

    def as_dict(self) -> dict[str, Any]:
        return {"points": [point._asdict() for point in self.points], "default": self.default}

    def at(self, aim: float) -> Point:
        """The dearest point whose mean cost is not above the aim."""
        limit = money(millionths(aim, "the aim"))
        return next((point for point in reversed(self.points) if point.cost <= limit), self.points[0])

    @property
    def surest(self) -> Point:
        """The point of least error, the cheapest of several."""
        return min(self.points, key=lambda point: point.error)


class Stopping(NamedTuple):
    """When a case is over: a confidence (None or 1: never by that) and a cap on what is spent (None: no cap)."""

    confidence: float | None
    cap: float | None


def stop_at(frontier: Frontier | None, budget: float | None, aim: float | None, confidence: float | None) -> Stopping:
    """Which stop holds, given what a caller wants. ValueError where that cannot be.

    Examples
    --------
    >>> low, high = Point(0.0, 0.4, 0.7, 1.0, 0.0, 1.0), Point(12.5, 0.2, 0.5, 0.9, 40.0, 0.6)
    >>> stop_at(Frontier((low, high), 0), None, 20, None)
    Stopping(confidence=0.9, cap=40.0)
    >>> stop_at(Frontier((low, high), 0), 30, None, None)
    Stopping(confidence=0.9, cap=None)
    """
    if aim is not None:
        if confidence is not None:
            raise ValueError("aim and confidence both say when to stop: give one of them")
        if frontier is None:
            raise ValueError("this model has no operating points, so it cannot aim at a mean cost: train it with points=True")
        point = frontier.at(aim)
        return Stopping(point.confidence, point.cap)
    if confidence is not None or frontier is None:
        return Stopping(confidence, None)
    if budget is not None:
        return Stopping(frontier.surest.confidence, None)
    point = frontier.points[frontier.default]
    return Stopping(point.confidence, point.cap)


class Tried(NamedTuple):
    """What each pair of a confidence and a cap gave: sums over rows."""

    sums: NDArray[np.float64]  # confidences x caps x what tracing.py adds up
    weight: float
    caps: NDArray[np.int64]  # in millionths
    everything: int  # what all features cost, in millionths

    @classmethod
    def joined(cls, parts: "Sequence[Tried]") -> "Tried":
        """Those of several groups of rows."""
        return cls(sum(part.sums for part in parts), sum(part.weight for part in parts), parts[0].caps, parts[0].everything)  # type: ignore[arg-type]

    def as_dear_as(self, other: "Tried") -> "Tried":
        """The same, each pair at the greater mean cost of the two."""
        sums = self.sums.copy()
        sums[..., tracing.COST] = np.maximum(sums[..., tracing.COST], other.sums[..., tracing.COST] * (self.weight / other.weight))
        return self._replace(sums=sums)


def confidences() -> NDArray[np.float64]:
    return np.append(1 - DOUBTS, NEVER)


def caps(everything: int, most: int) -> NDArray[np.int64]:
    """In millionths: nothing, shares of everything, and the most that may be spent on a case."""
    shares = np.rint(everything * SHARES).astype(np.int64)
    return np.concatenate([[0], shares[shares < most], [most]])


def measure(
    ensemble: Any,
    codes: NDArray[np.float64],
    classes: NDArray[np.int32],
    weights: NDArray[np.float64] | None = None,
    *,
    apart: NDArray[np.float64] | None = None,
    cap: float | None = None,
    n_jobs: int | None = None,
) -> Tried:
    """Let rows that did not grow an ensemble play their sessions to the end, and add up what stopping earlier would have given.

    `apart` has per row the weights of the trees that may speak of it, or one row for all; no case may go beyond `cap`.
    """
    most = UNLIMITED if cap is None else millionths(cap, "the cap")
    stops, limits = confidences(), caps(_everything(ensemble), most)
    sums = np.zeros((-(-len(codes) // BLOCK), len(stops), len(limits), tracing.EARLY + 1))  # of each block its own: the same in any thread
    given = np.ones(len(codes)) if weights is None else weights

    def work(part: slice) -> None:
        for start in range(part.start, part.stop, BLOCK):
            here = slice(start, min(start + BLOCK, part.stop))
            speak = ensemble.served.weights[None] if apart is None else apart[here] if len(apart) > 1 else apart
            rows = (codes[here], classes[here], given[here], speak)
            tracing.measure(ensemble.served, ensemble.trail, ensemble.prices, *rows, most, stops, limits, sums[start // BLOCK])

    in_threads(work, len(codes), n_jobs)
    return Tried(sums.sum(axis=0), float(given.sum()), limits, _everything(ensemble))


class Shares(NamedTuple):
    """Per feature, of sessions that go on to the end: its share of the money, and of the error and doubt that questions removed."""

    money: NDArray[np.float64]
    error: NDArray[np.float64]


def shares(ensemble: Any, codes: NDArray[np.float64], classes: NDArray[np.int32], weights: NDArray[np.float64]) -> Shares:
    """What features were paid and good for on some rows; a feature that only added doubt has no share of what was removed."""
    money, removed = np.zeros(codes.shape[1]), np.zeros(codes.shape[1])
    tracing.shares(ensemble.served, ensemble.trail, ensemble.prices, codes, classes, weights, money, removed)
    return Shares(_to_one(money), _to_one(np.maximum(removed, 0.0)))


def _to_one(amounts: NDArray[np.float64]) -> NDArray[np.float64]:
    return amounts / amounts.sum() if amounts.sum() > 0 else amounts


def _everything(ensemble: Any) -> int:
    return millionths(ensemble.costs.total(ensemble.costs.features), "the cost of everything")


def frontier_of(tried: Tried, budget: float | None = None, priced_mistakes: bool = False) -> Frontier:
    """The points that nothing beats, by the mean of the error and of the doubt in what was told, which is less a matter of luck.

    The default is the dearest point within `budget`; or the one of least cost and penalty together, where mistakes have prices; or the
    knee.
    """
    stops, limits = confidences(), tried.caps
    means = (tried.sums / tried.weight).reshape(-1, tracing.EARLY + 1)
    cost = means[:, tracing.COST] / MILLION
    worth = (means[:, tracing.MISTAKE] + means[:, tracing.DOUBT]) / 2
    first = (len(stops) - 1) * len(limits)  # to the end of what is free
    hull = _lower_hull(cost, worth, first)
    chosen = _with_gaps_filled(cost, worth, hull, tried.everything / MILLION)
    points = tuple(_made(means[i], stops[i // len(limits)], limits[i % len(limits)]) for i in chosen)
    if budget is not None:
        return Frontier(points, _last_within(points, budget))
    if priced_mistakes:
        return Frontier(points, int(np.argmin([point.cost + point.error for point in points])))
    return Frontier(points, chosen.index(hull[_knee(cost[hull], worth[hull])]))


def area(tried: Tried, cap: float | None = None) -> float:
    """How much is doubted and mistaken: the mean under the frontier, over mean costs from 1 to 50 % of everything; or the least, under a
    cap."""
    means = (tried.sums / tried.weight).reshape(-1, tracing.EARLY + 1)
    cost, worth = means[:, tracing.COST], (means[:, tracing.MISTAKE] + means[:, tracing.DOUBT]) / 2
    if cap is not None:
        return float(worth.min())
    chosen = _lower_hull(cost, worth, (tried.sums.shape[0] - 1) * tried.sums.shape[1])
    at = np.linspace(0.01, 0.5, 99) * tried.everything
    return float(np.interp(at, cost[chosen], worth[chosen]).mean())


def _made(means: NDArray[np.float64], confidence: float, cap: int) -> Point:
    mistake, surprise = float(means[tracing.MISTAKE]), float(means[tracing.SURPRISE])
    cost, early = round(float(means[tracing.COST]) / MILLION, 6), float(means[tracing.EARLY])
    return Point(cost, mistake, surprise, min(1.0, float(confidence)), None if cap == UNLIMITED else money(int(cap)), early)


def _lower_hull(cost: NDArray[np.float64], worth: NDArray[np.float64], first: int) -> list[int]:
    """From the first point, of cost 0, down to the least; each next one the steepest fall.

    Examples
    --------
    >>> _lower_hull(np.array([0.0, 1.0, 2.0, 2.0, 4.0]), np.array([1.0, 0.9, 0.2, 0.1, 0.1]), 0)
    [0, 3]
    """
    chosen = [first]
    order = np.lexsort((worth, cost)).tolist()
    for i in order:
        if cost[i] <= cost[chosen[-1]] or worth[i] >= worth[chosen[-1]]:
            continue
        while len(chosen) > 1 and _slope(cost, worth, chosen[-2], chosen[-1]) >= _slope(cost, worth, chosen[-2], i):
            chosen.pop()
        chosen.append(i)
    return chosen


def _with_gaps_filled(cost: NDArray[np.float64], worth: NDArray[np.float64], hull: list[int], everything: float) -> list[int]:
    """The hull, and the best points between those of its points that are far apart in cost."""
    chosen = hull[:1]
    for end in hull[1:]:
        while True:
            reach = max(cost[chosen[-1]] * GAP, cost[chosen[-1]] + LITTLE * everything)
            between = np.flatnonzero((cost > cost[chosen[-1]]) & (cost <= reach) & (worth < worth[chosen[-1]]))
            if reach >= cost[end]:
                break
            if not len(between):  # none so near: the next one
                between = np.flatnonzero((cost > reach) & (cost < cost[end]) & (worth < worth[chosen[-1]]))
                if not len(between):
                    break
                between = between[cost[between] <= max(cost[between].min() * GAP, cost[between].min() + LITTLE * everything)]
            chosen.append(int(between[np.argmin(worth[between])]))
        chosen.append(end)
    return chosen


def _slope(cost: NDArray[np.float64], worth: NDArray[np.float64], a: int, b: int) -> float:
    return float((worth[b] - worth[a]) / (cost[b] - cost[a]))


def _knee(cost: NDArray[np.float64], worth: NDArray[np.float64]) -> int:
    """The point farthest from the line between the ends, both axes scaled to 1."""
    if len(cost) < 3:
        return len(cost) - 1
    x = (cost - cost[0]) / (cost[-1] - cost[0])
    y = (worth - worth[-1]) / (worth[0] - worth[-1])
    return int(np.argmax(1 - x - y))


def _last_within(points: Sequence[Point], budget: float) -> int:
    return max(i for i, point in enumerate(points) if point.cost <= budget or i == 0)


def _point(given: Any) -> Point:
    if not isinstance(given, Mapping) or set(given) != set(Point._fields):
        raise ValueError(f"a point of the frontier is {shown(given)}: expected {', '.join(Point._fields)}")
    for name, high in (("cost", MOST), ("error", math.inf), ("log_loss", math.inf), ("early", 1.0 + 1e-9)):
        if not _number(given[name], 0.0, high):
            raise ValueError(f"the {name} of a point of the frontier is {shown(given[name])}: expected a number of at least 0")
    if not _number(given["confidence"], 0.0, 1.0) or given["confidence"] == 0:
        raise ValueError(f"the confidence of a point of the frontier is {shown(given['confidence'])}: expected a number above 0, at most 1")
    cap = given["cap"]
    if cap is not None:
        millionths(cap, "the cap of a point of the frontier")
    cost, error, surprise, confidence, early = (float(given[name]) for name in ("cost", "error", "log_loss", "confidence", "early"))
    return Point(cost, error, surprise, confidence, None if cap is None else float(cap), early)


def _number(value: Any, low: float, high: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and low <= value <= high
