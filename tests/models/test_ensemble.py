"""The flat form: what is refused before anything walks it, and trees as text."""

import re

import numpy as np
import pytest

from frugal.models import Ensemble, Feature, Leaf, Schema, Split, decide
from frugal.models.flat import Flat
from frugal.models.tree import Tree

SCHEMA = Schema([Feature("size"), Feature("colour", "categorical", ("red", "green", "blue"))])


def tree():
    colour = Split("colour", [1, 3], branches={"red": 0, "green": 1, "blue": 1}, children=[Leaf([1, 0]), Leaf([0, 3])])
    return Split("size", [6, 4], threshold=2.5, children=[Leaf([5, 1]), colour])


def flat(**changes):
    arrays = {name: array.copy() for name, array in Flat.of([Tree.of(tree(), SCHEMA)])._asdict().items()}
    for name, change in changes.items():
        for place, value in change.items():
            arrays[name][place] = value
    return Flat(**arrays)


def build(given, **settings):
    return Ensemble(given, SCHEMA, [1, 1], **({"classes": ["a", "b"], "vote": "counts"} | settings))


def test_nodes_lie_in_preorder_and_children_after_parents():
    built = build(flat()).flat
    assert built.feature.tolist() == [0, -1, 1, -1, -1]
    assert built.children.tolist() == [1, 2, 3, 4, 4]
    assert built.child_start.tolist() == [0, 2, 2, 5, 5, 5]
    assert built.missing_child.tolist() == [1, -1, 4, -1, -1]
    assert not built.values.flags.writeable


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature": {0: 2}}, "node 0 splits on a feature that the schema does not have"),
        ({"feature": {0: -2}}, "node 0 splits on a feature that the schema does not have"),
        ({"feature": {0: 1}}, "node 0 has a slice of the child table of the wrong size"),
        ({"feature": {1: 0}}, "node 1 has a slice of the child table of the wrong size"),
        (
            {"children": {1: 0}},
            "node 0 has a child that is not further on in the same tree: a cycle, or an index out of range",
        ),
        ({"children": {2: 2}}, "node 2 has a child that is not further on in the same tree"),
        ({"children": {2: 99}}, "node 2 has a child that is not further on in the same tree"),
        ({"children": {0: -1}}, "node 0 has a child that is not further on in the same tree"),
        ({"missing_child": {0: -7}}, "node 0 has a child that is not further on in the same tree"),
        ({"children": {2: 1}}, "node 2 has a child that is not further on in the same tree"),
        ({"children": {0: 3}, "missing_child": {0: 3}}, "node 1 is no node's child and no root"),
        ({"missing_child": {0: 3}}, "node 2 has a child that has another parent already"),
        ({"children": {2: 4}}, "node 3 is no node's child and no root"),
        ({"missing_child": {1: 3}}, "node 1 has a slice of the child table of the wrong size"),
        ({"threshold": {0: np.nan}}, "node 0 has a threshold or value that is not a finite number"),
        ({"threshold": {0: np.inf}}, "node 0 has a threshold or value that is not a finite number"),
        ({"low": {0: np.inf}}, "node 0 has a low that is neither finite nor -inf"),
        ({"low": {0: np.nan}}, "node 0 has a low that is neither finite nor -inf"),
        ({"values": {(4, 1): np.nan}}, "node 4 has a threshold or value that is not a finite number"),
        ({"values": {(4, 1): -1}}, "node 4 has a negative value: counts are at least 0"),
        ({"roots": {0: 1}}, "roots must start at 0, rise, and be nodes"),
        ({"child_start": {1: 9}}, "child_start must start at 0, never fall, and end at the size of the child table"),
        ({"weights": {0: 0}}, "every tree's weight must be a finite number above 0"),
        ({"weights": {0: np.nan}}, "every tree's weight must be a finite number above 0"),
        ({"values": {(4, 1): 1e308}}, "the values of a node together come to 1e+308: expected 0, or a number from 1e-100 to 1e+100"),
        ({"weights": {0: 1e-280}}, "the weights together come to 1e-280"),
        ({"values": {(4, 1): 1e99}, "weights": {0: 1e10}}, "values times weights come to 1e+109"),
    ],
)
def test_arrays_that_cannot_be_walked_are_refused(changes, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        build(flat(**changes))


def test_categorical_branches_that_lead_nowhere_are_refused():
    with pytest.raises(ValueError, match=r"node 2 is a split without any child|node 3 is no node's child"):
        build(flat(children={2: -1, 3: -1, 4: -1}, missing_child={2: -1}))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vote": "plurality"}, "vote is 'plurality': expected one of 'majority', 'counts', 'weighted', 'additive'"),
        ({"order": "cheapest"}, "order is 'cheapest': expected one of 'sequential', 'votes'"),
        ({"stop": "never"}, "stop is 'never': expected one of 'leaf', 'decided'"),
        ({"delayed": "later"}, "delayed is 'later': expected one of 'wait', 'ahead'"),
        ({"classes": []}, "an ensemble needs at least one class"),
        ({"classes": ["a", "a"]}, "the class 'a' is there more than once"),
        ({"classes": ["a", None]}, "the class None: expected text of at most 200 characters, a number, true or false"),
        ({"classes": ["a", float("nan")]}, "the class nan: expected text"),
        ({"classes": ["a"]}, "values has shape (5, 2): expected one value per node and class, (5, 1)"),
        ({"penalties": [[0, 1]]}, "penalties: expected a 2 x 2 matrix"),
        ({"penalties": [[0, -1], [1, 0]]}, "penalties: expected a 2 x 2 matrix"),
        ({"penalties": [[0, 1e101], [1, 0]]}, "penalties: expected a 2 x 2 matrix"),
        ({"classes": "ab"}, "classes is 'ab': expected a sequence of labels"),
        (
            {"penalties": [[1, 1], [1, 0]]},
            "penalties: expected a 2 x 2 matrix of numbers from 0 to 1e+100, with zeros on the diagonal",
        ),
        ({"metrics": {"error": float("nan")}}, "metrics must hold only what JSON can"),
        ({"parameters": {"f": print}}, "parameters must hold only what JSON can"),
        ({"learner": 3}, "learner is 3: expected its name or None"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        build(flat(), **settings)


@pytest.mark.parametrize(
    ("grown", "message"),
    [
        (Split("weight", [1, 1], threshold=1, children=[Leaf([1, 0]), Leaf([0, 1])]), "no feature 'weight'"),
        (
            Split("size", [1, 1], threshold=1, children=[Leaf([1, 0])]),
            "the split on 'size', a numeric feature, needs a threshold and two children",
        ),
        (
            Split("size", [1, 1], children=[Leaf([1, 0]), Leaf([0, 1])]),
            "node 0 has a threshold or value that is not a finite number",
        ),
        (
            Split("colour", [1, 1], threshold=1, children=[Leaf([1, 0]), Leaf([0, 1])]),
            "the split on 'colour', a categorical feature, needs branches",
        ),
        (Split("colour", [1, 1], branches={"pink": 0}, children=[Leaf([1, 0])]), "'colour' is 'pink': expected one of"),
        (
            Split("colour", [1, 1], branches={"red": 1}, children=[Leaf([1, 0])]),
            "the split on 'colour' sends 'red' to child 1: it has 1 children",
        ),
        (
            Split("size", [1, 1], threshold=1, missing=2, children=[Leaf([1, 0]), Leaf([0, 1])]),
            "the split on 'size' sends missing to child 2",
        ),
        (Leaf([1, 2, 3]), "values has shape (1, 3)"),
        (
            Split("size", [1, 1], threshold=1, children=[Leaf([1]), Leaf([0, 1])]),
            "the nodes of a tree have values for different numbers",
        ),
        (
            Split("size", [1, 1], threshold=1, children=[leaf := Leaf([1, 0]), leaf]),
            "the same node stands in two places of a tree",
        ),
    ],
)
def test_wrong_trees_are_named(grown, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        Ensemble.of([grown], SCHEMA, classes=["a", "b"], vote="counts")


def test_an_ensemble_needs_a_tree_and_majority_needs_equal_weights():
    with pytest.raises(ValueError, match="an ensemble needs at least one tree"):
        Ensemble.of([], SCHEMA, classes=["a", "b"], vote="counts")
    with pytest.raises(ValueError, match="under the vote 'majority' every tree has the weight 1: use 'weighted'"):
        Ensemble.of([tree()], SCHEMA, classes=["a", "b"], vote="majority", weights=[2])


def test_a_tree_and_a_path_as_text():
    ensemble = build(flat())
    assert ensemble.text(0).splitlines() == [
        "size <= 2.5?  [6, 4]",
        "  yes, missing: a  [5, 1]",
        "  no: colour?  [1, 3]",
        "    red: a  [1, 0]",
        "    green, blue, missing: b  [0, 3]",
    ]
    assert ensemble.path_text(0, {"size": 7, "colour": "blue"}).splitlines() == [
        "size <= 2.5?  [6, 4]  size = 7: no",
        "colour?  [1, 3]  colour = blue: blue",
        "b  [0, 3]",
    ]
    assert ensemble.path_text(0, {"size": 7}).endswith("colour?  [1, 3]  waiting for colour")
    assert ensemble.path_text(0, {"size": None}).splitlines()[0].endswith("size = unavailable: missing")
    with pytest.raises(IndexError, match="there is no tree 1: the ensemble has trees 0 to 0"):
        ensemble.text(1)


def test_only_features_that_trees_ask_for_are_used():
    stump = Split("size", [1, 1], threshold=1, children=[Leaf([1, 0]), Leaf([0, 1])])
    ensemble = Ensemble.of([stump], SCHEMA, classes=["a", "b"], vote="counts")
    assert ensemble.used == {"size"}
    assert decide(ensemble, {"colour": "red"}).feature == "size"
