"""One pass over the flat form before anything walks it, and what follows from it for every node."""

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import BIN, CUT, ENDS, EVERY_CATEGORY, LEAF, NEVER_SEEN, NO_TEST, ONE_CATEGORY
from frugal.models.kernels.serving.values import class_at, stretch, value_at
from frugal.models.kernels.serving.walking import GREATEST, LEAST

FINE = 0
BAD_FEATURE, BAD_KIND, BAD_CATEGORY, BAD_LEAF, BAD_MISSING, BAD_CHILD, TWO_PARENTS, ORPHAN = range(1, 9)
NOT_FINITE, BAD_LOW, BAD_CLASS, NEGATIVE, EMPTY_SPLIT, TOO_FEW, TOO_MANY = range(9, 16)


@kernel
def check(feature, kind, low, threshold, first_child, missing, outcomes, kept, roots, arity, classes, counts, parent):
    """(FINE or what is wrong, the node it is wrong at, the greatest sum of a node's values); fills `parent`.

    A child comes after its parent, so no cycle passes.
    """
    parent[:] = -1
    lows, tables = 0, 0  # how far the arrays of some nodes only are used
    largest = 0.0
    for t in range(len(roots)):
        end = roots[t + 1] if t + 1 < len(roots) else len(feature)
        for i in range(roots[t], end):
            if i > roots[t] and parent[i] < 0:
                return ORPHAN, i, largest
            trouble, size = check_values(kept, i, classes, counts)
            if trouble == FINE:
                trouble = check_test(i, feature, kind, low, lows, threshold, arity)
            if trouble == FINE:
                trouble = check_children(i, end, feature, kind, first_child, missing, outcomes, tables, arity, parent)
            if trouble != FINE:
                return trouble, i, largest
            lows += kind[i] == BIN
            tables += arity[feature[i]] if kind[i] == EVERY_CATEGORY else 0
            largest = max(largest, size)
    if lows != len(low) or tables != len(outcomes):
        return TOO_MANY, 0, largest
    return FINE, 0, largest


@inlined
def check_values(kept, i, classes, counts):
    """(FINE or what is wrong, the sum of the values' sizes)"""
    begin, end = stretch(kept, i)
    size, last = 0.0, np.int64(-1)
    for k in range(begin, end):
        c, value = np.int64(class_at(kept, k)), value_at(kept, k)
        if c <= last or c >= classes:
            return BAD_CLASS, size
        if not np.isfinite(value):
            return NOT_FINITE, size
        if counts and value < 0:
            return NEGATIVE, size
        last = c
        size += abs(value)
    return FINE, size


@inlined
def check_test(i, feature, kind, low, lows, threshold, arity):
    if feature[i] < LEAF or feature[i] >= len(arity):
        return BAD_FEATURE
    if not np.isfinite(threshold[i]):
        return NOT_FINITE
    if feature[i] == LEAF:
        return FINE if kind[i] == NO_TEST else BAD_KIND
    categories = arity[feature[i]]
    if kind[i] in (CUT, BIN):
        if categories:
            return BAD_KIND
        if kind[i] == BIN:
            if lows >= len(low):
                return TOO_FEW
            return FINE if np.isfinite(low[lows]) else BAD_LOW
        return FINE
    if kind[i] not in (ONE_CATEGORY, EVERY_CATEGORY) or not categories:
        return BAD_KIND
    if kind[i] == ONE_CATEGORY and (not 0 <= threshold[i] < categories or threshold[i] != np.floor(threshold[i])):
        return BAD_CATEGORY
    return FINE


@inlined
def check_children(i, end, feature, kind, first_child, missing, outcomes, tables, arity, parent):
    """Note the parent of every child."""
    first = np.int64(first_child[i])
    if feature[i] == LEAF:
        return FINE if first == -1 and missing[i] == ENDS else BAD_LEAF
    two = kind[i] != EVERY_CATEGORY
    if missing[i] < ENDS or (two and missing[i] > 1):
        return BAD_MISSING
    answers = 2 if two else np.int64(arity[feature[i]])
    if not two and tables + answers > len(outcomes):
        return TOO_FEW
    some = False
    for k in range(answers + 1):
        answer = np.int64(k) if two or k == answers else np.int64(outcomes[tables + k])
        outcome = np.int64(missing[i]) if k == answers else answer
        if outcome == NEVER_SEEN:  # as a missing value that ends the walk
            continue
        child = first + outcome
        if outcome < 0 or first <= i or child >= end:
            return BAD_CHILD
        if parent[child] >= 0 and parent[child] != i:
            return TWO_PARENTS
        parent[child] = i
        some = True
    return FINE if some else EMPTY_SPLIT


@kernel
def trail_starts(parent, roots):
    """Where each tree's longest path would start if they lay one after the other, each with one to spare for the note that a walk ended."""
    depth = np.ones(len(parent), np.int32)
    starts = np.zeros(len(roots) + 1, np.int64)
    for t in range(len(roots)):
        end = roots[t + 1] if t + 1 < len(roots) else len(parent)
        most = 1
        for i in range(roots[t] + 1, end):
            depth[i] = depth[parent[i]] + 1
            most = max(most, depth[i])
        starts[t + 1] = starts[t] + most + 1
    return starts


@kernel
def best_labels(kept, classes, label):
    """Per node the first class of its greatest value; what is not kept is 0."""
    for i in range(len(label)):
        begin, end = stretch(kept, i)
        best, most, gap = np.int64(0), -np.inf, np.int64(0)  # the gap: the first class that has no entry
        for k in range(begin, end):
            c, value = np.int64(class_at(kept, k)), value_at(kept, k)
            gap += c == gap
            if value > most:
                best, most = c, value
        if gap < classes and (most < 0.0 or (most == 0.0 and gap < best)):
            best = gap
        label[i] = best


@kernel
def labels_below(label, parent, possible):
    """Which labels stand at or below each node, a bit for each; `label` becomes its complement where there is more than one. Children come
    after parents: backwards."""
    for i in range(len(label) - 1, -1, -1):
        possible[i, label[i] >> 3] |= np.uint8(1 << (label[i] & 7))
        only = True
        for b in range(possible.shape[1]):
            bits = possible[i, b]
            only &= bits == (np.uint8(1 << (label[i] & 7)) if b == label[i] >> 3 else np.uint8(0))
            if parent[i] >= 0:
                possible[parent[i], b] |= bits
        label[i] = label[i] if only else ~label[i]


@kernel
def greatest_values(kept, roots, greatest):
    """Per tree the greatest size of any value."""
    for t in range(len(roots)):
        begin = np.uint64(kept.value_start[roots[t]])
        end = np.uint64(kept.value_start[roots[t + 1] if t + 1 < len(roots) else len(kept.value_start) - 1])
        greatest[t] = 0.0
        for k in range(begin, end):
            greatest[t] = max(greatest[t], abs(value_at(kept, k)))


@kernel
def bounds_below(kept, parent, roots, weights, scale, bounds):
    """The least and greatest whole-number value per class at or below each node."""
    nodes = len(parent)
    least, greatest = bounds[:, LEAST], bounds[:, GREATEST]
    least[:, :] = 0
    for t in range(len(roots)):
        end = roots[t + 1] if t + 1 < len(roots) else nodes
        for i in range(roots[t], end):
            first, last = stretch(kept, i)
            for k in range(first, last):
                least[i, class_at(kept, k)] = np.int64(np.rint(weights[t] * value_at(kept, k) * scale))
            for c in range(least.shape[1]):  # assigning a row compiles 1.5 s longer: it has a message for wrong shapes
                greatest[i, c] = least[i, c]
    for i in range(nodes - 1, -1, -1):
        if parent[i] >= 0:
            for c in range(least.shape[1]):
                least[parent[i], c] = min(least[parent[i], c], least[i, c])
                greatest[parent[i], c] = max(greatest[parent[i], c], greatest[i, c])


@kernel
def first_wrong_code(table, arity):
    """(row, column) of the first infinity, or of the first code that stands for no category; (-1, -1) if there is none."""
    for r in range(table.shape[0]):
        for i in range(table.shape[1]):
            code = table[r, i]
            if code != code:
                continue
            if arity[i] == 0:
                if np.isinf(code):
                    return r, i
            elif not 0 <= code < arity[i] or code != np.floor(code):
                return r, i
    return -1, -1
