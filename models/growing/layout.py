"""A grown tree as a served one: real thresholds and categories instead of bins, nodes' sums in the order of the nodes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models.growing.binning import Binning
from frugal.models.kernels.growth.nodes import Nodes
from frugal.models.kernels.growth.questions import MISSING, Bins
from frugal.models.kernels.marks import BIN, CUT, ENDS, EVERY_CATEGORY, NEVER_SEEN, ONE_CATEGORY
from frugal.models.tree import Tree, class_type, compact

GREATEST = np.finfo(np.float64).max  # no number is above: the last bin has no edge


def as_tree(node: Nodes, nodes: int, sums: NDArray[np.float64], bins: Bins, binning: Binning) -> Tree:
    """The first `nodes` of a work space, copied; `sums` are pairs of which and how much, as `grow` gives them."""
    feature, first, way, many, cut = (array[:nodes].copy() for array in (node.feature, node.first, node.way, node.many, node.cut))
    form = np.where(feature >= 0, bins.form[feature] if len(bins.form) else 0, 0).astype(np.uint8)
    threshold, low = np.zeros(nodes), np.full(nodes, -np.inf)
    missing = np.where(way < 0, ENDS, np.where((form == EVERY_CATEGORY) | (way == MISSING), many - 1, way))
    kind = form.copy()
    for f, edges in enumerate(binning.edges):
        here = np.flatnonzero(feature == f)
        if not len(here):
            continue
        if bins.form[f] in (CUT, BIN):
            bounds = np.concatenate([[-np.inf], edges, [GREATEST]])
            threshold[here] = bounds[cut[here] + 1]
            low[here] = bounds[cut[here]]
        elif bins.form[f] == ONE_CATEGORY:
            code_of, times = _codes_of_bins(binning.bin_of[f])
            threshold[here] = code_of[cut[here]]
            kind[here[times[cut[here]] > 1]] = EVERY_CATEGORY  # rare categories that share a bin
    kind[(kind == BIN) & (low == -np.inf)] = CUT
    threshold[kind == EVERY_CATEGORY] = 0.0
    return Tree(
        feature=feature,
        kind=kind,
        low=low[kind == BIN],
        threshold=threshold,
        first_child=first,
        missing=missing.astype(np.int16),
        outcomes=_tables(node, feature, kind, form, bins, binning),
        **_in_order(node, nodes, sums),
    )


def _codes_of_bins(bin_of: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per bin of a categorical feature: the first category in it, and how many are."""
    bins, codes, times = np.unique(bin_of, return_index=True, return_counts=True)
    first, many = np.zeros(int(bins[-1]) + 1, np.int64), np.zeros(int(bins[-1]) + 1, np.int64)
    first[bins], many[bins] = codes, times
    return first, many


def _tables(
    node: Nodes, feature: NDArray[np.int32], kind: NDArray[np.uint8], form: NDArray[np.uint8], bins: Bins, binning: Binning
) -> NDArray[np.int16]:
    """The outcome of every category, of the nodes that have a table, one after the other."""
    every = np.flatnonzero(kind == EVERY_CATEGORY)
    categories = np.array([len(bin_of) for bin_of in binning.bin_of], np.int64)
    ends = np.cumsum(categories[feature[every]])
    outcomes = np.empty(ends[-1] if len(ends) else 0, np.int16)
    for f in np.unique(feature[every]):
        here = every[feature[every] == f]
        start = ends[feature[every] == f] - categories[f]
        if form[here[0]] == ONE_CATEGORY:
            by_bin = (np.arange(bins.sizes[f]) != node.cut[here][:, None]).astype(np.int16)
        else:
            by_bin = _outcomes_by_bin(node.stands, node.first[here], node.many[here], int(bins.sizes[f]))
        outcomes[start[:, None] + np.arange(categories[f])] = by_bin[:, binning.bin_of[f]]
    return outcomes


def _outcomes_by_bin(stands: NDArray[np.int32], first: NDArray[np.int32], many: NDArray[np.int32], bins: int) -> NDArray[np.int16]:
    """Nodes x bins: the outcome of each bin of a category, NEVER_SEEN where training saw none."""
    table = np.full((len(first), bins), NEVER_SEEN, np.int16)
    node = np.repeat(np.arange(len(first)), many)
    outcome = np.arange(len(node)) - np.repeat(np.cumsum(many) - many, many)
    bin_ = stands[first[node] + outcome]
    seen = bin_ < bins  # missing stands behind the last bin
    table[node[seen], bin_[seen]] = outcome[seen]
    return table


def _in_order(node: Nodes, nodes: int, sums: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """The sums of every node, which stand in the order in which nodes were searched."""
    many = node.values[:nodes]
    start = np.zeros(nodes + 1, np.int32)
    np.cumsum(many, out=start[1:])
    entry = np.arange(start[-1]) + np.repeat(node.value[:nodes] - start[:-1], many)
    which = sums[entry, 0]
    return {
        "value_start": start,
        "value_class": which.astype(class_type(int(which.max(initial=0)) + 1)),
        "values": compact(sums[entry, 1]),
    }
