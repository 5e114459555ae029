"""The flat form: what is refused before anything walks it, and trees as text."""

import re

import numpy as np
import pytest

from frugal.models import Ensemble, Feature, Leaf, Schema, Split, decide
from frugal.models.flat import Flat, Stack
from frugal.models.kernels.marks import BIN, CUT, EVERY_CATEGORY, NO_TEST, ONE_CATEGORY
from frugal.models.tree import Tree

SCHEMA = Schema([Feature("size"), Feature("colour", "categorical", ("red", "green", "blue"))])


def tree():
    colour = Split("colour", [1, 3], branches={"red": 0, "green": 1, "blue": 1}, children=[Leaf([1, 0]), Leaf([0, 3])])
    return Split("size", [6, 4], threshold=2.5, children=[Leaf([5, 1]), colour])


def flat(**changes):
    arrays = {name: array.copy() for name, array in Flat.of([Tree.of(tree(), SCHEMA)])._asdict().items()}
    if "values" in changes:
        arrays["values"] = arrays["values"].astype(float)
    for name, change in changes.items():
        for place, value in change.items():
            arrays[name][place] = value
    return Flat(**arrays)


def build(given, **settings):
    return Ensemble(given, SCHEMA, [1, 1], **({"classes": ["a", "b"], "vote": "counts"} | settings))


def test_children_are_adjacent_and_after_their_parents():
    built = build(flat()).flat
    assert built.feature.tolist() == [0, -1, 1, -1, -1]
    assert built.kind.tolist() == [CUT, NO_TEST, EVERY_CATEGORY, NO_TEST, NO_TEST]
    assert built.first_child.tolist() == [1, -1, 3, -1, -1]
    assert built.outcomes.tolist() == [0, 1, 1]
    assert built.missing.tolist() == [0, -1, 1, -1, -1]
    assert not built.values.flags.writeable
    leaf = Leaf([1, 0])
    deep = Split("size", [3, 0], threshold=1, children=[Split("size", [2, 0], threshold=0, children=[leaf, Leaf([1, 0])]), Leaf([1, 0])])
    assert Tree.of(deep, SCHEMA).first_child.tolist() == [1, 3, -1, -1, -1]


def test_values_are_kept_without_zeros_in_the_fewest_bytes():
    built = build(flat()).flat
    assert (built.value_start.tolist(), built.value_class.tolist()) == ([0, 2, 4, 6, 7, 8], [0, 1, 0, 1, 0, 1, 0, 1])
    assert (built.values.tolist(), built.values.dtype) == ([6, 4, 5, 1, 1, 3, 1, 3], np.uint8)
    assert built.value_class.dtype == np.uint8
    for greatest, dtype in ((255, np.uint8), (256, np.uint16), (2**16, np.uint32), (2**32, np.float64), (0.5, np.float64)):
        trees = [Leaf([1, 0]), Leaf([0, greatest]), Leaf([3, 0])]
        built = Ensemble.of(trees, SCHEMA, classes=["a", "b"], vote="counts").flat
        assert (built.values.dtype, built.values.tolist()) == (dtype, [1, greatest, 3])
        assert built.dense(1, 2).tolist() == [0, greatest]


def test_the_class_of_a_node_is_the_first_of_its_greatest_value_though_zeros_are_not_kept():
    for values, label in (([-1, 0, 0], 1), ([-1, -2, 0], 2), ([0, -1, 0], 0), ([-2, -1, -3], 1), ([0, 0, 1], 2), ([0, 0, 0], 0)):
        ensemble = Ensemble.of([Leaf(values)], SCHEMA, classes=list("abc"), vote="additive")
        assert ensemble.served.label.tolist() == [label]


def test_what_may_come_below_a_node_is_kept_in_bits():
    leaves = [Leaf([int(c == k) for c in range(20)]) for k in (0, 9, 9)]
    inner = Split("size", [0] * 9 + [2] + [0] * 10, threshold=2, children=leaves[1:])
    root = Split("size", [1] + [0] * 8 + [2] + [0] * 10, threshold=1, children=[leaves[0], inner])
    served = Ensemble.of([root], SCHEMA, classes=range(20), vote="majority").served
    assert served.label.tolist() == [~9, 0, 9, 9, 9]
    assert served.possible.tolist() == [[1, 2, 0], [1, 0, 0], [0, 2, 0], [0, 2, 0], [0, 2, 0]]


def test_a_test_for_one_category_needs_no_table():
    many = Schema([Feature("word", "categorical", tuple(f"w{k}" for k in range(10_000)))])
    one = Split("word", [5, 5], category="w77", children=[Leaf([5, 0]), Leaf([0, 5])], missing=1)
    ensemble = Ensemble.of([one], many, classes=["a", "b"], vote="counts")
    assert len(ensemble.flat.outcomes) == 0
    assert [decide(ensemble, {"word": word}).label for word in ("w77", "w76", "w78", "w0", "w9999", None)] == list("abbbbb")
    assert ensemble.text(0).splitlines() == ["word is w77?  [5, 5]", "  yes: a  [5, 0]", "  no, missing: b  [0, 5]"]
    assert ensemble.path_text(0, {"word": "w76"}).splitlines()[0] == "word is w77?  [5, 5]  word = w76: no"


def test_arrays_that_can_be_written_are_taken_over_and_others_copied():
    given = flat()
    ensemble = build(given)
    assert np.shares_memory(ensemble.flat.threshold, given.threshold)
    assert np.shares_memory(ensemble.served.values, given.values)
    assert np.shares_memory(ensemble.with_settings(order="sequential").served.values, given.values)
    assert not np.shares_memory(build(ensemble.flat).flat.threshold, given.threshold)


def test_a_forest_that_grows_keeps_what_was_taken_of_it():
    stack = Stack()
    flats = []
    for size in (1, 300, 70_000):  # each needs a wider type than those before
        stack.add(Tree.of(Split("size", [size, 0], threshold=size, children=[Leaf([size, 0]), Leaf([0, 0])]), SCHEMA))
        flats.append(stack.flat())
    assert [len(one.roots) for one in flats] == [1, 2, 3]
    for trees, one in enumerate(flats, 1):
        part = flats[-1].first(trees, SCHEMA.arity)
        assert all(np.array_equal(a, b) for a, b in zip(one, part, strict=True))
    assert flats[-1].first_child.tolist() == [1, -1, -1, 4, -1, -1, 7, -1, -1]
    assert flats[-1].values.tolist() == [1, 1, 300, 300, 70_000, 70_000]


def test_the_first_trees_have_their_own_lows_and_tables():
    def both(k):
        second = Split("size", [1, 1], low=k, threshold=k + 1, children=[Leaf([1, 0]), Leaf([0, 1])])
        return Split("colour", [1, 1], branches={"red": k % 2}, children=[Leaf([1, 0]), second], missing=1 - k % 2)

    whole = Ensemble.of([both(k) for k in range(4)], SCHEMA, classes=["a", "b"], vote="counts")
    for trees in range(1, 5):
        again = Ensemble.of([both(k) for k in range(trees)], SCHEMA, classes=["a", "b"], vote="counts")
        assert all(np.array_equal(a, b) for a, b in zip(whole.prefix(trees).flat, again.flat, strict=True))
        assert whole.text(trees - 1) == again.text(trees - 1)
    assert "2 < size <= 3?" in whole.text(2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature": {0: 2}}, "node 0 splits on a feature that the schema does not have"),
        ({"feature": {0: -2}}, "node 0 splits on a feature that the schema does not have"),
        ({"feature": {0: 1}}, "node 0 has a test that its feature cannot take"),
        ({"feature": {1: 0}}, "node 1 has a test that its feature cannot take"),
        ({"feature": {2: 0}}, "node 2 has a test that its feature cannot take"),
        ({"kind": {1: CUT}}, "node 1 has a test that its feature cannot take"),
        ({"kind": {0: EVERY_CATEGORY}}, "node 0 has a test that its feature cannot take"),
        ({"kind": {0: NO_TEST}}, "node 0 has a test that its feature cannot take"),
        ({"kind": {0: 5}}, "node 0 has a test that its feature cannot take"),
        ({"kind": {0: BIN}}, "node 0 finds no low, or no table of outcomes, left for it"),
        ({"kind": {2: ONE_CATEGORY}, "threshold": {2: 3}}, "node 2 tests for a category that its feature does not have"),
        ({"kind": {2: ONE_CATEGORY}, "threshold": {2: -1}}, "node 2 tests for a category that its feature does not have"),
        ({"kind": {2: ONE_CATEGORY}, "threshold": {2: 0.5}}, "node 2 tests for a category that its feature does not have"),
        ({"kind": {2: ONE_CATEGORY}, "threshold": {2: 1}}, "there are more lows or tables of outcomes than nodes that use them"),
        (
            {"first_child": {0: 0}},
            "node 0 has a child that is not further on in the same tree: a cycle, or an index out of range",
        ),
        ({"first_child": {2: 2}}, "node 2 has a child that is not further on in the same tree"),
        ({"first_child": {2: 4}}, "node 2 has a child that is not further on in the same tree"),
        ({"first_child": {2: 2**31 - 1}}, "node 2 has a child that is not further on in the same tree"),
        ({"first_child": {0: -1}}, "node 0 has a child that is not further on in the same tree"),
        ({"first_child": {1: 3}}, "node 1 is a leaf that has a child or a way for missing values"),
        ({"missing": {1: 0}}, "node 1 is a leaf that has a child or a way for missing values"),
        ({"outcomes": {0: 2}}, "node 2 has a child that is not further on in the same tree"),
        ({"outcomes": {0: -2}}, "node 2 has a child that is not further on in the same tree"),
        ({"missing": {0: -7}}, "node 0 sends missing to an outcome that it does not have"),
        ({"missing": {0: 2}}, "node 0 sends missing to an outcome that it does not have"),
        ({"missing": {2: 2}}, "node 2 has a child that is not further on in the same tree"),
        ({"first_child": {0: 2}}, "node 1 is no node's child and no root"),
        ({"first_child": {0: 3}}, "node 1 is no node's child and no root"),
        ({"outcomes": {0: 1}}, "node 3 is no node's child and no root"),
        ({"threshold": {0: np.nan}}, "node 0 has a threshold or value that is not a finite number"),
        ({"threshold": {0: np.inf}}, "node 0 has a threshold or value that is not a finite number"),
        ({"values": {7: np.nan}}, "node 4 has a threshold or value that is not a finite number"),
        ({"values": {7: -1}}, "node 4 has a negative value: counts are at least 0"),
        ({"value_class": {7: 2}}, "node 4 has values whose classes do not rise, or that the ensemble does not have"),
        ({"value_class": {0: 1}}, "node 0 has values whose classes do not rise"),
        ({"value_class": {0: 1, 1: 0}}, "node 0 has values whose classes do not rise"),
        ({"roots": {0: 1}}, "roots must start at 0, rise, and be nodes"),
        ({"value_start": {1: 9}}, "value_start must start at 0, never fall, and end at the number of values"),
        ({"value_start": {5: 9}}, "value_start must start at 0, never fall, and end at the number of values"),
        ({"weights": {0: 0}}, "every tree's weight must be a finite number above 0"),
        ({"weights": {0: np.nan}}, "every tree's weight must be a finite number above 0"),
        ({"values": {7: 1e308}}, "the values of a node together come to 1e+308: expected 0, or a number from 1e-100 to 1e+100"),
        ({"weights": {0: 1e-280}}, "the weights together come to 1e-280"),
        ({"values": {7: 1e99}, "weights": {0: 1e10}}, "values times weights come to 1e+109"),
    ],
)
def test_arrays_that_cannot_be_walked_are_refused(changes, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        build(flat(**changes))


def test_categorical_branches_that_lead_nowhere_are_refused():
    with pytest.raises(ValueError, match="node 2 is a split without any child"):
        build(flat(outcomes={0: -1, 1: -1, 2: -1}, missing={2: -1}))


def test_a_node_has_one_parent():
    def stump():
        return Split("size", [1, 1], threshold=1, children=[Leaf([1, 0]), Leaf([0, 1])])

    built = Flat.of([Tree.of(Split("size", [2, 2], threshold=1, children=[stump(), stump()]), SCHEMA)])
    built.first_child[2] = built.first_child[1]
    with pytest.raises(ValueError, match="node 2 has a child that has another parent already"):
        build(built)


@pytest.mark.parametrize("low", [np.inf, -np.inf, np.nan])
def test_a_bin_has_a_finite_low(low):
    built = Flat.of([Tree.of(Split("size", [2, 2], low=0, threshold=1, children=[Leaf([2, 0]), Leaf([0, 2])]), SCHEMA)])
    built.low[0] = low
    with pytest.raises(ValueError, match="node 0 has a low that is not a finite number"):
        build(built)


@pytest.mark.parametrize("name", ["kind", "threshold", "first_child", "missing", "value_start", "value_class", "weights"])
def test_arrays_of_the_wrong_size_are_refused(name):
    short = flat()._replace(**{name: getattr(flat(), name)[:-1].copy()})
    with pytest.raises(ValueError, match=rf"{name} has shape \(\d,?\): expected|value_start must"):
        build(short)


@pytest.mark.parametrize(("vote", "classes"), [("majority", 2**16), ("counts", 1000)])
def test_what_is_decided_is_not_worth_a_gibibyte(monkeypatch, vote, classes):
    monkeypatch.setattr("frugal.models.votes.MOST_BYTES", 2**14)
    stump = Split("size", [2] + [0] * (classes - 1), threshold=1, children=[Leaf([1] + [0] * (classes - 1)) for _ in "ab"])
    with pytest.raises(ValueError, match=r"the label of 3 nodes and [\d,]+ classes is decided takes [\d,]+ bytes, where 16,384 are"):
        Ensemble.of([stump], SCHEMA, classes=range(classes), vote=vote)
    assert len(Ensemble.of([stump], SCHEMA, classes=range(classes), vote=vote, stop="leaf")) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vote": "plurality"}, "vote is 'plurality': expected one of 'majority', 'counts', 'weighted', 'additive'"),
        ({"order": "cheapest"}, "order is 'cheapest': expected one of 'sequential', 'votes'"),
        ({"stop": "never"}, "stop is 'never': expected one of 'leaf', 'decided'"),
        ({"delayed": "later"}, "delayed is 'later': expected one of 'wait', 'ahead'"),
        ({"classes": []}, "0 classes: an ensemble has at least one class and at most 65,536"),
        ({"classes": range(2**16 + 1)}, "65,537 classes: an ensemble has at least one class and at most 65,536"),
        ({"classes": ["a", "a"]}, "the class 'a' is there more than once"),
        ({"classes": ["a", None]}, "the class None: expected text of at most 200 characters, a number, true or false"),
        ({"classes": ["a", float("nan")]}, "the class nan: expected text"),
        ({"classes": ["a"]}, "node 0 has values whose classes do not rise, or that the ensemble does not have"),
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
        (Leaf([1, 2, 3]), "a tree has values for 3 classes: the ensemble has 2"),
        (
            Split("colour", [1, 1], category="red", children=[Leaf([1, 0])]),
            "the split on 'colour' asks for one category and has 1 children: expected two",
        ),
        (
            Split("colour", [1, 1], category="red", branches={"red": 0}, children=[Leaf([1, 0]), Leaf([0, 1])]),
            "the split on 'colour', a categorical feature, needs branches",
        ),
        (Split("colour", [1, 1], category="pink", children=[Leaf([1, 0]), Leaf([0, 1])]), "'colour' is 'pink': expected one of"),
        (
            Split("size", [1, 1], category="red", threshold=1, children=[Leaf([1, 0]), Leaf([0, 1])]),
            "the split on 'size', a numeric feature, needs a threshold and two children",
        ),
        (
            Split("colour", [1, 1], branches={"red": 0}, children=[Leaf([1, 0]) for _ in range(2**15)]),
            "the split on 'colour' has 32,768 children: at most 32,767 are possible",
        ),
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
