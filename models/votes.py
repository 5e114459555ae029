"""How trees become one prediction: the four votes, and the whole numbers in which their leads are compared.

majority   each tree one vote, for the label of the node it stands on
weighted   the same, each tree with its weight (boosting)
counts     the class counts of the nodes summed (the Yahoo experiment's confidence); single trees
additive   scores summed, then softmax, which for the two scores (0, s) is the sigmoid of s (boosted trees grown elsewhere)

Ties go to the class that is first in `classes`. With penalties the label is the class of least expected penalty instead.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.flat import Flat
from frugal.models.kernels.serving import walking
from frugal.models.kernels.serving.checking import best_labels, bounds_below, greatest_values, labels_below
from frugal.models.kernels.serving.values import Values

VOTES = {"majority": walking.MAJORITY, "counts": walking.COUNTS, "weighted": walking.WEIGHTED, "additive": walking.ADDITIVE}
MARGIN = 1e-9  # of the total weight: what a lead of floats must exceed before it decides
MOST_BYTES = 1 << 30  # of what is kept of every node and class to know what is decided: a small file must not ask for more


class Ballot(NamedTuple):
    """What voting needs to know of every node, derived from its values."""

    label: NDArray[np.int32]
    possible: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    shares: NDArray[np.int64]
    scale: float
    margin: int


def labels_vote(vote: str) -> bool:
    """Whether a tree gives a whole vote for one label, or its node's values."""
    return VOTES[vote] <= walking.WEIGHTED


def ballot(
    vote: str,
    stop: str,
    kept: Values,
    classes: int,
    parent: NDArray[np.int32],
    roots: NDArray[np.int32],
    weights: NDArray[np.float64],
) -> Ballot:
    """Derive what is possible at or below each node; left empty where the ensemble never stops early."""
    nodes = len(parent)
    counted = nodes if stop == "decided" and labels_vote(vote) else 0
    summed = nodes if stop == "decided" and not labels_vote(vote) else 0
    _check_room(counted * -(-classes // 8) + summed * classes * 16, nodes, classes)
    label = np.empty(nodes, np.int32)
    best_labels(kept, classes, label)
    possible, bounds = np.zeros((counted, -(-classes // 8)), np.uint8), np.empty((summed, 2, classes), np.int64)
    weight_scale = 1.0 if vote == "majority" else _scale(float(weights.sum()))
    shares = np.maximum(1, np.rint(weights * weight_scale)).astype(np.int64)
    if counted:
        labels_below(label, parent, possible)
    if labels_vote(vote):
        margin = 0 if vote == "majority" else int(MARGIN * weights.sum() * weight_scale)
        return Ballot(label, possible, bounds, shares, weight_scale, margin)
    greatest_value = np.empty(len(roots))
    greatest_values(kept, roots, greatest_value)
    total = float((weights * greatest_value).sum())
    scale = _scale(total)
    if summed:
        bounds_below(kept, parent, roots, weights, scale, bounds)
    return Ballot(label, possible, bounds, shares, scale, int(MARGIN * total * scale))


def prior(flat: Flat, classes: int) -> NDArray[np.float64]:
    """The share of each class where nothing is known: the mean over the trees, by weight, of the shares at their roots."""
    shares, weight = np.zeros(classes), 0.0
    for root, own in zip(flat.roots.tolist(), flat.weights.tolist(), strict=True):
        counts = flat.dense(root, classes)
        if counts.sum() > 0:
            shares += own * (counts / counts.sum())
            weight += own
    return shares / weight if weight and (shares >= 0).all() else np.full(classes, 1 / classes)


def _check_room(size: int, nodes: int, classes: int) -> None:
    if size > MOST_BYTES:
        raise ValueError(
            f"to know when the label of {nodes:,} nodes and {classes:,} classes is decided takes {size:,} bytes, where {MOST_BYTES:,} are "
            "possible: use stop='leaf'"
        )


def _scale(total: float) -> float:
    """The power of two by which votes become whole numbers of at most 2^60 in all; counts, being whole already, stay exact."""
    return 2.0 ** (60 - math.ceil(math.log2(total))) if total > 0 else 1.0
