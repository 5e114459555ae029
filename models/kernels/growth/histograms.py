"""Histograms of a node's rows: class counts per bin of every feature, in slots that are taken and given back.

Counts are sums of weights on a grid of powers of two, so they are exact: what is left of a parent's histogram when its other children's
rows are taken out is the last child's, to the bit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined
from frugal.models.kernels.growth.slots import Slots, give, take
from frugal.models.kernels.marks import NONE

SMALL = 48  # rows; from 16 to 256 growing took the same time on covertype


class Work(NamedTuple):
    """What growing needs beside the tree itself."""

    rows: NDArray[np.int32]
    spare: NDArray[np.int32]
    classes: NDArray[np.int32]  # of a node's rows, in their order
    weights: NDArray[np.float64]
    order: NDArray[np.uint8]  # a small node's codes of one feature, sorted
    place: NDArray[np.int32]
    slots: Slots
    histograms: NDArray[np.float64]  # slots x cells x classes
    fees: NDArray[np.float64]  # per feature, at the node
    dead: NDArray[np.bool_]  # per feature: nothing to split at the node, nor anywhere below
    counts: NDArray[np.int64]  # rows per outcome


@inlined
def own_histogram(bins, row_weights, begin, end, slot, work):
    """The slot of a node's histogram, counted now unless it was handed down; NONE for small nodes and where no slot is free."""
    if end - begin <= SMALL or slot != NONE:
        return slot
    slot = take(work.slots)
    if slot != NONE:
        gather(bins, row_weights, work, begin, end)
        fill(bins, work, begin, end, work.histograms[slot])
    return slot


@inlined
def hand_down(bins, row_weights, begin, end, slot, i, low, high, biggest, smallest, work):
    """Give the biggest child what its siblings leave of the parent's histogram, and the smallest, which is grown next, its own.

    The siblings' rows are taken out one by one: that needs no slot, whatever their number. Where they are more than the biggest child's
    it is cheaper to count its rows, when it is its turn.
    """
    own = slot[i]
    slot[i] = NONE
    large = end[biggest] - begin[biggest]
    if own == NONE or large <= SMALL or end[i] - begin[i] - large > large:
        give(work.slots, own)
        return
    slot[biggest] = own
    for j in range(low, high):
        if j == biggest:
            continue
        gather(bins, row_weights, work, begin[j], end[j])
        other = take(work.slots) if j == smallest and end[j] - begin[j] > SMALL else NONE
        slot[j] = other
        if other == NONE:
            drain(bins, work, begin[j], end[j], work.histograms[own])
        else:
            fill(bins, work, begin[j], end[j], work.histograms[other])
            subtract(bins, work, work.histograms[own], work.histograms[other])


@inlined
def gather(bins, row_weights, work, begin, end):
    """The classes and weights of a node's rows, side by side."""
    for k in range(begin, end):
        work.classes[k] = bins.classes[np.uint32(work.rows[k])]
        work.weights[k] = row_weights[np.uint32(work.rows[k])]


@inlined
def fill(bins, work, begin, end, histogram):
    for f in range(len(bins.sizes)):
        if not work.dead[f]:
            cells = histogram[bins.offsets[f] : bins.offsets[f] + bins.sizes[f] + 1]
            cells[:, :] = 0.0
            fill_one(bins, f, work, begin, end, cells)


@inlined
def fill_one(bins, f, work, begin, end, cells):
    codes = bins.codes[f]
    for k in range(begin, end):
        cells[codes[np.uint32(work.rows[k])], np.uint32(work.classes[k])] += work.weights[k]


@inlined
def drain(bins, work, begin, end, histogram):
    """Take rows out of a histogram that they are in."""
    for f in range(len(bins.sizes)):
        if not work.dead[f]:
            cells, codes = histogram[bins.offsets[f] : bins.offsets[f] + bins.sizes[f] + 1], bins.codes[f]
            for k in range(begin, end):
                cells[codes[np.uint32(work.rows[k])], np.uint32(work.classes[k])] -= work.weights[k]


@inlined
def subtract(bins, work, histogram, other):
    for f in range(len(bins.sizes)):
        if not work.dead[f]:
            for cell in range(bins.offsets[f], bins.offsets[f] + bins.sizes[f] + 1):
                for c in range(histogram.shape[1]):
                    histogram[cell, c] -= other[cell, c]


@inlined
def compact(bins, f, work, begin, end, cells):
    """Only the bins that a small node's rows are in, in order, and missing behind them; `work.order` keeps their codes. Gives how many."""
    codes = bins.codes[f]
    size = np.uint8(bins.sizes[f])
    held = 0
    for k in range(begin, end):  # insertion sort of row places by code
        code = codes[np.uint32(work.rows[k])]
        at = held
        while at > 0 and work.order[at - 1] > code:
            work.order[at] = work.order[at - 1]
            work.place[at] = work.place[at - 1]
            at -= 1
        work.order[at] = code
        work.place[at] = k
        held += 1
    distinct, last = -1, -1
    for at in range(held):
        code = work.order[at]
        if code == size:
            break
        if code != last:
            distinct += 1
            cells[distinct, :] = 0.0
            last = code
        cells[distinct, work.classes[work.place[at]]] += work.weights[work.place[at]]
        work.order[distinct] = code
    distinct += 1
    cells[distinct, :] = 0.0
    for k in range(begin, end):
        if codes[np.uint32(work.rows[k])] == size:
            cells[distinct, work.classes[k]] += work.weights[k]
    return distinct
