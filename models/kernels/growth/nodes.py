"""The nodes of a tree while it grows, and where those stand that wait: as flat arrays, made once and used for tree after tree.

Every question has two outcomes or more, so a tree of n rows has at most 2n - 1 nodes: the arrays are that long, and pages that no node
reaches are never touched.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.growth.context import CASES
from frugal.models.kernels.growth.histograms import SMALL, Histograms
from frugal.models.kernels.growth.questions import OUTCOMES
from frugal.models.kernels.growth.slots import Slots, give, make_slots, take
from frugal.models.kernels.growth.splitting import Scratch
from frugal.models.kernels.growth.targets import Positions
from frugal.models.kernels.marks import LEAF, NONE
from frugal.models.kernels.pricing import Basket, new_basket


class Nodes(NamedTuple):
    """Per node. Children are side by side."""

    feature: NDArray[np.int32]  # LEAF: none is asked
    cut: NDArray[np.int32]  # the bin of its question
    way: NDArray[np.int32]  # the outcome that missing has, NONE: it ends here
    first: NDArray[np.int32]  # its first child
    many: NDArray[np.int32]  # how many children
    stands: NDArray[np.int32]  # the outcome of its parent's question that leads here
    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    begin: NDArray[np.int32]  # its rows
    end: NDArray[np.int32]
    slot: NDArray[np.int32]
    place: NDArray[np.int32]  # of what it knows to be dead
    score: NDArray[np.float64]  # of its question
    value: NDArray[np.int64]  # where its sums start
    values: NDArray[np.int32]  # how many they are
    chosen: NDArray[np.uint64]  # nodes x 4: the bins of a question for some categories, as a set of bits
    low: NDArray[np.float64]  # bounds of its score, where scores have any
    high: NDArray[np.float64]


class Space(NamedTuple):
    """All that growing needs beside the table; one per thread."""

    node: Nodes
    at: Positions
    histograms: Histograms
    scratch: Scratch
    places: Slots
    dead: NDArray[np.bool_]  # places x features: nothing to ask at a node that waits, nor anywhere below
    dying: NDArray[np.bool_]  # per feature, at the node that is searched
    sums: NDArray[np.float64]
    small: NDArray[np.float64]  # the same for the classes of a small node alone
    names: NDArray[np.int64]  # those classes
    all_names: NDArray[np.int64]
    local: NDArray[np.int32]  # per class: its number among them
    own: NDArray[np.uint8]  # the same of a small node's rows
    order: NDArray[np.uint8]  # a small node's bins of one feature, sorted
    rank: NDArray[np.uint8]  # where each stands there
    bits: NDArray[np.uint64]  # a set of bins
    fees: NDArray[np.float64]  # per feature
    dues: NDArray[np.float64]  # features x 2
    scores: NDArray[np.float64]  # per feature
    gains: NDArray[np.float64]
    cuts: NDArray[np.int64]
    ways: NDArray[np.int64]
    sets: NDArray[np.uint64]  # features x 4
    counts: NDArray[np.int64]  # rows per outcome
    basket: Basket
    todo: NDArray[np.int32]  # nodes to be searched, the next one last
    heap: NDArray[np.int32]  # nodes that were searched and wait for their question, the best first


@kernel
def new_space(features, cells, widest, sums, context, rows, slots, places):
    """For so many features, cells in all and at most of one feature, and sums per cell; and for trees of so many rows."""
    room = max(1, 2 * rows)
    owing = features if context.kind == CASES else 0
    node = Nodes(
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.float64),
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.empty((room, 4), np.uint64),
        np.empty(room, np.float64),
        np.empty(room, np.float64),
    )
    at = Positions(
        np.empty(rows, np.int32),
        np.empty(rows, np.float64),
        np.empty(rows, np.uint8),
        np.empty(rows, np.int32),
        np.empty(rows, np.float64),
        np.empty(rows, np.uint8),
    )
    return Space(
        node,
        at,
        Histograms(make_slots(slots), np.empty((slots, cells, sums)), np.empty((slots, owing, 2))),
        Scratch(
            np.empty(sums),
            np.empty(sums),
            np.empty(sums),
            np.empty(sums),
            np.empty(max(widest, SMALL + 1) * sums),
            np.empty(1, np.uint64),
            np.empty(widest, np.float64),
            np.empty(widest, np.int64),
            np.zeros(4, np.uint64),
        ),
        make_slots(places),
        np.empty((places, features), np.bool_),
        np.empty(features, np.bool_),
        np.empty(sums),
        np.empty(sums),
        np.empty(sums, np.int64),
        np.arange(sums),
        np.empty(sums, np.int32),
        np.empty(SMALL, np.uint8),
        np.empty(SMALL + 1, np.uint8),
        np.empty(256, np.uint8),
        np.empty(4, np.uint64),
        np.empty(features),
        np.empty((owing, 2)),
        np.empty(features),
        np.empty(features),
        np.empty(features, np.int64),
        np.empty(features, np.int64),
        np.zeros((features, 4), np.uint64),
        np.empty(OUTCOMES, np.int64),
        new_basket(context.prices),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
    )


@inlined
def new_node(node, i, parent, outcome, depth, begin, end):
    node.feature[i], node.cut[i], node.way[i], node.first[i], node.many[i] = LEAF, 0, NONE, NONE, 0
    node.stands[i], node.parent[i], node.depth[i], node.begin[i], node.end[i] = outcome, parent, depth, begin, end
    node.slot[i], node.place[i], node.score[i], node.value[i], node.values[i] = NONE, NONE, -np.inf, 0, 0
    node.low[i], node.high[i] = -np.inf, np.inf


@inlined
def bury(places, dead, dying):
    """A place that remembers what is dead, or NONE."""
    place = take(places)
    for f in range(len(dying) if place != NONE else 0):
        dead[place, f] = dying[f]
    return place


@inlined
def recall(node, places, dead, dying, slots, i):
    """What is dead at a node that waited. Where that is forgotten, so is its histogram: parts of it were left undone."""
    if node.place[i] != NONE:
        for f in range(len(dying)):
            dying[f] = dead[node.place[i], f]
        give(places, node.place[i])
        node.place[i] = NONE
        return
    dying[:] = False
    give(slots, node.slot[i])
    node.slot[i] = NONE


@inlined
def push(node, heap, size, i):
    """Put a node on a heap of so many, the best score first and of equals the elder; gives how many there are then."""
    at = size
    while at > 0 and comes_before(node, i, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = i
    return size + 1


@inlined
def pop(node, heap, size):
    """(the best node, how many are left)."""
    best, last = heap[0], heap[size - 1]
    size -= 1
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and comes_before(node, heap[below + 1], heap[below]):
            below += 1
        if not comes_before(node, heap[below], last):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = last
    return best, size


@inlined
def comes_before(node, i, j):
    return node.score[i] > node.score[j] or (node.score[i] == node.score[j] and i < j)
