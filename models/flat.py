"""The flat form: all trees of an ensemble in one set of arrays, checked in one pass before anything walks them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.serving import checking
from frugal.models.kernels.serving.walking import NODE
from frugal.models.schema import Schema
from frugal.models.tree import Tree

LARGEST = 2**31 - 1  # nodes and child table entries: indices are int32
LOUDEST = 1e100  # how large, and inverse how small, sums of votes may be
TROUBLES = {
    checking.BAD_FEATURE: "splits on a feature that the schema does not have",
    checking.BAD_SLICE: "has a slice of the child table of the wrong size: 2 for a numeric split, one per category for a categorical one, "
    "none for a leaf",
    checking.BAD_CHILD: "has a child that is not further on in the same tree: a cycle, or an index out of range",
    checking.TWO_PARENTS: "has a child that has another parent already",
    checking.ORPHAN: "is no node's child and no root",
    checking.NOT_FINITE: "has a threshold or value that is not a finite number",
    checking.BAD_LOW: "has a low that is neither finite nor -inf",
    checking.NEGATIVE: "has a negative value: counts are at least 0",
    checking.EMPTY_SPLIT: "is a split without any child",
}


class Flat(NamedTuple):
    """Per node (all trees one after the other), per tree, and the child table; node indices are the ensemble's."""

    feature: NDArray[np.int32]  # -1: a leaf
    low: NDArray[np.float64]  # numeric: low < value <= threshold leads to child 0
    threshold: NDArray[np.float64]
    child_start: NDArray[np.int64]  # nodes + 1
    children: NDArray[np.int32]
    missing_child: NDArray[np.int32]
    values: NDArray[np.float64]  # nodes x classes
    roots: NDArray[np.int32]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, trees: Sequence[Tree], weights: Sequence[float] | None = None) -> "Flat":
        """Put trees one after the other."""
        if not trees:
            raise ValueError("an ensemble needs at least one tree")
        sizes = np.cumsum([0] + [len(tree.feature) for tree in trees])
        entries = np.cumsum([0] + [len(tree.children) for tree in trees])
        if max(sizes[-1], entries[-1]) > LARGEST:
            raise ValueError(f"{sizes[-1]:,} nodes and {entries[-1]:,} branches: an ensemble holds at most {LARGEST:,} of each")
        if len({tree.values.shape[1] for tree in trees}) > 1:
            raise ValueError("the trees have values for different numbers of classes")
        return cls(
            feature=np.concatenate([tree.feature for tree in trees]).astype(np.int32),
            low=np.concatenate([tree.low for tree in trees]).astype(np.float64),
            threshold=np.concatenate([tree.threshold for tree in trees]).astype(np.float64),
            child_start=np.concatenate([[0]] + [tree.child_start[1:] + e for tree, e in zip(trees, entries, strict=False)]).astype(
                np.int64
            ),
            children=_shifted([tree.children for tree in trees], sizes),
            missing_child=_shifted([tree.missing_child for tree in trees], sizes),
            values=np.ascontiguousarray(np.concatenate([tree.values for tree in trees]), np.float64),
            roots=sizes[:-1].astype(np.int32),
            weights=np.ones(len(trees)) if weights is None else np.array(weights, np.float64),
        )

    def check(self, schema: Schema, classes: int, vote: str) -> NDArray[np.int32]:
        """Raise ValueError unless these arrays can be walked and voted with; gives every node's parent."""
        nodes, trees = len(self.feature), len(self.roots)
        _check_sizes(self, nodes, trees, classes)
        _check_weights(self.weights, vote)
        parent = np.empty(nodes, np.int32)
        counts = vote != "additive"
        trouble, i = checking.check(*self[:8], schema.arity, counts, parent)
        if trouble != checking.FINE:
            raise ValueError(f"node {i} {TROUBLES[trouble]}")
        _check_magnitudes(self)
        return parent

    def prefix(self, trees: int) -> "Flat":
        """Copies of the arrays of the first trees."""
        return Flat(*(array.copy() for array in self.views(trees)))  # type: ignore[arg-type]

    def views(self, trees: int) -> "Flat":
        """The arrays of the first trees, shared."""
        nodes = int(self.roots[trees]) if trees < len(self.roots) else len(self.feature)
        entries = int(self.child_start[nodes])
        sizes = (nodes, nodes, nodes, nodes + 1, entries, nodes, nodes, trees, trees)
        arrays: list[NDArray[Any]] = list(self)
        return Flat(*(array[:size] for array, size in zip(arrays, sizes, strict=True)))

    def own(self) -> "Flat":
        """Copies of the right types: nobody else can change them, and kernels are compiled for no others."""
        dtypes = (np.int32, np.float64, np.float64, np.int64, np.int32, np.int32, np.float64, np.int32, np.float64)
        return Flat(*(np.array(array, dtype, order="C") for array, dtype in zip(self, dtypes, strict=True)))

    def frozen(self) -> "Flat":
        """The same arrays, read-only: an ensemble that is served does not change."""
        views = [array.view() for array in self]
        for view in views:
            view.flags.writeable = False
        return Flat(*views)  # type: ignore[arg-type]  # mypy does not follow the order of the fields


def _shifted(indices: Sequence[NDArray[np.int32]], starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Node indices within each tree as node indices of the ensemble; -1 stays -1."""
    return np.concatenate([np.where(own < 0, -1, own + start) for own, start in zip(indices, starts, strict=False)]).astype(np.int32)


def _check_sizes(flat: Flat, nodes: int, trees: int, classes: int) -> None:
    if trees == 0 or nodes == 0:
        raise ValueError("an ensemble needs at least one tree")
    for name, size in (
        ("low", nodes),
        ("threshold", nodes),
        ("missing_child", nodes),
        ("child_start", nodes + 1),
        ("weights", trees),
    ):
        if getattr(flat, name).shape != (size,):
            raise ValueError(f"{name} has shape {getattr(flat, name).shape}: expected ({size},)")
    if flat.values.shape != (nodes, classes):
        raise ValueError(f"values has shape {flat.values.shape}: expected one value per node and class, ({nodes}, {classes})")
    if flat.roots[0] != 0 or (np.diff(flat.roots.astype(np.int64)) <= 0).any() or flat.roots[-1] >= nodes:
        raise ValueError("roots must start at 0, rise, and be nodes")
    start = flat.child_start
    if start[0] != 0 or (start[1:] < start[:-1]).any() or start[-1] != len(flat.children):
        raise ValueError("child_start must start at 0, never fall, and end at the size of the child table")


def _check_weights(weights: NDArray[np.float64], vote: str) -> None:
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("every tree's weight must be a finite number above 0")
    if vote == "majority" and (weights != 1).any():
        raise ValueError("under the vote 'majority' every tree has the weight 1: use 'weighted'")


def _check_magnitudes(flat: Flat) -> None:
    """Votes are summed, scaled and multiplied by penalties: stay far from where floats end."""
    with np.errstate(over="ignore"):
        largest = float(np.abs(flat.values).sum(axis=1).max())
        weight = float(flat.weights.sum())
    for what, size in (
        ("the values of a node together", largest),
        ("the weights together", weight),
        ("values times weights", largest * weight),
    ):
        if size > LOUDEST or 0 < size < 1 / LOUDEST:
            raise ValueError(f"{what} come to {size:g}: expected 0, or a number from {1 / LOUDEST:g} to {LOUDEST:g}")


def packed(flat: Flat, arity: NDArray[np.int32]) -> NDArray[np.void]:
    """Per node, side by side, what a walk reads of it."""
    nodes = np.zeros(len(flat.feature), NODE)
    start = flat.child_start[:-1]
    numeric = flat.feature >= 0
    numeric[numeric] = arity[flat.feature[numeric]] == 0
    nodes["feature"], nodes["low"], nodes["threshold"], nodes["missing"] = (
        flat.feature,
        flat.low,
        flat.threshold,
        flat.missing_child,
    )
    nodes["first"] = start
    nodes["second"] = -1
    nodes["first"][numeric] = flat.children[start[numeric]]
    nodes["second"][numeric] = flat.children[start[numeric] + 1]
    return nodes
