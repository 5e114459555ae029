"""How mixed a set of cases is, from its class counts: the admissible impurities of Nan, Wang and Saligrama (2015).

All are zero for a single class, grow with the set (monotone) and grow faster the larger it is (supermodular): what their bound on the
cost of a greedy tree needs, and what entropy and Gini lack.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined, kernel

THRESHOLD_PAIRS, CLIPPED_PAIRS, POWERS, POLYNOMIAL = range(4)


class Impurity(NamedTuple):
    """Which impurity, and its parameters."""

    kind: int
    alpha: float
    power: int
    factors: NDArray[np.float64]  # polynomial: one per term
    exponents: NDArray[np.int64]  # terms x classes


@inlined
def impurity(which, counts):
    if which.kind == THRESHOLD_PAIRS and which.alpha > 0:
        return threshold_pairs(which.alpha, counts)
    if which.kind == THRESHOLD_PAIRS or which.kind == CLIPPED_PAIRS:
        return clipped_pairs(which.alpha, counts)
    if which.kind == POWERS:
        return powers(which.power, counts)
    return polynomial(which.factors, which.exponents, counts)


@inlined
def threshold_pairs(alpha, counts):
    """Equation (11), over unordered pairs of classes."""
    total = 0.0
    for i in range(len(counts)):
        if counts[i] > alpha:
            for j in range(i):
                pair = (counts[i] - alpha) * max(counts[j] - alpha, 0.0) - alpha * alpha
                total += max(pair, 0.0)
    return total


@inlined
def clipped_pairs(alpha, counts):
    """The appendix's form, without the last term: the sum over pairs of [n_i - alpha]+ [n_j - alpha]+."""
    whole, squares = 0.0, 0.0
    for c in range(len(counts)):
        clipped = max(counts[c] - alpha, 0.0)
        whole += clipped
        squares += clipped * clipped
    return 0.5 * (whole * whole - squares)


@inlined
def powers(power, counts):
    """Equation (14): (sum of n_i)^l - sum of n_i^l."""
    whole, parts = 0.0, 0.0
    for c in range(len(counts)):
        whole += counts[c]
        parts += counts[c] ** power
    return max(whole**power - parts, 0.0)


@inlined
def polynomial(factors, exponents, counts):
    """Equation (13)."""
    total = 0.0
    for term in range(len(factors)):
        product = factors[term]
        for c in range(len(counts)):
            if exponents[term, c] > 0:
                product *= counts[c] ** exponents[term, c]
        total += product
    return total


@kernel
def impurity_of(which, counts):
    """The impurity of one set, for callers outside the kernels."""
    return impurity(which, counts)
