"""One pass over the flat form before anything walks it, and what follows from it for every node."""

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import LEAF

FINE = 0
BAD_FEATURE, BAD_SLICE, BAD_CHILD, TWO_PARENTS, ORPHAN, NOT_FINITE, BAD_LOW, NEGATIVE, EMPTY_SPLIT = range(1, 10)


@kernel
def check(feature, low, threshold, child_start, children, missing_child, values, roots, arity, counts, parent):
    """(FINE or what is wrong, the node it is wrong at); fills `parent`. A child comes after its parent, so no cycle passes."""
    parent[:] = -1
    for t in range(len(roots)):
        end = roots[t + 1] if t + 1 < len(roots) else len(feature)
        for i in range(roots[t], end):
            for c in range(values.shape[1]):
                if not np.isfinite(values[i, c]):
                    return NOT_FINITE, i
                if counts and values[i, c] < 0:
                    return NEGATIVE, i
            if i > roots[t] and parent[i] < 0:
                return ORPHAN, i
            trouble = check_split(i, end, feature, low, threshold, child_start, children, missing_child, arity, parent)
            if trouble != FINE:
                return trouble, i
    return FINE, 0


@inlined
def check_split(i, end, feature, low, threshold, child_start, children, missing_child, arity, parent):
    if feature[i] < LEAF or feature[i] >= len(arity):
        return BAD_FEATURE
    if not np.isfinite(threshold[i]):
        return NOT_FINITE
    if not (low[i] == -np.inf or np.isfinite(low[i])):
        return BAD_LOW
    size = child_start[i + 1] - child_start[i]
    if feature[i] == LEAF:
        return FINE if size == 0 and missing_child[i] == -1 else BAD_SLICE
    numeric = arity[feature[i]] == 0
    if size != (2 if numeric else arity[feature[i]]):
        return BAD_SLICE
    some = False
    for k in range(child_start[i], child_start[i + 1] + 1):
        child = children[k] if k < child_start[i + 1] else missing_child[i]
        if child == -1 and not (numeric and k < child_start[i + 1]):
            continue
        if child <= i or child >= end:
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
def best_labels(values, label):
    """Per node the first class of its greatest value."""
    for i in range(len(values)):
        best = 0
        for c in range(1, values.shape[1]):
            if values[i, c] > values[i, best]:
                best = c
        label[i] = best


@kernel
def labels_below(label, parent, possible, sole):
    """Which labels stand at or below each node, and the only one where there is but one. Children come after parents: backwards."""
    for i in range(len(label) - 1, -1, -1):
        possible[i, label[i]] = 1
        count = 0
        for c in range(possible.shape[1]):
            if possible[i, c]:
                count += 1
                if parent[i] >= 0:
                    possible[parent[i], c] = 1
        sole[i] = label[i] if count == 1 else -1


@kernel
def bounds_below(values, parent, roots, weights, scale, least, greatest):
    """The least and greatest whole-number value per class at or below each node."""
    for t in range(len(roots)):
        end = roots[t + 1] if t + 1 < len(roots) else len(values)
        for i in range(roots[t], end):
            for c in range(values.shape[1]):
                least[i, c] = np.int64(np.rint(weights[t] * values[i, c] * scale))
                greatest[i, c] = least[i, c]
    for i in range(len(values) - 1, -1, -1):
        if parent[i] >= 0:
            for c in range(values.shape[1]):
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
