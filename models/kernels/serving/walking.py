"""The served arrays, and the state of one case on its way through them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import LEAF, NONE
from frugal.models.kernels.pricing import Basket, new_basket
from frugal.models.kernels.serving.reading import Reader, Sight, new_sight

ENDED = -2  # `wanted` of a tree that cannot go on: the value is missing and the node has no branch for that

ANSWERED = 1  # bits of a feature's state
PENDING = 2
BOUGHT = 4

MAJORITY, WEIGHTED, COUNTS, ADDITIVE = range(4)  # `vote`: a tree gives its node's label under the first two, else its node's values
SEQUENTIAL, VOTES, AHEAD = 0, 1, 2  # bits of `order`
AT_LEAVES, WHEN_DECIDED = range(2)  # `stop`

LEAST, GREATEST = range(2)  # of `bounds`


class Forest(NamedTuple):
    """An ensemble as kernels read it. As one tuple: a dozen parts cost 2.6 us a call together, 1 to 1.7 one by one. Every further array
    costs 0.15 us of a decision."""

    nodes: NDArray[np.void]  # NODE, all trees
    outcomes: NDArray[np.int16]  # the tables of the tests for every category
    arity: NDArray[np.int32]  # per feature: how many categories, 0 for numeric
    roots: NDArray[np.int32]
    weights: NDArray[np.float64]  # per tree
    shares: NDArray[np.int64]  # the same in whole numbers, for exact sums
    classes: int
    value_start: NDArray[np.int32]  # nodes + 1, and the four that follow: see values.py
    value_class: NDArray[np.uint8]
    class_bytes: int
    values: NDArray[np.uint8]
    value_bytes: int
    label: NDArray[np.int32]  # per node: the class of its greatest value; ~class where another may be the label below: see voting.py
    possible: NDArray[np.uint8]  # nodes x (classes / 8): a bit for each label at or below the node; empty where values are summed
    bounds: NDArray[np.int64]  # nodes x (least, greatest) x classes: at or below the node, in whole numbers; empty where labels are counted
    penalties: NDArray[np.float64]  # classes x classes, or empty
    vote: int  # MAJORITY, WEIGHTED, COUNTS or ADDITIVE
    order: int  # SEQUENTIAL or VOTES; and AHEAD, where a delayed feature lets all that may be needed below it be ordered
    stop: int  # AT_LEAVES or WHEN_DECIDED
    scale: float  # whole numbers per unit of vote
    margin: int  # what a lead must exceed
    numeric: bool  # no table anywhere
    weighs: bool  # a confidence is compared with the penalty to be expected, not with the label's probability
    prior: NDArray[np.float64]  # per class: its share where nothing is known
    smoothing: float  # how many cases of those shares are added to a node's own
    calibration: NDArray[np.float64]  # a slope, a bias at the ends and one per class, or empty: see telling.py
    reader: Reader


class Case(NamedTuple):
    """One case on its way through a forest: what is known of it, where every tree stands, and what follows from that."""

    state: NDArray[np.uint8]  # per feature: ANSWERED, PENDING, BOUGHT
    basket: Basket
    position: NDArray[np.int32]  # per tree: the node it stands on
    wanted: NDArray[np.int32]  # per tree: the feature it waits for, LEAF or ENDED
    waiting: NDArray[np.int64]  # per feature: the vote weight that waits for it
    asked: NDArray[np.int32]  # a list of the features that some tree waits for
    least: NDArray[np.int64]  # per class: bounds on its total, as in voting.py
    greatest: NDArray[np.int64]
    totals: NDArray[np.float64]
    told: NDArray[np.float64]  # 2 x classes: the next two, which are handed out as one array
    probabilities: NDArray[np.float64]
    votes: NDArray[np.float64]  # shares of the totals
    group_best: NDArray[np.int32]  # per group, while choosing
    group_score: NDArray[np.float64]
    group_waiting: NDArray[np.float64]  # under "ahead" one tree may count for many features: more than 64 bits hold
    group_inside: NDArray[np.int64]
    group_entry: NDArray[np.int64]
    sight: Sight  # what the reader sees


@inlined
def labels_vote(forest):
    """Whether a tree gives one label its whole vote, or every class its node's value."""
    return forest.vote <= WEIGHTED


@inlined
def only_class(forest, i):
    """The class that alone has a value at a leaf, or NONE for other nodes; the value is in `low`."""
    node = forest.nodes[i]
    return np.int64(node["missing"]) if node["feature"] == LEAF else np.int64(NONE)


@kernel
def new_case(forest, prices):
    features, classes, trees, groups = len(forest.arity), forest.classes, len(forest.roots), prices.groups
    told = np.empty((2, classes), np.float64)
    return Case(
        np.zeros(features, np.uint8),
        new_basket(prices),
        np.empty(trees, np.int32),
        np.empty(trees, np.int32),
        np.zeros(features, np.int64),
        np.empty(features, np.int32),
        np.zeros(classes, np.int64),
        np.zeros(classes, np.int64),
        np.empty(classes, np.float64),
        told,
        told[0],
        told[1],
        np.empty(groups, np.int32),
        np.empty(groups, np.float64),
        np.empty(groups, np.float64),
        np.empty(groups, np.int64),
        np.empty(groups, np.int64),
        new_sight(forest.reader, features, classes),
    )


@inlined
def is_plain(forest, row):
    """Whether every step of this row compares numbers that are there."""
    if not forest.numeric:
        return False
    there = True
    for value in row:
        there &= value == value
    return there
