"""The best question of one feature at a node: what leaves least, by the rule.

`cells` are sums per bin, with missing in row `size`. A numeric feature's candidates are the cuts between its bins, or each bin alone; a
categorical feature's are each category alone, or one outcome per category: every monotone impurity is then least in its worst outcome, for
grouping could only raise it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import called, inlined
from frugal.models.kernels.growth.impurity import MONOTONE, impurity
from frugal.models.kernels.growth.questions import MISSING, put_in
from frugal.models.kernels.growth.rules import (
    DISJUNCTION,
    ENDS,
    MEAN,
    OWN_OUTCOME,
    SUM,
    WORST,
    draw,
    mixed_at,
    mixed_pairs,
    remains_of_two,
    shortfall,
)
from frugal.models.kernels.growth.targets import is_empty
from frugal.models.kernels.marks import CUT, EVERY_CATEGORY, NONE, SOME_CATEGORIES

NO_SPLIT, DEAD = -1, -2
CAUTION = 10.0  # added to second derivatives where categories are sorted by their scores: rare ones come to the middle


class Scratch(NamedTuple):
    """Room for one node's search."""

    left: NDArray[np.float64]  # sums
    right: NDArray[np.float64]
    absent: NDArray[np.float64]
    known: NDArray[np.float64]
    cells: NDArray[np.float64]  # bins x sums of one feature
    random: NDArray[np.uint64]  # one word of state
    keys: NDArray[np.float64]  # per bin: the score it is sorted by
    ranked: NDArray[np.int64]  # the bins that have rows, by that
    chosen: NDArray[np.uint64]  # the set of bins of the best question


@inlined
def best_question(rule, least_rows, here, form, cells, size, partial, bar, scratch):
    """(what it leaves, its bin, where missing goes): the best question of a feature that leaves less than the bar; the bin is NO_SPLIT
    where there is none, and DEAD where the node's rows, and so those below, have but one bin.

    `partial`: some of the node's rows are in no cell.
    """
    absent = set_absent(here, cells, size, partial, scratch)
    if form == EVERY_CATEGORY:
        return every_category(rule, least_rows, here, cells, size, absent, partial, bar, scratch)
    first, last = occupied(here, cells, size)
    if last <= first:
        return np.inf, DEAD, NONE
    whole, share = here.whole, 1.0
    aside = partial or (absent and rule.missing >= ENDS)
    if aside:
        whole, share = of_the_known(rule, here, scratch)
        bar = whole - (here.whole - bar) / share
    best, best_bin, best_way = bar, NO_SPLIT, NONE
    if form == SOME_CATEGORIES:
        best, best_bin, best_way = some_categories(rule, least_rows, here, cells, first, last, absent, best, scratch)
        return outside(here, whole, share, best, aside), best_bin, best_way
    tries = stumps_for(here.rows) if rule.random else last - first + (form != CUT)
    for c in range(cells.shape[1]):
        scratch.left[c] = 0.0
        scratch.right[c] = scratch.known[c]
    for k in range(tries):
        bin_ = first + (np.int64(draw(scratch.random) % np.uint64(last - first)) if rule.random else k)
        if not set_sides(rule, here, form, cells, bin_, scratch):
            continue
        remains, way = judge_both(rule, least_rows, here, absent, best, scratch)
        if is_lower(rule, remains, best):
            best, best_bin, best_way = remains, bin_, way
        elif form == CUT and remains < np.inf and is_hopeless(rule, here, best, scratch):
            break
    if best_bin == NO_SPLIT:
        return np.inf, NO_SPLIT, NONE
    return outside(here, whole, share, best, aside), best_bin, best_way


@inlined
def outside(here, whole, share, best, aside):
    """What is left of the whole node where some of its rows stay aside."""
    return here.whole - share * (whole - best) if aside else best


@inlined
def set_sides(rule, here, form, cells, bin_, scratch):
    """The sums of both sides of a question: cuts come one after the other, unless they are drawn. False where a bin is empty."""
    if rule.random:
        sum_sides(cells, bin_, scratch)
        return True
    if is_empty(cells, bin_, here.counter, here.many):
        return False
    for c in range(cells.shape[1]):
        scratch.left[c] = cells[bin_, c] + (scratch.left[c] if form == CUT else 0.0)
        scratch.right[c] = (scratch.right[c] if form == CUT else scratch.known[c]) - cells[bin_, c]
    return True


@inlined
def is_hopeless(rule, here, best, scratch):
    """Whether no later cut is better: where the worst outcome counts and impurity only grows, once the left side's has reached the best."""
    if rule.join != WORST or rule.random or rule.impurity.kind > MONOTONE:
        return False
    return impurity(rule.impurity, scratch.left, here.many, here.names) >= best


@inlined
def set_absent(here, cells, size, partial, scratch):
    """Fill `absent` with the sums of missing, `known` with all others; gives whether any is missing."""
    width = cells.shape[1]
    absent = not is_empty(cells, size, here.counter, here.many)
    for c in range(width):
        scratch.absent[c] = cells[size, c]
        scratch.known[c] = here.sums[c] - cells[size, c]
    if partial:
        for c in range(width):
            scratch.known[c] = 0.0
            for b in range(size):
                scratch.known[c] += cells[b, c]
    return absent


@called
def of_the_known(rule, here, scratch):
    """(impurity, share) of the rows that go along, where others stay behind. A mean is per case: its gain is a share's."""
    going = scratch.left  # not in use yet
    weight, all_ = 0.0, 0.0
    for c in range(len(scratch.known)):
        going[c] = scratch.known[c] + (scratch.absent[c] if rule.missing < ENDS else 0.0)
    whole = mixed_at(rule, here, going)
    if rule.join != MEAN:
        return whole, 1.0
    for c in range(here.many):
        weight += going[c]
        all_ += here.sums[c]
    return whole, weight / all_


@inlined
def stumps_for(cases):
    """How many stumps BudgetRF's experiments draw per feature (section 3)."""
    return 80 if cases > 2000 else (40 if cases > 500 else 20)


@inlined
def is_lower(rule, remains, best):
    """Whether this is less than the least so far, by more than a tie."""
    return remains < best if rule.tie == 0.0 else remains < best - rule.tie * abs(best)


@inlined
def occupied(here, cells, size):
    """The first and last bin with rows in it."""
    first, last = 0, size - 1
    while first < size and is_empty(cells, first, here.counter, here.many):
        first += 1
    while last > first and is_empty(cells, last, here.counter, here.many):
        last -= 1
    return first, last


@called
def sum_sides(cells, bin_, scratch):
    for c in range(cells.shape[1]):
        scratch.left[c] = 0.0
        for b in range(bin_ + 1):
            scratch.left[c] += cells[b, c]
        scratch.right[c] = scratch.known[c] - scratch.left[c]


@inlined
def judge(rule, least_rows, here, bar, scratch):
    """What the two sides leave; infinite where it is sure not to be below the bar."""
    if least_rows > 1 and min(scratch.left[here.counter], scratch.right[here.counter]) < least_rows:
        return np.inf
    return remains_of_two(rule, here, scratch.left, scratch.right, bar)


@inlined
def judge_both(rule, least_rows, here, absent, bar, scratch):
    """(what the two sides leave, where missing goes then)."""
    if absent and rule.missing < ENDS:
        return with_missing(rule, least_rows, here, bar, scratch)
    return judge(rule, least_rows, here, bar, scratch), NONE


@called
def some_categories(rule, least_rows, here, cells, first, last, absent, bar, scratch):
    """The best set of bins, of derivatives: one bin alone; or, sorted by each score that they would get by themselves, those up to any.

    Leaves the set in `chosen`, the smaller side of the two: a category that is not there goes with the many.
    """
    best, best_way, size, many = bar, NONE, 0, 0
    for bin_ in range(first, last + 1):
        if not set_sides(rule, here, SOME_CATEGORIES, cells, bin_, scratch):
            continue
        scratch.ranked[many] = bin_
        many += 1
        remains, way = judge_both(rule, least_rows, here, absent, best, scratch)
        if is_lower(rule, remains, best):
            best, best_way, size = remains, way, 1
            scratch.chosen[:] = 0
            put_in(scratch.chosen, bin_)
    scores = here.many // 2
    for score in range(scores if many > 3 else 0):
        rank(cells, score, scores, many, scratch.keys, scratch.ranked)
        for c in range(cells.shape[1]):
            scratch.left[c] = 0.0
            scratch.right[c] = scratch.known[c]
        for k in range(many - 1):
            for c in range(cells.shape[1]):
                scratch.left[c] += cells[scratch.ranked[k], c]
                scratch.right[c] -= cells[scratch.ranked[k], c]
            remains, way = judge_both(rule, least_rows, here, absent, best, scratch)
            if is_lower(rule, remains, best):
                best, best_way, size = remains, way, k + 1
                scratch.chosen[:] = 0
                few = 2 * size <= many
                for j in range(0 if few else size, size if few else many):
                    put_in(scratch.chosen, scratch.ranked[j])
                if not few and way != NONE:
                    best_way = 1 - way
    return (best, 0, best_way) if size else (np.inf, NO_SPLIT, NONE)


@inlined
def rank(cells, score, scores, many, keys, ranked):
    """Sort bins by the score that their own rows would get; they stand nearly so, but for the first time."""
    for k in range(many):
        bin_ = ranked[k]
        keys[bin_] = -cells[bin_, score] / (cells[bin_, scores + score] + CAUTION)
    for k in range(1, many):
        bin_, j = ranked[k], k
        while j > 0 and (keys[ranked[j - 1]] > keys[bin_] or (keys[ranked[j - 1]] == keys[bin_] and ranked[j - 1] > bin_)):
            ranked[j] = ranked[j - 1]
            j -= 1
        ranked[j] = bin_


@called
def with_missing(rule, least_rows, here, bar, scratch):
    """(what the two sides leave with the missing as an outcome of their own, or on the better side; that outcome)."""
    if rule.missing == OWN_OUTCOME:
        return with_own_outcome(rule, here, judge(rule, least_rows, here, bar, scratch), scratch), MISSING
    best, way = np.inf, 1
    for side in (1, 0):
        part = scratch.right if side else scratch.left
        for c in range(len(part)):
            part[c] += scratch.absent[c]
        remains = judge(rule, least_rows, here, bar, scratch)
        for c in range(len(part)):
            part[c] -= scratch.absent[c]
        if remains < best:
            best, way = remains, side
    return best, way


@inlined
def with_own_outcome(rule, here, two, scratch):
    """What two sides and the missing as a third outcome leave."""
    alone = impurity(rule.impurity, scratch.absent, here.many, here.names)
    if rule.join == WORST:
        return max(two, alone)
    if rule.join == SUM:
        return two + alone
    apart, all_ = 0.0, 0.0
    for c in range(here.many):
        apart += scratch.absent[c]
        all_ += here.sums[c]
    return ((all_ - apart) * two + apart * alone) / all_


@inlined
def every_category(rule, least_rows, here, cells, size, absent, partial, bar, scratch):
    """What one outcome per category leaves, missing among them unless it goes nowhere."""
    kept = absent and rule.missing <= OWN_OUTCOME
    worst, total, weight, outcomes, enough = 0.0, 0.0, 0.0, 0, 0
    for b in range(size + 1 if kept else size):
        if is_empty(cells, b, here.counter, here.many):
            continue
        outcomes += 1
        enough += least_rows <= 1 or cells[b, here.counter] >= least_rows
        mixed = impurity(rule.impurity, cells[b], here.many, here.names)
        cases = 0.0
        for c in range(here.many):
            cases += cells[b, c]
        worst = max(worst, mixed)
        total += mixed if rule.join == SUM else cases * mixed
        weight += cases
    if outcomes < 2:
        return np.inf, DEAD, NONE
    if enough < 2:
        return np.inf, NO_SPLIT, NONE
    remains = worst if rule.join == WORST else (total if rule.join == SUM else total / weight)
    if rule.join == DISJUNCTION:
        remains = rule.lam * here.weight * remains - balance_of_categories(rule, here, cells, size + 1 if kept else size)
    elif partial or (absent and not kept):
        whole, share = of_the_known(rule, here, scratch)
        remains = here.whole - share * (whole - remains)
    if not remains < bar:
        return np.inf, NO_SPLIT, NONE
    return remains, 0, size if kept else NONE


@called
def balance_of_categories(rule, here, cells, size):
    """`balance_and_efficiency` for any number of outcomes."""
    k = here.many
    whole, largest, of_largest, kept = 0.0, -1.0, 0.0, 0.0
    for b in range(size):
        weight, rows = 0.0, 0.0
        for c in range(k):
            weight += cells[b, c]
            rows += cells[b, k + c]
        if rows == 0.0:
            continue
        whole += weight
        if rows > largest:
            largest, of_largest = rows, weight
        kept += shortfall(rule, here, cells[b], weight) * mixed_pairs(cells[b], k)
    return whole - of_largest + whole - kept / mixed_pairs(here.sums, k)
