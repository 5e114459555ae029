"""Growing trees as convenient objects, and one tree as flat arrays."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.schema import CATEGORICAL, Schema

ENDS = -1  # `missing` of a split where an unavailable value ends the walk


@dataclass(slots=True)
class Leaf:
    """The end of a walk: one value per class (counts of training cases, or scores)."""

    values: Sequence[float]


@dataclass(slots=True)
class Split:
    """A question and where its answers lead.

    Numeric: `low < value <= threshold` leads to child 0, everything else to child 1. Categorical: `branches` maps categories to positions
    in `children`; a category it leaves out goes where missing goes. `missing` is a position too: by default the bigger child.
    """

    feature: str
    values: Sequence[float]
    children: "Sequence[Leaf | Split]"
    threshold: float = math.nan
    low: float = -math.inf
    branches: Mapping[Any, int] | None = None
    missing: int | None = None


class Tree(NamedTuple):
    """One tree as flat arrays; the root is node 0 and a child comes after its parent."""

    feature: NDArray[np.int32]  # -1: a leaf
    low: NDArray[np.float64]
    threshold: NDArray[np.float64]
    child_start: NDArray[np.int64]  # nodes + 1: where each node's slice of `children` starts
    children: NDArray[np.int32]  # numeric: two; categorical: one per category code, -1 where training never saw it
    missing_child: NDArray[np.int32]  # -1: the walk ends here
    values: NDArray[np.float64]  # nodes x classes

    @classmethod
    def of(cls, root: Leaf | Split, schema: Schema) -> "Tree":
        """Lay out a grown tree in preorder. Trees may be deeper than Python's stack, so nothing here recurses."""
        nodes, position = _preorder(root)
        tables: list[list[int]] = []
        missing: list[int] = []
        for node in nodes:
            table, way = _table(node, schema, position) if isinstance(node, Split) else ([], -1)
            tables.append(table)
            missing.append(way)
        splits = [node if isinstance(node, Split) else None for node in nodes]
        numeric = [node is not None and node.branches is None for node in splits]
        return cls(
            feature=np.array([-1 if node is None else schema.position(node.feature) for node in splits], np.int32),
            low=np.array([node.low if node and plain else -math.inf for node, plain in zip(splits, numeric, strict=True)], float),
            threshold=np.array([node.threshold if node and plain else 0.0 for node, plain in zip(splits, numeric, strict=True)], float),
            child_start=np.cumsum([0, *map(len, tables)]).astype(np.int64),
            children=np.array([child for table in tables for child in table], np.int32),
            missing_child=np.array(missing, np.int32),
            values=_values(nodes),
        )


def _preorder(root: Leaf | Split) -> tuple[list[Leaf | Split], dict[int, int]]:
    nodes: list[Leaf | Split] = []
    position: dict[int, int] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in position:
            raise ValueError("the same node stands in two places of a tree: every branch needs a node of its own")
        position[id(node)] = len(nodes)
        nodes.append(node)
        if isinstance(node, Split):
            stack.extend(reversed(node.children))
    return nodes, position


def _table(split: Split, schema: Schema, position: dict[int, int]) -> tuple[list[int], int]:
    """The slice of the child table of one split, and where missing goes."""
    feature = schema[split.feature]
    indices = [position[id(child)] for child in split.children]
    heaviest = max(range(len(indices)), key=lambda k: sum(split.children[k].values), default=ENDS)
    way = heaviest if split.missing is None else split.missing
    if way != ENDS and not 0 <= way < len(indices):
        raise ValueError(f"the split on {feature.name!r} sends missing to child {way}: it has {len(indices)} children")
    if feature.kind == CATEGORICAL:
        return _by_category(split, schema, indices), -1 if way == ENDS else indices[way]
    if split.branches is not None or len(indices) != 2:
        raise ValueError(f"the split on {feature.name!r}, a numeric feature, needs a threshold and two children")
    return indices, -1 if way == ENDS else indices[way]


def _by_category(split: Split, schema: Schema, indices: list[int]) -> list[int]:
    if split.branches is None:
        raise ValueError(f"the split on {split.feature!r}, a categorical feature, needs branches: which category leads to which child")
    table = [-1] * len(schema[split.feature].categories)
    for category, child in split.branches.items():
        if not 0 <= child < len(indices):
            raise ValueError(f"the split on {split.feature!r} sends {category!r} to child {child}: it has {len(indices)} children")
        if category is None:
            raise ValueError(f"the split on {split.feature!r} has a branch for None: say where missing goes with `missing`")
        table[int(schema.encode(split.feature, category))] = indices[child]
    return table


def _values(nodes: Sequence[Leaf | Split]) -> NDArray[np.float64]:
    if len({len(node.values) for node in nodes}) > 1:
        raise ValueError("the nodes of a tree have values for different numbers of classes: every node needs one value per class")
    return np.array([list(node.values) for node in nodes], np.float64)
