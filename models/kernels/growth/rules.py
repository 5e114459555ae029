"""What makes a question good, as run-time numbers: compiled once for all of them. Higher scores are better.

    remains   how mixed its outcomes are, joined to one number          lower is better; compared within a feature
    gain      whole - remains                                           what the question is worth
    score     the gain with the price that it would be bought for      compared between features
    pick      the best feature, or one drawn in proportion to the scores

A rule's *bound* turns this round: a feature that is to beat the best score so far needs a gain above so much, so a search may leave out
whatever cannot leave less than `whole - bound`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import called, inlined
from frugal.models.kernels.growth.impurity import Impurity, held_loss, held_score, impurity
from frugal.models.kernels.marks import NONE

WORST, MEAN, SUM, DISJUNCTION = range(4)  # how the outcomes' impurities are joined
PLAIN, DIVIDE, SQUARE, POWER, SUBTRACT = range(5)  # how the price comes in
BEST, IN_PROPORTION = range(2)
BETTER_SIDE, OWN_OUTCOME, ENDS, FRACTIONS = range(4)  # where a missing value goes; of every category it always has its own, or ends


class Rule(NamedTuple):
    """What makes a question good."""

    impurity: Impurity
    join: int
    price: int
    pick: int
    missing: int
    random: bool  # cuts drawn at random, as in BudgetRF's experiments, instead of every cut
    ratio: bool  # C4.5's gain ratio: the gain over the entropy of the outcomes' sizes, of those with at least the mean gain
    w: float  # POWER: how much prices count
    lam: float  # SUBTRACT: the worth of money; DISJUNCTION: the weight of the impurity
    theta: float  # DISJUNCTION: the share at which a node is left alone
    tie: float  # scores this near to each other, relatively, are equal: the first wins


class Here(NamedTuple):
    """A node while it is searched: what all its questions are judged by."""

    sums: NDArray[np.float64]
    many: int  # of the sums, how many the impurity reads
    names: NDArray[np.int64]  # what classes those stand for
    counter: int  # the sum that counts rows, or NONE: then every sum is positive where there is a row
    rows: int
    weight: float
    whole: float  # its impurity
    held: bool  # scores have bounds
    low: float  # those of the node
    high: float
    trend: int  # 1 where scores may only rise with the feature that is looked at, -1 fall


@inlined
def score_of(rule, gain, price):
    """A gain with its price."""
    if rule.price == DIVIDE:
        return gain / price
    if rule.price == SQUARE:
        return gain * gain / price
    if rule.price == POWER:
        return (2.0**gain - 1.0) / (price + 1.0) ** rule.w
    if rule.price == SUBTRACT:
        return gain - rule.lam * price
    return gain


@inlined
def bound(rule, score, price):
    """The gain above which a question of this price scores more."""
    if rule.price == DIVIDE:
        return score * price
    if rule.price == SQUARE:
        return np.sqrt(score * price)
    if rule.price == POWER:
        return np.log2(1.0 + score * (price + 1.0) ** rule.w)
    if rule.price == SUBTRACT:
        return score + rule.lam * price
    return score


@inlined
def mixed_at(rule, here, sums):
    """The impurity of some of a node's cases."""
    if here.held:
        return held_loss(rule.impurity.l2, sums, here.low, here.high)
    return impurity(rule.impurity, sums, here.many, here.names)


@inlined
def remains_of_two(rule, here, left, right, bar):
    """What a question with two outcomes leaves; infinite where that is sure not to be below the bar, or where scores must not move so."""
    if here.held:
        return held_remains(rule.impurity.l2, here, left, right)
    high = impurity(rule.impurity, right, here.many, here.names)
    if rule.join == WORST and high >= bar:
        return np.inf
    low = impurity(rule.impurity, left, here.many, here.names)
    if rule.join == WORST:
        return max(low, high)
    if rule.join == SUM:
        return low + high
    if rule.join == MEAN:
        return mean_of_two(here, left, low, right, high)
    return -balance_and_efficiency(rule, here, left, right) + rule.lam * here.weight * mean_of_two(here, left, low, right, high)


@called
def held_remains(l2, here, left, right):
    rises = held_score(l2, right, here.low, here.high) - held_score(l2, left, here.low, here.high)
    if here.trend * rises < 0.0:
        return np.inf
    return held_loss(l2, left, here.low, here.high) + held_loss(l2, right, here.low, here.high)


@inlined
def mean_of_two(here, left, low, right, high):
    size_left, size_right = 0.0, 0.0
    for c in range(here.many):
        size_left += left[c]
        size_right += right[c]
    return (size_left * low + size_right * high) / (size_left + size_right)


@called
def balance_and_efficiency(rule, here, left, right):
    """B + E of Zhang and Gionis (2022), Algorithm 1, for two outcomes of objects.

    An object's function falls short of 1 by (p(S) - m)+ / (1 - m) * phi(S) / phi(X), where m is the greater of its own probability and
    theta, and phi counts pairs of different classes. So E adds up, over the outcomes T, p(T) less
    phi(T) / phi(S) * sum over T of p (p(T) - m)+ / (p(S) - m).
    """
    k = here.many
    weight_left, weight_right, rows_left, rows_right = 0.0, 0.0, 0.0, 0.0
    for c in range(k):
        weight_left += left[c]
        weight_right += right[c]
        rows_left += left[k + c]
        rows_right += right[k + c]
    balance = weight_left + weight_right - (weight_left if rows_left >= rows_right else weight_right)
    pairs = mixed_pairs(here.sums, k)
    kept = shortfall(rule, here, left, weight_left) * mixed_pairs(left, k) + shortfall(rule, here, right, weight_right) * mixed_pairs(
        right, k
    )
    return balance + weight_left + weight_right - kept / pairs


@inlined
def mixed_pairs(sums, k):
    """Pairs of objects of different classes."""
    whole, squares = 0.0, 0.0
    for c in range(k):
        whole += sums[k + c]
        squares += sums[k + c] * sums[k + c]
    return 0.5 * (whole * whole - squares)


@inlined
def shortfall(rule, here, part, weight):
    """The sum over a part's objects of p (p(T) - m)+ / (p(S) - m): light ones, of at most theta, share one m; heavy ones have two sums."""
    k = here.many
    heavy = part[2 * k]
    light = (weight - heavy) * max(weight - rule.theta, 0.0) / (here.weight - rule.theta)
    return light + max(weight * part[2 * k + 1] - part[2 * k + 2], 0.0)


@inlined
def beats(rule, score, best):
    """Whether a score is above the best so far, by more than a tie."""
    return score > best if rule.tie == 0.0 or best == -np.inf else score > best + rule.tie * abs(best)


@inlined
def draw(state):
    """xorshift64*: the next random word."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(2685821657736338717)


@called
def drawn_in_proportion(scores, least, state):
    """A feature drawn with a probability in proportion to its score, of those above the least; NONE if there is none."""
    total = 0.0
    for f in range(len(scores)):
        if scores[f] > least:
            total += scores[f]
    if not total > 0.0:
        return NONE
    point = total * (float(draw(state) >> np.uint64(11)) * 2.0**-53)
    last = NONE
    for f in range(len(scores)):
        if scores[f] > least:
            last = f
            point -= scores[f]
            if point < 0.0:
                return f
    return last
