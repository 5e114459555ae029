"""A LightGBM model as our Ensemble: trees in training order, scores summed, an unfinished tree votes with the node it stands on.

LightGBM keeps at every inner node the score it would have as a leaf, times the learning rate; the nodes of the first round hold the score
that training started from as well. The roots of later rounds hold what was left to learn for all cases together once all trees before had
their answers. Where those have not, it misleads, and it adds up (nursery with nothing asked: .10 for a class of .33): here they hold 0.
"""

from typing import Any

import lightgbm

from benchmarks.frontier_parts.tables import Data
from frugal.models import Ensemble, Leaf, Split


def as_ensemble(data: Data, booster: lightgbm.Booster, trees: int | None = None) -> Ensemble:
    """The first so many rounds, by default all."""
    each = booster.num_model_per_iteration()
    grown = booster.dump_model(num_iteration=trees)["tree_info"]
    roots = [_node(data, tree["tree_structure"], tree["tree_index"] % each) for tree in grown]
    for root in roots[each:]:
        if isinstance(root, Split):
            root.values = [0.0] * data.classes
    return Ensemble.of(roots, data.schema, data.costs, classes=list(range(data.classes)), vote="additive", order="sequential", stop="leaf")


def _node(data: Data, told: dict[str, Any], score: int) -> Split | Leaf:
    """A node and what is below it; trees of 31 leaves are never too deep for Python."""
    if "split_feature" not in told:
        return Leaf(_scores(data, told["leaf_value"], score))
    children = [_node(data, told[side], score) for side in ("left_child", "right_child")]
    name, values = data.names[told["split_feature"]], _scores(data, told["internal_value"], score)
    if told["decision_type"] == "==":  # one of these: to the left; others and missing: to the right
        first = {int(code) for code in told["threshold"].split("||")}
        size = int(data.sizes[told["split_feature"]])
        branches = {code: 0 if code in first else 1 for code in range(size)}
        return Split(name, values, children, branches=branches, missing=1)
    return Split(name, values, children, threshold=told["threshold"], missing=0 if _missing_goes_left(told) else 1)


def _missing_goes_left(told: dict[str, Any]) -> bool:
    if told["missing_type"] == "NaN":
        return bool(told["default_left"])
    return told["threshold"] >= 0  # training saw none missing: it counts as 0


def _scores(data: Data, value: float, score: int) -> list[float]:
    """With two classes the first one's score is always 0."""
    return [0.0, value] if data.classes == 2 else [value if k == score else 0.0 for k in range(data.classes)]
