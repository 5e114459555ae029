"""The flat form: all trees of an ensemble in one set of arrays, checked in one pass before anything walks them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.marks import BIN, ENDS, EVERY_CATEGORY, NONE, ONE_CATEGORY
from frugal.models.kernels.serving import checking
from frugal.models.kernels.serving.nodes import NO_TABLE, NODE
from frugal.models.kernels.serving.values import Values
from frugal.models.schema import Schema
from frugal.models.tree import WHOLE, Tree, compact

LARGEST = 2**31 - 1  # nodes, entries of tables and values: indices are int32
LOUDEST = 1e100  # how large, and inverse how small, sums of votes may be
TROUBLES = {
    checking.BAD_FEATURE: "splits on a feature that the schema does not have",
    checking.BAD_KIND: "has a test that its feature cannot take: numbers are cut, categories are told apart, a leaf asks nothing",
    checking.BAD_CATEGORY: "tests for a category that its feature does not have",
    checking.BAD_LEAF: "is a leaf that has a child or a way for missing values",
    checking.BAD_MISSING: "sends missing to an outcome that it does not have",
    checking.BAD_CHILD: "has a child that is not further on in the same tree: a cycle, or an index out of range",
    checking.TWO_PARENTS: "has a child that has another parent already",
    checking.ORPHAN: "is no node's child and no root",
    checking.NOT_FINITE: "has a threshold or value that is not a finite number",
    checking.BAD_LOW: "has a low that is not a finite number",
    checking.BAD_CLASS: "has values whose classes do not rise, or that the ensemble does not have",
    checking.NEGATIVE: "has a negative value: counts are at least 0",
    checking.EMPTY_SPLIT: "is a split without any child",
    checking.TOO_FEW: "finds no low, or no table of outcomes, left for it: those arrays are too short",
}


class Flat(NamedTuple):
    """Per node (all trees one after the other) and per tree; node indices are the ensemble's. Children are adjacent: child = first_child +
    outcome, and come after their parent."""

    feature: NDArray[np.int32]  # LEAF: none
    kind: NDArray[np.uint8]  # NO_TEST, CUT, BIN, ONE_CATEGORY or EVERY_CATEGORY
    low: NDArray[np.float64]  # one for each BIN node, in their order
    threshold: NDArray[np.float64]  # ONE_CATEGORY: the category's code; 0 where there is none
    first_child: NDArray[np.int32]  # -1: a leaf
    missing: NDArray[np.int16]  # the outcome that missing has, or ENDS
    outcomes: NDArray[np.int16]  # of the EVERY_CATEGORY nodes, in their order: one per category code, or NEVER_SEEN
    value_start: NDArray[np.int32]  # nodes + 1: where each node's stretch of the next two starts
    value_class: NDArray[Any]  # uint8 or uint16, rising within a stretch
    values: NDArray[Any]  # those that are not 0: whole counts in the smallest of WHOLE that holds all of them, else float64
    roots: NDArray[np.int32]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, trees: Iterable[Tree], weights: Sequence[float] | None = None) -> "Flat":
        """Put trees one after the other."""
        stack = Stack()
        for tree in trees:
            stack.add(tree)
        flat = stack.flat()
        return flat if weights is None else flat._replace(weights=np.array(weights, np.float64))

    def check(self, schema: Schema, classes: int, vote: str) -> NDArray[np.int32]:
        """Raise ValueError unless these arrays can be walked and voted with; gives every node's parent."""
        nodes, trees = len(self.feature), len(self.roots)
        _check_sizes(self, nodes, trees)
        _check_weights(self.weights, vote)
        parent = np.empty(nodes, np.int32)
        trouble, i, largest = checking.check(*self[:7], self.kept(), self.roots, schema.arity, classes, vote != "additive", parent)
        if trouble == checking.TOO_MANY:
            raise ValueError("there are more lows or tables of outcomes than nodes that use them")
        if trouble != checking.FINE:
            raise ValueError(f"node {i} {TROUBLES[trouble]}")
        _check_magnitudes(largest, self.weights)
        return parent

    def kept(self) -> Values:
        """The values as kernels read them."""
        kinds, values = self.value_class, self.values
        return Values(self.value_start, kinds.view(np.uint8), kinds.itemsize, values.view(np.uint8), values.itemsize)

    def dense(self, i: int, classes: int) -> NDArray[np.float64]:
        """The values of one node, a number for each class."""
        stretch = slice(int(self.value_start[i]), int(self.value_start[i + 1]))
        row = np.zeros(classes)
        row[self.value_class[stretch]] = self.values[stretch]
        return row

    def tables(self, arity: NDArray[np.int32]) -> NDArray[np.int64]:
        """Where the table of each EVERY_CATEGORY node starts in `outcomes`, in the order of those nodes, and where the last one ends."""
        sizes = arity[self.feature[self.kind == EVERY_CATEGORY]]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    def first(self, trees: int, arity: NDArray[np.int32]) -> "Flat":
        """The arrays of the first trees, shared."""
        if trees >= len(self.roots):
            return self
        nodes = int(self.roots[trees])
        entries = int(self.value_start[nodes])
        lows = np.count_nonzero(self.kind[:nodes] == BIN)
        tables = int(arity[self.feature[:nodes][self.kind[:nodes] == EVERY_CATEGORY]].sum(dtype=np.int64))
        sizes = (nodes, nodes, lows, nodes, nodes, nodes, tables, nodes + 1, entries, entries, trees, trees)
        arrays: list[NDArray[Any]] = list(self)
        return Flat(*(array[:size] for array, size in zip(arrays, sizes, strict=True)))

    def followed_by(self, other: "Flat") -> "Flat":
        """The trees of both, copied."""
        nodes, entries = len(self.feature), len(self.values)
        shifted = other._replace(
            first_child=np.where(other.first_child == NONE, NONE, other.first_child + nodes),
            value_start=other.value_start[1:] + entries,
            roots=other.roots + nodes,
        )
        pairs: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(self, shifted, strict=True)
        return Flat(*(np.concatenate(pair) for pair in pairs)).own()

    def own(self) -> "Flat":
        """The same in the types that kernels are compiled for. What is of the right type and can be written is taken over, not copied."""
        dtypes: dict[str, Any] = dict.fromkeys(("feature", "first_child", "value_start", "roots"), np.int32)
        dtypes |= dict.fromkeys(("low", "threshold", "weights"), np.float64)
        dtypes |= {"kind": np.uint8, "missing": np.int16, "outcomes": np.int16}
        dtypes["value_class"] = self.value_class.dtype if self.value_class.dtype in (np.uint8, np.uint16) else np.uint16
        values = self.values if self.values.dtype in (*WHOLE, np.float64) else compact(np.asarray(self.values, np.float64))
        arrays = (self._replace(values=values))._asdict()
        return Flat(**{name: np.require(array, dtypes.get(name), ["C", "A", "W"]) for name, array in arrays.items()})

    def frozen(self) -> "Flat":
        """The same arrays, read-only: an ensemble that is served does not change."""
        views = [array.view() for array in self]
        for view in views:
            view.flags.writeable = False
        return Flat(*views)  # type: ignore[arg-type]  # mypy does not follow the order of the fields


class Stack:
    """Trees put one after the other as they come: a forest that grows is held once, and none of its trees beside it."""

    def __init__(self) -> None:
        self._columns = {name: _Column() for name in Flat._fields}
        self._columns["value_start"].extend(np.zeros(1, np.int32))

    def __len__(self) -> int:
        return self._columns["roots"].size

    def add(self, tree: Tree) -> None:
        nodes, entries, tables = (self._columns[name].size for name in ("feature", "values", "outcomes"))
        for size, more, what in (
            (nodes, tree.feature, "nodes"),
            (entries, tree.values, "values of classes"),
            (tables, tree.outcomes, "outcomes of categories"),
        ):
            if size + len(more) > LARGEST:
                raise ValueError(f"{size + len(more):,} {what}: an ensemble holds at most {LARGEST:,}")
        shifted = tree._replace(
            first_child=np.where(tree.first_child == NONE, NONE, tree.first_child + nodes),
            value_start=tree.value_start[1:] + entries,
        )
        for name, array in shifted._asdict().items():
            self._columns[name].extend(array)
        self._columns["roots"].extend(np.array([nodes], np.int32))
        self._columns["weights"].extend(np.ones(1))

    def flat(self) -> Flat:
        """All trees so far. The arrays are shared: trees that are added later do not change them."""
        if not len(self):
            raise ValueError("an ensemble needs at least one tree")
        return Flat(**{name: column.array[: column.size] for name, column in self._columns.items()})


class _Column:
    """An array that grows at its end. Memory that is only set aside is not taken, so half as much again to spare costs nothing."""

    def __init__(self) -> None:
        self.array: NDArray[Any] = np.empty(0, np.uint8)
        self.size = 0

    def extend(self, more: NDArray[Any]) -> None:
        size = self.size + len(more)
        dtype = np.promote_types(self.array.dtype, more.dtype) if self.size else more.dtype
        if size > len(self.array) or dtype != self.array.dtype:
            wider = np.empty(max(size, len(self.array) * 3 // 2), dtype)
            wider[: self.size] = self.array[: self.size]
            self.array = wider
        self.array[self.size : size] = more
        self.size = size


def _check_sizes(flat: Flat, nodes: int, trees: int) -> None:
    if trees == 0 or nodes == 0:
        raise ValueError("an ensemble needs at least one tree")
    for name in ("kind", "threshold", "first_child", "missing"):
        _check_shape(flat, name, nodes)
    _check_shape(flat, "value_start", nodes + 1)
    _check_shape(flat, "value_class", len(flat.values))
    _check_shape(flat, "weights", trees)
    if flat.roots[0] != 0 or (np.diff(flat.roots.astype(np.int64)) <= 0).any() or flat.roots[-1] >= nodes:
        raise ValueError("roots must start at 0, rise, and be nodes")
    start = flat.value_start
    if start[0] != 0 or (start[1:] < start[:-1]).any() or start[-1] != len(flat.values):
        raise ValueError("value_start must start at 0, never fall, and end at the number of values")


def _check_shape(flat: Flat, name: str, size: int) -> None:
    if getattr(flat, name).shape != (size,):
        raise ValueError(f"{name} has shape {getattr(flat, name).shape}: expected ({size},)")


def _check_weights(weights: NDArray[np.float64], vote: str) -> None:
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("every tree's weight must be a finite number above 0")
    if vote == "majority" and (weights != 1).any():
        raise ValueError("under the vote 'majority' every tree has the weight 1: use 'weighted'")


def _check_magnitudes(largest: float, weights: NDArray[np.float64]) -> None:
    """Votes are summed, scaled and multiplied by penalties: stay far from where floats end."""
    with np.errstate(over="ignore"):
        weight = float(weights.sum())
    for what, size in (
        ("the values of a node together", largest),
        ("the weights together", weight),
        ("values times weights", largest * weight),
    ):
        if size > LOUDEST or 0 < size < 1 / LOUDEST:
            raise ValueError(f"{what} come to {size:g}: expected 0, or a number from {1 / LOUDEST:g} to {LOUDEST:g}")


def packed(flat: Flat, arity: NDArray[np.int32]) -> NDArray[np.void]:
    """Per node, side by side, what a walk reads of it."""
    nodes = np.empty(len(flat.feature), NODE)
    nodes["feature"], nodes["first"], nodes["threshold"] = flat.feature, flat.first_child, flat.threshold
    nodes["missing"] = np.where(flat.missing == ENDS, NONE, flat.first_child + flat.missing)
    nodes["low"], nodes["table"] = -np.inf, NO_TABLE
    nodes["low"][flat.kind == BIN] = flat.low
    one = flat.kind == ONE_CATEGORY
    nodes["low"][one] = flat.threshold[one] - 0.5
    nodes["threshold"][one] = flat.threshold[one] + 0.5
    nodes["table"][flat.kind == EVERY_CATEGORY] = flat.tables(arity)[:-1]
    nodes["missing"][flat.feature < 0] = NONE
    pure = np.flatnonzero((flat.feature < 0) & (np.diff(flat.value_start) == 1))
    pure = pure[flat.values[flat.value_start[pure]] != 0]
    entry = flat.value_start[pure]
    nodes["missing"][pure], nodes["low"][pure] = flat.value_class[entry], flat.values[entry]
    return nodes
