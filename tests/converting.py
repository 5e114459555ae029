"""A scikit-learn forest as an ensemble: an oracle that shares no code with ours."""

from typing import Any

import numpy as np

from frugal.models import Ensemble, Feature, Schema, Tree


def from_sklearn(forest: Any, costs: Any = None, **settings: Any) -> Ensemble:
    """The forest averages its trees' leaf probabilities: the vote "counts" over nodes that hold probabilities."""
    schema = Schema(Feature(f"f{i}") for i in range(forest.n_features_in_))
    trees = [_tree(estimator.tree_) for estimator in forest.estimators_]
    return Ensemble.of(trees, schema, costs, classes=forest.classes_.tolist(), vote="counts", **settings)


def _tree(grown: Any) -> Tree:
    split = grown.children_left >= 0
    left, right = grown.children_left[split], grown.children_right[split]
    missing_left = grown.missing_go_to_left[split].astype(bool) if hasattr(grown, "missing_go_to_left") else np.zeros(len(left), bool)
    missing = np.full(len(split), -1)
    missing[split] = np.where(missing_left, left, right)
    return Tree(
        feature=np.where(split, grown.feature, -1).astype(np.int32),
        low=np.full(len(split), -np.inf),
        threshold=np.where(split, np.minimum(grown.threshold, np.finfo(float).max), 0.0),  # inf: all that is not missing
        child_start=np.concatenate([[0], np.cumsum(np.where(split, 2, 0))]),
        children=np.column_stack([left, right]).ravel().astype(np.int32),
        missing_child=missing.astype(np.int32),
        values=grown.value[:, 0, :] / grown.value[:, 0, :].sum(axis=1, keepdims=True),
    )
