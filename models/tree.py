"""Growing trees as convenient objects, and one tree as flat arrays."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.marks import BIN, CUT, ENDS, EVERY_CATEGORY, LEAF, NEVER_SEEN, NO_TEST, NONE, ONE_CATEGORY
from frugal.models.schema import CATEGORICAL, Schema

MOST_CHILDREN = 2**15 - 1  # of one node: outcomes are int16
WHOLE = (np.uint8, np.uint16, np.uint32)  # what counts are kept in


@dataclass(slots=True)
class Leaf:
    """The end of a walk: one value per class (counts of training cases, or scores)."""

    values: Sequence[float]


@dataclass(slots=True)
class Split:
    """A question and where its answers lead.

    Numeric: `low < value <= threshold` leads to child 0, everything else to child 1. Categorical, one of two: `category` leads to child 0
    and every other category to child 1; or `branches` maps categories to positions in `children`, and a category it leaves out goes where
    missing goes. `missing` is a position too: by default the bigger child.
    """

    feature: str
    values: Sequence[float]
    children: "Sequence[Leaf | Split]"
    threshold: float = math.nan
    low: float = -math.inf
    category: Any = None
    branches: Mapping[Any, int] | None = None
    missing: int | None = None


class Tree(NamedTuple):
    """One tree as flat arrays; the root is node 0, the children of a node are adjacent and come after it: child = first_child + outcome."""

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

    @classmethod
    def of(cls, root: Leaf | Split, schema: Schema) -> "Tree":
        """Lay out a grown tree. Trees may be deeper than Python's stack, so nothing here recurses."""
        nodes, first = _families(root)
        tests = [_test(node, schema) for node in nodes]
        return cls(
            feature=np.array([schema.position(node.feature) if isinstance(node, Split) else LEAF for node in nodes], np.int32),
            kind=np.array([test.kind for test in tests], np.uint8),
            low=np.array([test.low for test in tests if test.kind == BIN], np.float64),
            threshold=np.array([test.threshold for test in tests], np.float64),
            first_child=np.array(first, np.int32),
            missing=np.array([_missing(node) if isinstance(node, Split) else ENDS for node in nodes], np.int16),
            outcomes=np.array([outcome for test in tests for outcome in test.outcomes], np.int16),
            **sparse(_values(nodes)),
        )


class _Test(NamedTuple):
    """What one node asks."""

    kind: int
    threshold: float = 0.0
    low: float = -math.inf
    outcomes: Sequence[int] = ()


def _families(root: Leaf | Split) -> tuple[list[Leaf | Split], list[int]]:
    """The nodes in their order, siblings together, a first child's descendants before its sibling's; and the first child of each."""
    nodes, first, seen = [root], [NONE], {id(root)}
    stack = [0]
    while stack:
        i = stack.pop()
        node = nodes[i]
        if not isinstance(node, Split):
            continue
        first[i] = len(nodes)
        for child in node.children:
            if id(child) in seen:
                raise ValueError("the same node stands in two places of a tree: every branch needs a node of its own")
            seen.add(id(child))
            nodes.append(child)
            first.append(NONE)
        stack.extend(range(len(nodes) - 1, first[i] - 1, -1))
    return nodes, first


def _test(node: Leaf | Split, schema: Schema) -> _Test:
    if not isinstance(node, Split):
        return _Test(NO_TEST)
    name, many = node.feature, len(node.children)
    if many > MOST_CHILDREN:
        raise ValueError(f"the split on {name!r} has {many:,} children: at most {MOST_CHILDREN:,} are possible")
    if schema[name].kind != CATEGORICAL:
        if node.branches is not None or node.category is not None or many != 2:
            raise ValueError(f"the split on {name!r}, a numeric feature, needs a threshold and two children")
        return _Test(CUT, node.threshold) if node.low == -math.inf else _Test(BIN, node.threshold, node.low)
    if (node.branches is None) == (node.category is None):
        raise ValueError(
            f"the split on {name!r}, a categorical feature, needs branches: which category leads to which child; or one `category`"
        )
    if node.branches is not None:
        return _Test(EVERY_CATEGORY, outcomes=_by_category(name, node.branches, many, schema))
    if many != 2:
        raise ValueError(f"the split on {name!r} asks for one category and has {many} children: expected two")
    return _Test(ONE_CATEGORY, float(schema.encode(name, node.category)))


def _missing(split: Split) -> int:
    many = len(split.children)
    if split.missing is None:
        return max(range(many), key=lambda k: sum(split.children[k].values), default=ENDS)
    if split.missing != ENDS and not 0 <= split.missing < many:
        raise ValueError(f"the split on {split.feature!r} sends missing to child {split.missing}: it has {many} children")
    return split.missing


def _by_category(name: str, branches: Mapping[Any, int], many: int, schema: Schema) -> list[int]:
    table = [NEVER_SEEN] * len(schema[name].categories)
    for category, child in branches.items():
        if not 0 <= child < many:
            raise ValueError(f"the split on {name!r} sends {category!r} to child {child}: it has {many} children")
        if category is None:
            raise ValueError(f"the split on {name!r} has a branch for None: say where missing goes with `missing`")
        table[int(schema.encode(name, category))] = child
    return table


def _values(nodes: Sequence[Leaf | Split]) -> NDArray[np.float64]:
    if len({len(node.values) for node in nodes}) > 1:
        raise ValueError("the nodes of a tree have values for different numbers of classes: every node needs one value per class")
    return np.array([list(node.values) for node in nodes], np.float64)


def sparse(values: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """The values of a tree, nodes x classes, without the zeros: `value_start`, `value_class` and `values` of a Tree."""
    node, found = np.nonzero(values)
    start = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.bincount(node, minlength=len(values)), dtype=np.int32, out=start[1:])
    return {
        "value_start": start,
        "value_class": found.astype(class_type(values.shape[1])),
        "values": compact(values[node, found]),
    }


def class_type(classes: int) -> Any:
    """The smallest type for the positions of so many classes."""
    return np.uint8 if classes <= 2**8 else np.uint16


def compact(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers: counts, being whole, in the smallest of WHOLE that holds all of them; everything else as float64.

    Examples
    --------
    >>> [compact(np.array(values)).dtype.name for values in ([1.0, 255.0], [256.0], [65536.0], [0.5], [-1.0], [2.0**32])]
    ['uint8', 'uint16', 'uint32', 'float64', 'float64', 'float64']
    """
    if not len(values):
        return np.empty(0, np.uint8)
    most = values.max()
    if values.min() >= 0 and most < 2**32 and (values.dtype.kind == "u" or (values == np.rint(values)).all()):
        return values.astype(next(kind for kind in WHOLE if most <= np.iinfo(kind).max), copy=False)
    return values.astype(np.float64, copy=False)
