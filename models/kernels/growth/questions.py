"""Questions: what may be asked of a feature, and the outcome that a bin then has.

    CUT              at most this bin                  two outcomes
    BIN              this bin alone                    two
    ONE_CATEGORY     this category alone               two
    SOME_CATEGORIES  one of these                      two
    EVERY_CATEGORY   which category                    one for each that is there

A missing value is the bin after the last. Where it goes is a part of the question: to an outcome (`way`), or nowhere, and the row stays
behind at the node.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined
from frugal.models.kernels.growth.context import can_pay
from frugal.models.kernels.marks import CUT, EVERY_CATEGORY, NONE, SOME_CATEGORIES

MISSING = 2  # the outcome of its own that a missing value has where there are two others
BEHIND = 256  # the outcome of rows that stay at the node
OUTCOMES = 257


class Bins(NamedTuple):
    """A binned table."""

    codes: NDArray[np.uint8]  # features x rows
    offsets: NDArray[np.int64]  # per feature: where its cells start; the last of them is for missing
    sizes: NDArray[np.int64]  # per feature: how many bins, without the one for missing
    form: NDArray[np.uint8]  # per feature: CUT, BIN, ONE_CATEGORY, SOME_CATEGORIES or EVERY_CATEGORY


@inlined
def outcome_of(code, form, size, cut, way, chosen):
    """Which outcome a bin has; `chosen` is a set of bins, for SOME_CATEGORIES."""
    if code == size:
        return np.int64(way) if way != NONE else np.int64(BEHIND)
    if form == CUT:
        return np.int64(code > cut)
    if form == EVERY_CATEGORY:
        return np.int64(code)
    if form == SOME_CATEGORIES:
        return np.int64(not is_in(chosen, code))
    return np.int64(code != cut)


@inlined
def is_in(bins, code):
    """Whether a set of bins, of 256 bits, has this one."""
    return (bins[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) != 0


@inlined
def put_in(bins, code):
    bins[code >> 6] |= np.uint64(1) << np.uint64(code & 63)


@inlined
def copy_set(bins, other):
    for word in range(4):
        other[word] = bins[word]


@inlined
def outcomes_at_most(form, size):
    """Outcomes that a question can have are below this, but for BEHIND."""
    return size + 1 if form == EVERY_CATEGORY else MISSING + 1


@inlined
def part_in_two(bins, f, cut, way, chosen, begin, end, at, counts):
    """`part` where there are two outcomes and nobody stays behind: the first ones' rows move up, the others' wait aside."""
    codes, size, form = bins.codes[f], bins.sizes[f], bins.form[f]
    first, others = begin, 0
    for k in range(begin, end):
        row, weight, class_ = at.rows[k], at.weights[k], at.classes[k]
        if outcome_of(codes[np.uint32(row)], form, size, cut, way, chosen) == 0:
            at.rows[first], at.weights[first], at.classes[first] = row, weight, class_
            first += 1
        else:
            at.spare_rows[others], at.spare_weights[others], at.spare_classes[others] = row, weight, class_
            others += 1
    for k in range(others):
        at.rows[first + k], at.weights[first + k], at.classes[first + k] = at.spare_rows[k], at.spare_weights[k], at.spare_classes[k]
    counts[0], counts[1], counts[MISSING], counts[BEHIND] = first - begin, others, 0, 0
    return 2


@inlined
def part(bins, context, f, cut, way, chosen, begin, end, at, counts):
    """Sort a node's rows by outcome, keeping their order, those last that stay behind because they have no value, or no money, to go on;
    fills `counts` and gives how many outcomes there are."""
    codes, size, form = bins.codes[f], bins.sizes[f], bins.form[f]
    most = outcomes_at_most(form, size)
    counts[:most] = 0
    counts[BEHIND] = 0
    for k in range(begin, end):
        b = outcome_of(codes[np.uint32(at.rows[k])], form, size, cut, way, chosen)
        counts[b if can_pay(context, f, at.rows[k]) else BEHIND] += 1
        at.spare_rows[k], at.spare_weights[k], at.spare_classes[k] = at.rows[k], at.weights[k], at.classes[k]
    place, outcomes = np.int64(begin), 0
    for b in range(most):
        outcomes += counts[b] > 0
        place += counts[b]
        counts[b] = place - counts[b]
    counts[BEHIND] = place
    for k in range(begin, end):
        b = outcome_of(codes[np.uint32(at.spare_rows[k])], form, size, cut, way, chosen)
        b = b if can_pay(context, f, at.spare_rows[k]) else BEHIND
        at.rows[counts[b]], at.weights[counts[b]], at.classes[counts[b]] = at.spare_rows[k], at.spare_weights[k], at.spare_classes[k]
        counts[b] += 1
    previous = np.int64(begin)
    for b in range(most):
        after = counts[b]
        counts[b] = after - previous
        previous = after
    counts[BEHIND] = end - previous
    return outcomes
