"""Pruning a grown tree: by the errors to be expected (C4.5), by money (ACT), by cost-complexity (CART)."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import MILLION, CostModel
from frugal.models.growing.targets import on_path
from frugal.models.kernels.growth import pruning as kernels
from frugal.models.kernels.marks import BIN, ENDS, EVERY_CATEGORY, LEAF
from frugal.models.schema import Schema
from frugal.models.tree import Tree

SLACK = 0.1  # errors: C4.5 takes a leaf that is this much worse


def by_errors(tree: Tree, schema: Schema, cf: float = 0.25, slack: float = SLACK) -> Tree:
    """C4.5's error-based pruning: a subtree becomes a leaf where that is expected to make no more errors."""
    counts = dense_values(tree)
    total = counts.sum(axis=1)
    as_leaf = kernels.all_expected_errors(total, total - counts.max(axis=1), cf)
    return _collapsed(tree, schema, as_leaf, np.zeros(len(as_leaf)), slack)[0]


def by_cost(
    tree: Tree, schema: Schema, costs: CostModel, penalties: NDArray[np.float64], cf: float, bought: Collection[int] = ()
) -> tuple[Tree, float]:
    """ACT's cost-sensitive pruning: (the tree, its mean cost per case) where a subtree becomes a leaf that costs no more, its questions, at
    their price in context, and its mistakes together. `penalties` has a row per class that is said and a column per class that is true."""
    counts = dense_values(tree, len(penalties))
    total = counts.sum(axis=1)
    context = on_path(costs, bought)
    price = kernels.path_prices(tree.feature, parents(tree), context.prices, context.basket) / MILLION
    pruned, cost = _collapsed(tree, schema, leaf_costs(counts, penalties, cf), total * price, 0.0)
    return pruned, cost / float(total[0])


def leaf_costs(counts: NDArray[np.float64], penalties: NDArray[np.float64], cf: float) -> NDArray[np.float64]:
    """mcost of every node as a leaf: the errors to be expected, each at the mean penalty for the classes that are not the label's."""
    said = (counts @ penalties.T).argmin(axis=1)
    total, right = counts.sum(axis=1), counts[np.arange(len(counts)), said]
    classes = len(penalties)
    others = np.where(np.arange(classes) == said[:, None], 0.0, counts + 1.0)
    each = (others * penalties[said]).sum(axis=1) / np.maximum(total - right + classes - 1, 1)
    return np.asarray(kernels.all_expected_errors(total, total - right, cf) * each)


def strengths(tree: Tree, load: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Minimal cost-complexity pruning: per node the strength at which it becomes a leaf, the share of cases that its subtree gets right and
    a leaf would not, per outcome that its questions add; or per `load`, of every node's question."""
    counts = dense_values(tree)
    many = children_of(tree)
    load = np.maximum(many - 1, 0).astype(np.float64) if load is None else load
    wrong = (counts.sum(axis=1) - counts.max(axis=1)) / counts[0].sum()
    return np.asarray(kernels.weakest_links(tree.feature, parents(tree), wrong, load))


def at_strength(tree: Tree, schema: Schema, found: NDArray[np.float64], strength: float) -> Tree:
    """What cost-complexity pruning leaves at a strength; `found` are the tree's `strengths`."""
    return cut_below(tree, schema, (tree.feature == LEAF) | (found <= strength))


def cut_below(tree: Tree, schema: Schema, ends: NDArray[np.bool_]) -> Tree:
    """The same tree where these nodes are leaves."""
    keep = kernels.kept(parents(tree), ends)
    number = np.cumsum(keep) - 1
    asks = keep & ~ends
    categories = np.array([len(feature.categories) for feature in schema.features], np.int64)
    every = tree.kind == EVERY_CATEGORY
    table = np.repeat(asks[every], categories[tree.feature[every]])
    values = np.repeat(keep, np.diff(tree.value_start))
    start = np.concatenate([[0], np.cumsum(np.diff(tree.value_start)[keep])]).astype(tree.value_start.dtype)
    return Tree(
        feature=np.where(ends, LEAF, tree.feature)[keep].astype(tree.feature.dtype),
        kind=np.where(ends, 0, tree.kind)[keep].astype(tree.kind.dtype),
        low=tree.low[asks[tree.kind == BIN]],
        threshold=np.where(ends, 0.0, tree.threshold)[keep],
        first_child=np.where(ends, -1, number[np.maximum(tree.first_child, 0)])[keep].astype(tree.first_child.dtype),
        missing=np.where(ends, ENDS, tree.missing)[keep].astype(tree.missing.dtype),
        outcomes=tree.outcomes[table],
        value_start=start,
        value_class=tree.value_class[values],
        values=tree.values[values],
    )


def parents(tree: Tree) -> NDArray[np.int32]:
    """Every node's parent, -1 of the root: children stand side by side, so a family ends where the next begins."""
    asks = np.flatnonzero(tree.feature != LEAF)
    order = asks[np.argsort(tree.first_child[asks])]
    found = np.full(len(tree.feature), -1, np.int32)
    if len(order):
        found[1:] = order[np.searchsorted(tree.first_child[order], np.arange(1, len(found)), side="right") - 1]
    return found


def children_of(tree: Tree) -> NDArray[np.int64]:
    """How many children every node has."""
    return np.bincount(parents(tree)[1:], minlength=len(tree.feature))


def dense_values(tree: Tree, classes: int | None = None) -> NDArray[np.float64]:
    """Nodes x classes."""
    classes = int(tree.value_class.max(initial=0)) + 1 if classes is None else classes
    found = np.zeros((len(tree.feature), classes))
    found[np.repeat(np.arange(len(tree.feature)), np.diff(tree.value_start)), tree.value_class] = tree.values
    return found


def _collapsed(tree: Tree, schema: Schema, as_leaf: NDArray[np.float64], asking: NDArray[np.float64], slack: float) -> tuple[Tree, float]:
    ends = np.empty(len(as_leaf), np.bool_)
    cost = kernels.collapse(tree.feature, parents(tree), as_leaf, asking, slack, ends)
    return cut_below(tree, schema, ends), float(cost)
