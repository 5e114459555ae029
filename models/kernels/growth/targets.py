"""What a tree is to tell, and the sums over a node's rows that its questions are judged by.

    kind        a row adds to its cell                                       sums
    COUNTS      its weight, to the sum of its class                          classes (and one that counts rows, where a limit needs it)
    OBJECTS     its probability and 1, to the two sums of its class          2 x classes + 3
    GRADIENTS   its first and second derivatives by each score, and 1        2 x scores + 1

All that is added lies on a grid of powers of two, so that sums are exact: they do not depend on the order of the rows, and what is left of
a parent's sums when one child's are taken away is the other child's, to the bit. Weights are positive, so that a sum of counts is 0 only
where there is no row; derivatives may cancel out, so there rows are counted.

The last three sums of OBJECTS are those of heavy objects, more probable than theta, in the form that `rules.shortfall` reads. They hang on
the node, so they are never had by subtraction.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined
from frugal.models.kernels.marks import NONE

COUNTS, OBJECTS, GRADIENTS = range(3)


class Target(NamedTuple):
    """What is to be told of every row."""

    kind: int
    classes: NDArray[np.int32]  # per row; of gradients none
    many: int  # of classes, or twice the scores
    sums: int  # per cell
    counter: int  # the sum that counts rows, or NONE
    derivatives: NDArray[np.float64]  # rows x many: the first by each score, then the second
    theta: float  # objects above this probability are heavy
    heavy: bool  # whether there are any
    step: float  # of the grid that weights lie on
    trend: NDArray[np.int8]  # per feature: 1 where the one score may only rise with it, -1 fall, 0 neither; empty: no such feature


class Positions(NamedTuple):
    """The rows of a tree in the order of its nodes, each node's side by side, with what they add."""

    rows: NDArray[np.int32]
    weights: NDArray[np.float64]
    classes: NDArray[np.uint8]
    spare_rows: NDArray[np.int32]
    spare_weights: NDArray[np.float64]
    spare_classes: NDArray[np.uint8]


@inlined
def add_up(target, at, begin, end, sums):
    """The sums of a node; gives its weight."""
    sums[: target.sums] = 0.0
    weight = 0.0
    if target.kind == GRADIENTS:
        for k in range(begin, end):
            row = np.uint32(at.rows[k])
            for c in range(target.many):
                sums[c] += target.derivatives[row, c]
            weight += at.weights[k]
        sums[target.counter] = end - begin
        return weight
    for k in range(begin, end):
        sums[at.classes[k]] += at.weights[k]
        weight += at.weights[k]
    if target.kind == OBJECTS:
        for k in range(begin, end):
            sums[target.many + at.classes[k]] += 1.0
        if target.heavy:
            for k in range(begin, end):
                add_heavy(target, at.weights[k], weight, sums)
    elif target.counter != NONE:
        sums[target.counter] = end - begin
    return weight


@inlined
def add_heavy(target, p, weight, sums):
    """What a heavy object of probability p adds to the last three sums, in a node of this weight; alone in it, it never asks."""
    if p > target.theta and weight > p:
        sums[2 * target.many] += p
        sums[2 * target.many + 1] += p / (weight - p)
        sums[2 * target.many + 2] += p * p / (weight - p)


@inlined
def fill_one(target, codes, at, begin, end, weight, cells):
    """Add a node's rows to the cells of one feature."""
    if target.kind == COUNTS:
        for k in range(begin, end):
            cells[codes[np.uint32(at.rows[k])], np.uint32(at.classes[k])] += at.weights[k]
        if target.counter != NONE:
            for k in range(begin, end):
                cells[codes[np.uint32(at.rows[k])], target.counter] += 1.0
    elif target.kind == GRADIENTS:
        for k in range(begin, end):
            row = np.uint32(at.rows[k])
            cell = cells[codes[row]]
            for c in range(target.many):
                cell[c] += target.derivatives[row, c]
            cell[target.counter] += 1.0
    else:
        for k in range(begin, end):
            cell, class_ = cells[codes[np.uint32(at.rows[k])]], np.uint32(at.classes[k])
            cell[class_] += at.weights[k]
            cell[np.uint32(target.many) + class_] += 1.0
            if target.heavy:
                add_heavy(target, at.weights[k], weight, cell)


@inlined
def drain_one(target, codes, at, begin, end, cells):
    """Take rows out of the cells of one feature that they are in."""
    if target.kind == COUNTS:
        for k in range(begin, end):
            cells[codes[np.uint32(at.rows[k])], np.uint32(at.classes[k])] -= at.weights[k]
        if target.counter != NONE:
            for k in range(begin, end):
                cells[codes[np.uint32(at.rows[k])], target.counter] -= 1.0
    elif target.kind == GRADIENTS:
        for k in range(begin, end):
            row = np.uint32(at.rows[k])
            cell = cells[codes[row]]
            for c in range(target.many):
                cell[c] -= target.derivatives[row, c]
            cell[target.counter] -= 1.0
    else:
        for k in range(begin, end):
            cell, class_ = cells[codes[np.uint32(at.rows[k])]], np.uint32(at.classes[k])
            cell[class_] -= at.weights[k]
            cell[np.uint32(target.many) + class_] -= 1.0


@inlined
def add_row(target, at, k, weight, cell):
    """What the row at a position adds to a cell."""
    row = np.uint32(at.rows[k])
    if target.kind == GRADIENTS:
        for c in range(target.many):
            cell[c] += target.derivatives[row, c]
        cell[target.counter] += 1.0
        return
    cell[at.classes[k]] += at.weights[k]
    if target.kind == OBJECTS:
        cell[target.many + at.classes[k]] += 1.0
        if target.heavy:
            add_heavy(target, at.weights[k], weight, cell)
    elif target.counter != NONE:
        cell[target.counter] += 1.0


@inlined
def is_empty(cells, b, count, many):
    """Whether no row is in a cell."""
    if count != NONE:
        return cells[b, count] == 0.0
    for c in range(many):
        if cells[b, c] > 0.0:
            return False
    return True
