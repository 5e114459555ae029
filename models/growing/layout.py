"""A grown tree as a served one: real thresholds and categories instead of bins, nodes' sums in the order of the nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models.growing.binning import Binning
from frugal.models.kernels.growth.nodes import Nodes
from frugal.models.kernels.growth.questions import MISSING, Bins
from frugal.models.kernels.marks import BIN, CUT, ENDS, EVERY_CATEGORY, NEVER_SEEN, ONE_CATEGORY, SOME_CATEGORIES
from frugal.models.tree import Tree, class_type, compact

GREATEST = np.finfo(np.float64).max  # no number is above: the last bin has no edge


@dataclass(frozen=True)
class Layout:
    """What bins stand for, of all features side by side: made once, read for every tree."""

    bins: Bins
    bounds: NDArray[np.float64]  # numeric: bin b is from its feature's entry b, not included, to entry b + 1
    bound_start: NDArray[np.int64]  # per feature
    bin_of: NDArray[np.int64]  # categorical: the bin of each category
    category_start: NDArray[np.int64]  # per feature
    categories: NDArray[np.int64]  # per feature: how many
    category: NDArray[np.int64]  # per bin: the first category in it
    sharing: NDArray[np.int64]  # per bin: how many share it
    bin_start: NDArray[np.int64]  # per feature

    @classmethod
    def of(cls, bins: Bins, binning: Binning) -> "Layout":
        bounds = [np.concatenate([[-np.inf], edges, [GREATEST]]) for edges in binning.edges]
        found = [_categories_of_bins(bin_of, int(size)) for bin_of, size in zip(binning.bin_of, binning.sizes, strict=True)]
        categories = np.array([len(bin_of) for bin_of in binning.bin_of], np.int64)
        return cls(
            bins,
            _joined(bounds, np.float64),
            _starts([len(each) for each in bounds]),
            _joined(binning.bin_of, np.int64),
            _starts(categories),
            categories,
            _joined([first for first, _ in found], np.int64),
            _joined([many for _, many in found], np.int64),
            _starts(binning.sizes),
        )

    def tree(self, node: Nodes, nodes: int, sums: NDArray[np.float64]) -> Tree:
        """The first `nodes` of a work space, copied; `sums` are pairs of which and how much, as `grow` gives them."""
        feature, first, way, many = (array[:nodes].copy() for array in (node.feature, node.first, node.way, node.many))
        asks = np.flatnonzero(feature >= 0)
        f, cut = feature[asks], node.cut[asks]
        form = np.zeros(nodes, np.uint8)
        form[asks] = self.bins.form[f]
        kind, threshold, low = form.copy(), np.zeros(nodes), np.full(nodes, -np.inf)
        numeric = (form[asks] == CUT) | (form[asks] == BIN)
        here, bound = asks[numeric], self.bound_start[f[numeric]] + cut[numeric]
        low[here], threshold[here] = self.bounds[bound], self.bounds[bound + 1]
        one = form[asks] == ONE_CATEGORY
        here, bin_ = asks[one], self.bin_start[f[one]] + cut[one]
        threshold[here] = self.category[bin_]
        kind[here[self.sharing[bin_] > 1]] = EVERY_CATEGORY  # rare categories that share a bin
        kind[form == SOME_CATEGORIES] = EVERY_CATEGORY
        kind[(kind == BIN) & (low == -np.inf)] = CUT
        threshold[kind == EVERY_CATEGORY] = 0.0
        missing = np.where((form == EVERY_CATEGORY) | (way == MISSING), many - 1, way)
        missing[(way < 0) | (feature < 0)] = ENDS  # a node that is a leaf after all may have looked for a way
        return Tree(
            feature=feature,
            kind=kind,
            low=low[kind == BIN],
            threshold=threshold,
            first_child=first,
            missing=np.where((feature < 0) | (way < 0), ENDS, np.where((form == EVERY_CATEGORY) | (way == MISSING), many - 1, way)).astype(
                np.int16
            ),
            outcomes=self._tables(node, np.flatnonzero(kind == EVERY_CATEGORY), form),
            **_in_order(node, nodes, sums),
        )

    def _tables(self, node: Nodes, every: NDArray[np.int64], form: NDArray[np.uint8]) -> NDArray[np.int16]:
        """The outcome of every category, of the nodes that have a table, one after the other."""
        if not len(every):
            return np.empty(0, np.int16)
        f = node.feature[every]
        sizes, categories = self.bins.sizes[f], self.categories[f]
        by_bin = np.full(sizes.sum(), NEVER_SEEN, np.int16)  # of each node, bin by bin
        start = _starts(sizes)
        one, some = form[every] == ONE_CATEGORY, form[every] == SOME_CATEGORIES
        if one.any():
            by_bin[_within(start[one], sizes[one])] = 1
            by_bin[start[one] + node.cut[every[one]]] = 0
        for i in np.flatnonzero(some):
            chosen = np.unpackbits(node.chosen[every[i]].view(np.uint8), bitorder="little")[: sizes[i]]
            by_bin[start[i] : start[i] + sizes[i]] = 1 - chosen
        table = ~(one | some)
        parents, many = every[table], node.many[every[table]]
        child = _within(node.first[parents], many)
        outcome = np.arange(len(child)) - np.repeat(_starts(many), many)
        bin_ = node.stands[child]
        seen = bin_ < np.repeat(sizes[table], many)  # missing stands behind the last bin
        by_bin[(np.repeat(start[table], many) + bin_)[seen]] = outcome[seen]
        return np.asarray(by_bin[np.repeat(start, categories) + self.bin_of[_within(self.category_start[f], categories)]])


def _categories_of_bins(bin_of: NDArray[np.uint8], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per bin of a categorical feature: the first category in it, and how many are."""
    first, many = np.zeros(size, np.int64), np.zeros(size, np.int64)
    bins, codes, times = np.unique(bin_of, return_index=True, return_counts=True)
    first[bins], many[bins] = codes, times
    return first, many


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([*parts, []]).astype(dtype)


def _starts(sizes: Any) -> NDArray[np.int64]:
    """Where each of some stretches of these sizes begins."""
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.asarray(ends - sizes)


def _within(start: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.int64]:
    """The places of some stretches, one after the other."""
    return np.arange(int(sizes.sum())) + np.repeat(start - _starts(sizes), sizes)


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
