"""Honest probabilities: how far told ones are from what comes true, and the small map that brings them nearer.

The map is fitted on cases that grew no tree, as they stood when they were served: at the end and at earlier moments. It moves the log odds
of the leader's told probability to

    odds + u (bias + slope odds) + v end_bias

where u says how far the trees have come, from 0 at their roots to 1 at nodes of a single case, and v how many of them are at their ends.
The bias is the leading class's own: trees that were grown to the end say a rare class too often. The other classes share what is left as
before. A slope above -1 keeps the order, and kernels/serving/telling.py keeps the leader first.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

BINS = 15  # of equal width, in which told probabilities and what came true are compared
SUREST = 1e-6  # how near to 0 and 1 a told probability counts in a fit
FLATTEST = -0.95  # the least slope
WIDEST = 20.0  # how large biases and the slope may be
CALM = 1.0  # of the penalty on them, and on how far a class is from the others: a few cases should not move much
STEPS = 50


class Calibration(NamedTuple):
    """How the log odds of the leader's probability are moved as the trees come to smaller nodes, and to their ends."""

    slope: float
    end_bias: float
    bias: tuple[float, ...]  # per class

    @classmethod
    def of(cls, given: Any, classes: int) -> "Calibration":
        """From what an archive holds; ValueError if probabilities could not be told with it."""
        if not isinstance(given, dict) or set(given) != set(cls._fields):
            raise ValueError(f"calibration is {str(given)[:120]}: expected {', '.join(cls._fields)}, or None")
        slope, end_bias, bias = (given[name] for name in cls._fields)
        if not isinstance(bias, (list, tuple)) or len(bias) != classes:
            raise ValueError(f"the bias of the calibration is {str(bias)[:80]}: expected one number per class, {classes}")
        for value, least in ((slope, FLATTEST), *((one, -WIDEST) for one in (end_bias, *bias))):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= WIDEST:
                raise ValueError(f"the calibration has {str(value)[:80]}: expected a number from {least:g} to {WIDEST:g}")
        return cls(float(slope), float(end_bias), tuple(map(float, bias)))

    def as_dict(self) -> dict[str, Any]:
        return self._asdict() | {"bias": list(self.bias)}


class States(NamedTuple):
    """Cases as they stood at some moment, judged by trees that they did not grow."""

    label: NDArray[np.int32]
    told: NDArray[np.float64]  # the label's probability, not calibrated
    far: NDArray[np.float64]  # how far the trees had come, and how many were at their ends: see kernels/serving/telling.py
    done: NDArray[np.float64]
    right: NDArray[np.bool_]  # whether the label was the true one
    weight: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: "list[States]") -> "States":
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def fit(states: States, classes: int) -> Calibration:
    """The map under which the truth is likeliest.

    Examples
    --------
    >>> label, told = np.arange(1000) % 2, np.full(1000, 0.9)
    >>> right = np.where(label == 0, np.arange(1000) % 10 < 8, np.arange(1000) % 10 < 5)
    >>> found = fit(States(label, told, np.ones(1000), np.zeros(1000), right, np.ones(1000)), 2)
    >>> odds = np.log(9) + np.array(found.bias) + found.slope * np.log(9)
    >>> (1 / (1 + np.exp(-odds))).round(1).tolist()
    [0.8, 0.4]
    """
    told = np.clip(states.told, SUREST, 1 - SUREST)
    odds = np.log(told / (1 - told))
    own = np.zeros((len(odds), classes))  # how far the leading class's bias is from that of all
    own[np.arange(len(odds)), states.label] = states.far
    moved = np.column_stack([states.done, states.far, own, states.far * odds])
    weight = states.weight / states.weight.mean()
    found = _likeliest(odds, moved, states.right, weight)
    if found[-1] < FLATTEST:
        found = np.append(_likeliest(odds + FLATTEST * moved[:, -1], moved[:, :-1], states.right, weight), FLATTEST)
    end_bias, *bias = np.clip([found[0], *(found[1] + found[2:-1])], -WIDEST, WIDEST).round(6).tolist()
    return Calibration(round(float(min(found[-1], WIDEST)), 6), end_bias, tuple(bias))


def _likeliest(
    odds: NDArray[np.float64], moved: NDArray[np.float64], right: NDArray[np.bool_], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The factors of the columns of `moved` under which the truth is likeliest, less a penalty; each step is halved until it is a gain."""

    def loss(factors: NDArray[np.float64]) -> float:
        at = odds + moved @ factors
        return float(weight @ np.logaddexp(0, np.where(right, -at, at)) + CALM / 2 * factors @ factors)

    found = np.zeros(moved.shape[1])
    now = loss(found)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(odds + moved @ found, -40, 40)))
        rise = moved.T @ (weight * (right - chance)) - CALM * found
        bend = (moved * (weight * chance * (1 - chance))[:, None]).T @ moved + CALM * np.eye(len(found))
        step = np.linalg.solve(bend, rise)
        while loss(found + step) > now and np.abs(step).max() > 1e-9:
            step /= 2
        if np.abs(step).max() <= 1e-9:
            break
        found = found + step
        now = loss(found)
    return found


def calibration_error(told: Any, right: Any, weights: Any = None) -> float:
    """The expected calibration error: over BINS bins of told probabilities, how far the mean told lies from the share that came true.

    Examples
    --------
    >>> calibration_error([0.8, 0.8, 0.8, 0.8, 0.8], [True, True, True, True, False])
    0.0
    >>> round(calibration_error([1.0, 1.0, 0.5, 0.5], [True, False, True, False]), 6)
    0.25
    """
    told, right = np.asarray(told, float), np.asarray(right, float)
    weights = np.ones(len(told)) if weights is None else np.asarray(weights, float)
    if not len(told) or not weights.sum():
        raise ValueError("there are no cases to compare told probabilities with what came true")
    bins = np.minimum((told * BINS).astype(int), BINS - 1)
    apart = np.bincount(bins, weights * (told - right), BINS)
    return float(np.abs(np.round(apart, 12)).sum() / weights.sum())
