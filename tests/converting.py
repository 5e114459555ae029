"""A scikit-learn forest as an ensemble: an oracle that shares no code with ours."""

from typing import Any

import numpy as np

from frugal.models import Ensemble, Feature, Schema, Tree
from frugal.models.kernels.marks import CUT, NO_TEST
from frugal.models.tree import sparse


def from_sklearn(forest: Any, costs: Any = None, **settings: Any) -> Ensemble:
    """The forest averages its trees' leaf probabilities: the vote "counts" over nodes that hold probabilities."""
    schema = Schema(Feature(f"f{i}") for i in range(forest.n_features_in_))
    trees = [_tree(estimator.tree_) for estimator in forest.estimators_]
    return Ensemble.of(trees, schema, costs, classes=forest.classes_.tolist(), vote="counts", **settings)


def _tree(grown: Any) -> Tree:
    """Theirs lie in preorder, ours with siblings side by side: the children of the k-th split are 2k + 1 and 2k + 2."""
    split = grown.children_left >= 0
    pairs = 1 + 2 * np.arange(split.sum())
    moved = np.zeros(len(split), int)
    moved[grown.children_left[split]], moved[grown.children_right[split]] = pairs, pairs + 1
    there = np.argsort(moved)
    first = np.full(len(split), -1)
    first[moved[split]] = pairs
    left = grown.missing_go_to_left.astype(bool) if hasattr(grown, "missing_go_to_left") else np.zeros(len(split), bool)
    return Tree(
        feature=np.where(split, grown.feature, -1)[there].astype(np.int32),
        kind=np.where(split, CUT, NO_TEST)[there].astype(np.uint8),
        low=np.empty(0),
        threshold=np.where(split, np.minimum(grown.threshold, np.finfo(float).max), 0.0)[there],  # inf: all that is not missing
        first_child=first.astype(np.int32),
        missing=np.where(split, np.where(left, 0, 1), -1)[there].astype(np.int16),
        outcomes=np.empty(0, np.int16),
        **sparse((grown.value[:, 0, :] / grown.value[:, 0, :].sum(axis=1, keepdims=True))[there]),
    )
