"""Pruning: beside its naive twins, the papers' numbers and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from frugal.models import CostModel, Ensemble, Feature, Leaf, Price, Schema, Split, acquire
from frugal.models.growing import pruning
from frugal.models.kernels.growth.pruning import all_expected_errors, weakest_links
from frugal.models.tree import Tree
from tests.naive import pruning as naive

FEATURES = ("a", "b", "c")
SCHEMA = Schema([Feature("a"), Feature("b", "categorical", ("x", "y", "z")), Feature("c")])
COSTS = CostModel([Price("a", 4), Price("b", 6, "g", 2), Price("c", 5, "g", 1.5)])


@st.composite
def trees(draw, depth=4):
    """(a nested tree, the same as a Split): inner counts are the sums of the children's."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        counts = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 12, 30]), min_size=3, max_size=3).filter(any))  # purer than their parents
        return counts, Leaf(counts)
    name = draw(st.sampled_from(FEATURES))
    children = [draw(trees(depth - 1)) for _ in range(3 if name == "b" else 2)]
    counts = [sum(values) for values in zip(*(totals(nested) for nested, _ in children), strict=True)]
    below = [split for _, split in children]
    if name == "b":
        return (name, counts, [nested for nested, _ in children]), Split(name, counts, below, branches={"x": 0, "y": 1, "z": 2})
    return (name, counts, [nested for nested, _ in children]), Split(name, counts, below, threshold=1.5)


def totals(nested):
    return nested if isinstance(nested, list) else nested[1]


def nested(tree, i=0):
    counts = [0] * 3
    for k in range(tree.value_start[i], tree.value_start[i + 1]):
        counts[tree.value_class[k]] = int(tree.values[k])
    if tree.feature[i] < 0:
        return counts
    children = range(tree.first_child[i], tree.first_child[i] + (3 if tree.feature[i] == 1 else 2))
    return (FEATURES[tree.feature[i]], counts, [nested(tree, j) for j in children])


@pytest.mark.parametrize(("many", "wrong"), [(1, 0), (50, 0), (100, 5), (150, 50), (7, 6), (4, 4)])
@pytest.mark.parametrize("cf", [0.05, 0.25, 0.5])
def test_expected_errors_are_the_limit_of_the_binomial(many, wrong, cf):
    found = all_expected_errors(np.array([float(many)]), np.array([float(wrong)]), cf)[0]
    assert found == pytest.approx(naive.upper_errors(many, wrong, cf) if wrong < many else many, rel=1e-9)


def test_expected_errors_of_the_paper():
    """ACT, Figure 7: 7.3, 1.4 and 54.1, read off a normal limit; the exact ones are 7.33, 1.37 and 54.50."""
    found = all_expected_errors(np.array([100.0, 50, 150]), np.array([5.0, 0, 50]), 0.25)
    assert found == pytest.approx([7.33, 1.37, 54.50], abs=0.005)


def test_expected_errors_of_parts_of_cases_lie_between_those_of_whole_ones():
    many, wrong = np.full(21, 10.0), np.linspace(0, 2, 21)
    found = all_expected_errors(many, wrong, 0.25)
    assert (np.diff(found) > 0).all()
    assert found[[0, 10, 20]] == pytest.approx([naive.upper_errors(10, k, 0.25) for k in range(3)])


@given(trees(), st.sampled_from([0.1, 0.25, 0.5]))
def test_by_errors_equals_its_twin(drawn, cf):
    ours, split = drawn

    def as_leaf(counts):
        return naive.upper_errors(sum(counts), sum(counts) - max(counts), cf) if max(counts) else 0.0

    found = pruning.by_errors(Tree.of(split, SCHEMA), SCHEMA, cf)
    assert nested(found) == naive.pruned(ours, as_leaf, lambda *_: 0.0, pruning.SLACK)[0]
    served(found)


MATRIX = [[0, 30, 80], [20, 0, 10], [5, 60, 0]]


@given(trees(), st.sampled_from([0.2, 0.25]), st.sampled_from([(), (1,), (0, 2)]))
def test_by_cost_equals_its_twin(drawn, cf, bought):
    ours, split = drawn

    def as_leaf(counts):
        said = min(range(3), key=lambda c: sum(n * p for n, p in zip(counts, MATRIX[c], strict=True)))
        others = sum(counts) - counts[said]
        each = sum((counts[i] + 1) * MATRIX[said][i] for i in range(3) if i != said) / (others + 2)
        return naive.upper_errors(sum(counts), others, cf) * each

    def asking(name, counts, path):
        return sum(counts) * COSTS.marginal(name, {FEATURES[f] for f in bought} | set(path))

    tree, cost = naive.pruned(ours, as_leaf, asking)
    found, mean = pruning.by_cost(Tree.of(split, SCHEMA), SCHEMA, COSTS, np.array(MATRIX, float), cf, bought)
    assert nested(found) == tree
    assert mean == pytest.approx(cost / sum(totals(ours)))
    served(found)


def test_what_was_bought_before_makes_questions_worth_asking():
    split = Split("a", [10, 10, 0], [Leaf([9, 1, 0]), Leaf([1, 9, 0])], threshold=1.5)
    matrix = np.full((3, 3), 8.0) - 8 * np.eye(3)
    tree = Tree.of(split, SCHEMA)
    assert len(pruning.by_cost(tree, SCHEMA, COSTS, matrix, 0.25)[0].feature) == 1
    assert len(pruning.by_cost(tree, SCHEMA, COSTS, matrix, 0.25, bought=(0,))[0].feature) == 3


@given(trees())
def test_cost_complexity_equals_its_twin(drawn):
    ours, split = drawn
    tree, total = Tree.of(split, SCHEMA), sum(totals(ours))
    found = pruning.strengths(tree)
    path = naive.weakest_path(ours, lambda counts: (sum(counts) - max(counts)) / total)
    for k, (strength, left) in enumerate(path):
        just = strength + 1e-9 if k else -1.0
        assert nested(pruning.at_strength(tree, SCHEMA, found, just)) == left


def test_cost_complexity_is_scikit_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=400) > 1).astype(int)
    grown = DecisionTreeClassifier(random_state=0).fit(X, y).tree_
    parent = np.full(grown.node_count, -1, np.int32)
    for side in (grown.children_left, grown.children_right):
        parent[side[side >= 0]] = np.flatnonzero(side >= 0)
    feature = np.where(grown.children_left < 0, -1, grown.feature).astype(np.int32)
    wrong = grown.impurity * grown.weighted_n_node_samples / 400
    found = weakest_links(feature, parent, wrong, (feature >= 0).astype(float))
    theirs = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X, y)
    for alpha in theirs.ccp_alphas:
        pruned = DecisionTreeClassifier(random_state=0, ccp_alpha=alpha + 1e-12).fit(X, y)
        keep = np.ones(len(feature), bool)
        for i in range(1, len(feature)):
            keep[i] = keep[parent[i]] and found[parent[i]] > alpha + 1e-12
        assert keep.sum() == pruned.tree_.node_count


def test_a_strong_pruning_leaves_a_single_leaf_and_none_leaves_all():
    split = Split("a", [10, 10, 0], [Leaf([9, 1, 0]), Leaf([1, 9, 0])], threshold=1.5)
    tree = Tree.of(split, SCHEMA)
    found = pruning.strengths(tree)
    assert found.tolist() == [8 / 20, 0, 0]
    assert len(pruning.at_strength(tree, SCHEMA, found, 0.39).feature) == 3
    assert len(pruning.at_strength(tree, SCHEMA, found, 0.4).feature) == 1


def served(tree):
    """What is left can be walked: every index, table and value of it is checked."""
    ensemble = Ensemble.of([tree], SCHEMA, COSTS, classes=["p", "q", "r"], vote="counts")
    acquire(ensemble, [[1.0, 2.0, 2.0], [2.0, 0.0, 1.0], [np.nan, 1.0, 1.0]])
