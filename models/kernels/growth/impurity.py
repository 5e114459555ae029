"""How mixed a set of cases is, from its sums.

Pairs, powers and polynomials are the admissible impurities of Nan, Wang and Saligrama (2015): zero for a single class, growing with the set
(monotone), and growing faster the larger it is (supermodular): what their bound on the cost of a greedy tree needs, and what entropy and
Gini, per case as they are, lack. Penalties are what mistakes cost; gradients are for boosting, where "mixed" means that one score would
still lower the loss.

    sums    n_0 ... n_k-1            cases of each class: all but the last
            g_0 ... g_k-1 h_0 ...    first and second derivatives of the loss by each score: gradients
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import called, inlined, kernel

THRESHOLD_PAIRS, CLIPPED_PAIRS, POWERS, POLYNOMIAL, ENTROPY, GINI, PENALTIES, LOSS = range(8)
MONOTONE = POLYNOMIAL  # these and those before never fall when cases are added


class Impurity(NamedTuple):
    """Which impurity, and its parameters."""

    kind: int
    alpha: float
    power: int
    factors: NDArray[np.float64]  # polynomial: one per term
    exponents: NDArray[np.int64]  # terms x classes
    penalties: NDArray[np.float64]  # the class that is said x the class that is true
    l2: float  # what is added to second derivatives


@inlined
def impurity(which, sums, many, names):
    """The impurity of a set by its first `many` sums; `names` are the classes that they stand for."""
    if which.kind == CLIPPED_PAIRS or (which.kind == THRESHOLD_PAIRS and which.alpha == 0):
        return clipped_pairs(which.alpha, sums, many)
    if which.kind == LOSS:
        return loss(which.l2, sums, many)
    return other_impurity(which, sums, many, names)


@called
def other_impurity(which, sums, many, names):
    """Those that are not worth a place of their own wherever an impurity is asked for."""
    if which.kind == THRESHOLD_PAIRS:
        return threshold_pairs(which.alpha, sums, many)
    if which.kind == POWERS:
        return powers(which.power, sums, many)
    if which.kind == POLYNOMIAL:
        return polynomial(which.factors, which.exponents, sums, many, names)
    if which.kind == ENTROPY:
        return entropy(sums, many)
    if which.kind == GINI:
        return gini(sums, many)
    return least_penalty(which.penalties, sums, many, names)


@inlined
def threshold_pairs(alpha, sums, many):
    """Equation (11), over unordered pairs of classes."""
    total = 0.0
    for i in range(many):
        if sums[i] > alpha:
            for j in range(i):
                pair = (sums[i] - alpha) * max(sums[j] - alpha, 0.0) - alpha * alpha
                total += max(pair, 0.0)
    return total


@inlined
def clipped_pairs(alpha, sums, many):
    """The appendix's form, without the last term: the sum over pairs of [n_i - alpha]+ [n_j - alpha]+."""
    whole, squares = 0.0, 0.0
    for c in range(many):
        clipped = max(sums[c] - alpha, 0.0)
        whole += clipped
        squares += clipped * clipped
    return 0.5 * (whole * whole - squares)


@inlined
def powers(power, sums, many):
    """Equation (14): (sum of n_i)^l - sum of n_i^l."""
    whole, parts = 0.0, 0.0
    for c in range(many):
        whole += sums[c]
        parts += sums[c] ** power
    return max(whole**power - parts, 0.0)


@inlined
def polynomial(factors, exponents, sums, many, names):
    """Equation (13). A class that is not among the sums has no cases."""
    total = 0.0
    for term in range(len(factors)):
        product, found = factors[term], 0
        for c in range(many):
            exponent = exponents[term, names[c]]
            if exponent > 0:
                product *= sums[c] ** exponent
                found += 1
        wanted = 0
        for c in range(exponents.shape[1]):
            wanted += exponents[term, c] > 0
        total += product if found == wanted else 0.0
    return total


@inlined
def entropy(sums, many):
    """In bits, per case."""
    whole, total = 0.0, 0.0
    for c in range(many):
        whole += sums[c]
        if sums[c] > 0.0:
            total += sums[c] * np.log2(sums[c])
    return max(np.log2(whole) - total / whole, 0.0) if whole > 0.0 else 0.0


@inlined
def gini(sums, many):
    """Per case: how often two cases, drawn one after the other, differ."""
    whole, squares = 0.0, 0.0
    for c in range(many):
        whole += sums[c]
        squares += sums[c] * sums[c]
    return max(1.0 - squares / (whole * whole), 0.0) if whole > 0.0 else 0.0


@inlined
def least_penalty(penalties, sums, many, names):
    """What the cases cost if all are called by the one name that costs least."""
    least = np.inf
    for said in range(len(penalties)):
        expected = 0.0
        for c in range(many):
            expected += penalties[said, names[c]] * sums[c]
        least = min(least, expected)
    return least


@inlined
def loss(l2, sums, many):
    """What is left of the loss, up to a constant, when the best scores are added: -1/2 sum of G^2 / (H + l2)."""
    total = 0.0
    for k in range(many // 2):
        total += sums[k] * sums[k] / (sums[many // 2 + k] + l2)
    return -0.5 * total


@inlined
def held_score(l2, sums, low, high):
    """The best score within bounds, of one derivative and its second."""
    return min(max(-sums[0] / (sums[1] + l2), low), high)


@inlined
def held_loss(l2, sums, low, high):
    """What is left of the loss when that score is added: `loss`, where the bounds do not bind."""
    score = held_score(l2, sums, low, high)
    return sums[0] * score + 0.5 * (sums[1] + l2) * score * score


@kernel
def impurity_of(which, sums):
    """The impurity of one set, for callers outside the kernels."""
    return impurity(which, sums, len(sums), np.arange(len(sums)))
