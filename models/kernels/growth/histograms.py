"""Histograms of a node's rows: sums per bin of every feature, in slots that are taken and given back.

Sums are exact (see targets.py): what is left of a parent's histogram when its other children's rows are taken out is the last child's, to
the bit. Where prices are each case's own, what its cases owe for each feature stands beside, and is had in the same way.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined
from frugal.models.kernels.growth.context import CASES, add_dues, can_pay
from frugal.models.kernels.growth.rules import FRACTIONS
from frugal.models.kernels.growth.slots import Slots, give, take
from frugal.models.kernels.growth.targets import add_row, drain_one, fill_one
from frugal.models.kernels.marks import NONE

SMALL = 96  # rows; 48 took 5 % longer on covertype, 160 the same


class Histograms(NamedTuple):
    """The histograms of the nodes that wait, by slot."""

    slots: Slots
    cells: NDArray[np.float64]  # slots x cells x sums
    dues: NDArray[np.float64]  # slots x features x 2: the weight of the cases that owe the price in a group, and the whole price


@inlined
def own_histogram(bins, target, context, at, begin, end, weight, slot, dead, histograms):
    """The slot of a node's histogram, filled now unless it was handed down; NONE for small nodes and where no slot is free."""
    if end - begin <= SMALL or slot != NONE:
        return slot
    slot = take(histograms.slots)
    if slot != NONE:
        fill(bins, target, context, at, begin, end, weight, slot, dead, histograms)
    return slot


@inlined
def hand_down(bins, target, rule, context, at, node, i, outcomes, biggest, smallest, dead, histograms):
    """Give the biggest child what the other rows leave of the parent's histogram, and the smallest, which is searched next, its own.

    The others' rows are taken out one by one: that needs no slot, whatever their number. Where they are more than the biggest child's it
    is cheaper to add up its rows when it is its turn. Rows that stay behind at the parent are others too.
    """
    own = node.slot[i]
    node.slot[i] = NONE
    begin, end = node.begin[biggest], node.end[biggest]
    large = end - begin
    if own == NONE or large <= SMALL or node.end[i] - node.begin[i] - large > large or not subtracts(target, rule, context):
        give(histograms.slots, own)
        return
    node.slot[biggest] = own
    for j in range(node.first[i], node.first[i] + outcomes):
        if j == biggest:
            continue
        other = take(histograms.slots) if j == smallest and node.end[j] - node.begin[j] > SMALL else NONE
        node.slot[j] = other
        if other == NONE:
            drain(bins, target, context, at, node.begin[j], node.end[j], own, dead, histograms)
        else:
            fill(bins, target, context, at, node.begin[j], node.end[j], 0.0, other, dead, histograms)
            subtract(bins, context, own, other, dead, histograms)
    last = node.end[node.first[i] + outcomes - 1]
    drain(bins, target, context, at, last, node.end[i], own, dead, histograms)


@inlined
def subtracts(target, rule, context):
    """Whether a child's sums are its parent's less its siblings': not where rows add what hangs on the node, or to some features only, or
    are shared out."""
    return not target.heavy and len(context.purse) == 0 and rule.missing != FRACTIONS


@inlined
def fill(bins, target, context, at, begin, end, weight, slot, dead, histograms):
    for f in range(len(bins.sizes)):
        if not dead[f]:
            cells = histograms.cells[slot, bins.offsets[f] : bins.offsets[f] + bins.sizes[f] + 1]
            fill_anew(target, context, f, bins.codes[f], at, begin, end, weight, cells)
            if context.kind == CASES:
                histograms.dues[slot, f] = 0.0
                add_dues(context, f, at, begin, end, 1.0, histograms.dues[slot, f])


@inlined
def fill_anew(target, context, f, codes, at, begin, end, weight, cells):
    """The cells of one feature, of those cases that can pay for it."""
    cells[:, :] = 0.0
    if len(context.purse) == 0:
        fill_one(target, codes, at, begin, end, weight, cells)
        return
    for k in range(begin, end):
        if can_pay(context, f, at.rows[k]):
            add_row(target, at, k, weight, cells[codes[at.rows[k]]])


@inlined
def drain(bins, target, context, at, begin, end, slot, dead, histograms):
    """Take rows out of a histogram that they are in."""
    for f in range(len(bins.sizes)):
        if not dead[f]:
            cells = histograms.cells[slot, bins.offsets[f] : bins.offsets[f] + bins.sizes[f] + 1]
            drain_one(target, bins.codes[f], at, begin, end, cells)
            if context.kind == CASES:
                add_dues(context, f, at, begin, end, -1.0, histograms.dues[slot, f])


@inlined
def subtract(bins, context, slot, other, dead, histograms):
    for f in range(len(bins.sizes)):
        if not dead[f]:
            for cell in range(bins.offsets[f], bins.offsets[f] + bins.sizes[f] + 1):
                for c in range(histograms.cells.shape[2]):
                    histograms.cells[slot, cell, c] -= histograms.cells[other, cell, c]
            if context.kind == CASES:
                histograms.dues[slot, f, 0] -= histograms.dues[other, f, 0]
                histograms.dues[slot, f, 1] -= histograms.dues[other, f, 1]
