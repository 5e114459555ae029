"""The price path beside its naive twin: trees, scores and payments."""

import numpy as np
import pytest

from frugal.models.growing.boosting import Booster
from frugal.models.growing.grower import limits
from frugal.models.growing.targets import FREELY, of_cases, of_model, owing
from frugal.models.tree import ENDS
from tests.models.growing.engine import Case
from tests.models.growing.test_engine import close, costs_of, table
from tests.naive import boosting as naive

FORMS = {"a": "cut", "b": "one", "c": "cut", "d": "one", "e": "cut"}
LAMS = [0.004, 0.0004, 0.00004]


def booster(case, costs, classes, price="case", purse=None, loss="log", threads=1, subsample=1.0, trend=FREELY):
    if price == "model":
        context = of_model(costs, subsample * case.weights.sum())
    else:
        purses = np.empty(0, np.int64) if purse is None else np.full(len(case.rows), purse * 1_000_000, np.int64)
        context = of_cases(costs, owing(case.binned.codes, case.binned.sizes), purses)
    return Booster.of(
        case.binned,
        case.binning,
        context,
        case.classes,
        classes,
        case.weights,
        loss=loss,
        l2=2.0,
        learning_rate=0.3,
        subsample=subsample,
        limits=limits(leaves=5, rows=4),
        trend=trend,
        seed=0,
        threads=threads,
    )


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize(("classes", "price", "purse"), [(2, "case", None), (2, "case", 8), (2, "model", None), (3, "case", None)])
def test_path_is_its_naive_twins(classes, price, purse, loss):
    check_path(FORMS, classes, price, purse, loss)


@pytest.mark.parametrize(("classes", "purse"), [(2, None), (2, 8), (3, None)])
def test_sets_of_categories_are_its_naive_twins(classes, purse):
    forms = FORMS | {"b": "some", "d": "some"}
    assert any(len(asks) > 1 for name, asks in check_path(forms, classes, "case", purse, "log") if forms[name] == "some")


@pytest.mark.parametrize("purse", [None, 8])
def test_scores_that_only_rise_are_its_naive_twins(purse):
    free = check_path(FORMS, 2, "case", purse, "log")
    held = check_path(FORMS, 2, "case", purse, "log", {"a": 1, "c": -1, "e": 1})
    assert list(free) != list(held)


def check_path(forms, classes, price, purse, loss, trend=None):
    """Compare whole paths; gives what was asked, node by node."""
    rows = table(5, 700, forms, classes=classes)
    case, costs = Case(rows, forms), costs_of(forms)
    directions = np.array([trend.get(name, 0) for name in forms], np.int8) if trend else FREELY
    expected, scores = naive.path(
        case.rows, case.features, costs, classes, lams=LAMS, each=3, l2=2.0, rate=0.3, leaves=5, least_rows=4, price=price,
        purse=np.inf if purse is None else purse, loss=loss, trend=trend,
    )  # fmt: skip
    ours = booster(case, costs, classes, price, purse, loss, trend=directions)
    first, *trees = ours.trees(LAMS, 3)
    assert len(first.feature) == 1
    assert len(trees) == len(expected) > 3
    factor = 2 if loss == "squared" else 1
    for tree, twin in zip(trees, expected, strict=True):
        assert close(case.nested(tree, classes), served(twin, classes, factor))
    assert np.allclose(ours.scores, scores, atol=1e-9)
    return [each for twin in expected for each in asked(twin)]


def served(tree, classes, factor):
    """A twin's tree with a score for every class."""
    said = tree[2] if isinstance(tree, tuple) else tree
    said = [factor * s for s in ([0.0, *said] if classes == 2 else said)]
    if not isinstance(tree, tuple):
        return said
    name, asks, _, way, children = tree
    return name, asks, said, way, [served(child, classes, factor) for child in children]


def asked(tree):
    if isinstance(tree, tuple):
        yield tree[:2]
        for child in tree[4]:
            yield from asked(child)


def test_any_number_of_threads_grows_the_same_path():
    case, costs = Case(table(6, 5000, FORMS, classes=2), FORMS), costs_of(FORMS)
    one, two = (booster(case, costs, 2, threads=threads, subsample=0.7) for threads in (1, 2))
    for ours, theirs in zip(one.trees(LAMS, 4), two.trees(LAMS, 4), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert np.array_equal(a, b)
    assert np.array_equal(one.scores, two.scores)
    assert np.array_equal(one.grower.context.owes, two.grower.context.owes)


def test_rows_that_were_not_drawn_pay_too():
    """Every row that a tree asks has paid what is on its way, drawn or not."""
    case, costs = Case(table(7, 3000, FORMS, missing=0.0, classes=2), FORMS), costs_of(FORMS)
    ours = booster(case, costs, 2, subsample=0.3)
    trees = list(ours.trees([0.001], 1))
    (tree,) = trees[1:]
    assert (ours.grower.context.owes[tree.feature[0]] == 0).all()


def test_no_tree_where_no_question_is_worth_its_price():
    case, costs = Case(table(7, 500, FORMS, classes=2), FORMS), costs_of(FORMS)
    assert len(list(booster(case, costs, 2).trees([1e6, 1e5], 5))) == 1


def test_a_leaf_has_no_way_for_missing_values():
    """Where leaves are few, nodes that were searched for a question are leaves in the end."""
    case, costs = Case(table(8, 800, FORMS, classes=2), FORMS), costs_of(FORMS)
    for tree in booster(case, costs, 2).trees([1e-6], 4):
        assert (tree.missing[tree.feature < 0] == ENDS).all()
        assert len(tree.feature) <= 9
