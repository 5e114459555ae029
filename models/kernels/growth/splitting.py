"""The best question at a node: the least risk R(t) = c(t) / (F(S) - worst F(S_i)), over all features and cuts.

A numeric feature's candidates are the cuts between its bins; a categorical feature has one outcome per category, because every admissible
impurity grows with the set: the finest partition has the least worst part, and grouping could only raise it. Missing values of a numeric
feature go to the side that scores better; of a categorical one they are an outcome of their own.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined
from frugal.models.kernels.growth.impurity import Impurity, impurity

NO_SPLIT, DEAD = -1, -2


class Criterion(NamedTuple):
    """What makes a split good."""

    impurity: Impurity
    expected: bool  # the mean impurity of the outcomes instead of the worst
    random: bool  # stumps drawn at random, as in the paper's experiments, instead of every cut


class Bins(NamedTuple):
    """A binned table."""

    codes: NDArray[np.uint8]  # features x rows
    classes: NDArray[np.int32]  # per row
    offsets: NDArray[np.int64]  # per feature: where its cells start; the last of them is for missing
    sizes: NDArray[np.int64]  # per feature: how many bins, without the one for missing
    categorical: NDArray[np.bool_]


class Scratch(NamedTuple):
    """Room for one node's search."""

    left: NDArray[np.float64]  # per class
    right: NDArray[np.float64]
    absent: NDArray[np.float64]
    cells: NDArray[np.float64]  # bins x classes of one feature
    random: NDArray[np.uint64]  # one word of state


@inlined
def draw(state):
    """xorshift64*: the next random word."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(2685821657736338717)


@inlined
def stumps_for(cases):
    """How many stumps the paper draws per feature (section 3)."""
    return 80 if cases > 2000 else (40 if cases > 500 else 20)


@inlined
def mean_of_sides(left, low, right, high):
    size_left, size_right = left.sum(), right.sum()
    return (size_left * low + size_right * high) / (size_left + size_right)


@inlined
def judge_cut(criterion, left, right, bar):
    """The impurity that a two-way cut leaves: the worst of both sides, or their mean. Infinite if it is sure not to be below the bar."""
    high = impurity(criterion.impurity, right)
    if not criterion.expected:
        return np.inf if high >= bar else max(high, impurity(criterion.impurity, left))
    return mean_of_sides(left, impurity(criterion.impurity, left), right, high)


@inlined
def best_cut(criterion, cells, size, totals, cases, bar, scratch):
    """The best cut of a numeric feature that leaves less than the bar: (impurity left, last bin on the left, whether missing goes left).

    `cells` are class counts per bin, with missing in row `size`. A cut that leaves a side empty is no cut; where there is none at all the
    bin is DEAD. The left side's impurity only grows from cut to cut, so once it reaches the best so far no later cut is better.
    """
    best, best_bin, best_left = bar, NO_SPLIT, False
    first, last = occupied(cells, size)
    if last <= first:
        return np.inf, DEAD, False
    missing = 0.0
    for c in range(len(totals)):
        scratch.absent[c] = cells[size, c]
        missing += cells[size, c]
        scratch.left[c] = 0.0
        scratch.right[c] = totals[c] - cells[size, c]
    tries = stumps_for(cases) if criterion.random else last - first
    for k in range(tries):
        if criterion.random:
            bin_ = first + np.int64(draw(scratch.random) % np.uint64(last - first))
            sum_sides(cells, bin_, totals, scratch)
        else:
            bin_ = first + k
            moved = 0.0
            for c in range(len(totals)):
                scratch.left[c] += cells[bin_, c]
                scratch.right[c] -= cells[bin_, c]
                moved += cells[bin_, c]
            if moved == 0.0:
                continue
        goes_left = False
        if missing > 0.0:
            remains, goes_left = with_missing(criterion, best, scratch)
        else:
            remains = judge_cut(criterion, scratch.left, scratch.right, best)
        if remains < best:
            best, best_bin, best_left = remains, bin_, goes_left
        elif not criterion.random and not criterion.expected and remains < np.inf and impurity(criterion.impurity, scratch.left) >= best:
            break
    return best if best_bin != NO_SPLIT else np.inf, best_bin, best_left


@inlined
def occupied(cells, size):
    """The first and last bin with cases in it."""
    first, last = 0, size - 1
    while first < size and is_empty(cells, first):
        first += 1
    while last > first and is_empty(cells, last):
        last -= 1
    return first, last


@inlined
def is_empty(cells, b):
    for c in range(cells.shape[1]):
        if cells[b, c] > 0.0:
            return False
    return True


@inlined
def sum_sides(cells, bin_, totals, scratch):
    for c in range(len(totals)):
        scratch.left[c] = 0.0
        for b in range(bin_ + 1):
            scratch.left[c] += cells[b, c]
        scratch.right[c] = totals[c] - scratch.absent[c] - scratch.left[c]


@inlined
def with_missing(criterion, bar, scratch):
    """(impurity left, whether missing goes left): the better of both sides."""
    for c in range(len(scratch.absent)):
        scratch.left[c] += scratch.absent[c]
    if_left = judge_cut(criterion, scratch.left, scratch.right, bar)
    for c in range(len(scratch.absent)):
        scratch.left[c] -= scratch.absent[c]
        scratch.right[c] += scratch.absent[c]
    if_right = judge_cut(criterion, scratch.left, scratch.right, bar)
    for c in range(len(scratch.absent)):
        scratch.right[c] -= scratch.absent[c]
    return min(if_left, if_right), if_left < if_right


@inlined
def every_category(criterion, cells, size, scratch):
    """The impurity that one outcome per category leaves; infinite where there is but one outcome."""
    worst, mean, whole, outcomes = 0.0, 0.0, 0.0, 0
    for b in range(size + 1):
        cases = 0.0
        for c in range(cells.shape[1]):
            scratch.left[c] = cells[b, c]
            cases += cells[b, c]
        if cases == 0.0:
            continue
        outcomes += 1
        part = impurity(criterion.impurity, scratch.left)
        worst = max(worst, part)
        mean += cases * part
        whole += cases
    if outcomes < 2:
        return np.inf
    return mean / whole if criterion.expected else worst
