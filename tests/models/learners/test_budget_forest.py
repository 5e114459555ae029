"""BudgetRF: the budget loop, reproducible growth, grids, and scikit-learn's checks."""

import itertools
import math
import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.utils.estimator_checks import check_estimator

from frugal.models import BudgetForestClassifier, CostModel, Price, decide, dump, load
from frugal.models.curves import by_budget, by_trees, frontier, leaf_confidence, plot, precision_at_5
from frugal.models.growing.binning import Binning

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "a bootstrap draws rows: a row of weight 2 is drawn as often as one of weight 1, "
    "two equal rows twice as often",
    "check_class_weight_classifiers": "trees grow until their leaves are pure, where a weight moves no label: alpha would stop them",
}


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(1500, 8, n_informative=4, n_redundant=2, n_classes=3, random_state=1)
    return X[:1000], y[:1000], X[1000:], y[1000:]


def test_check_estimator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(BudgetForestClassifier(max_trees=5, random_state=0), expected_failed_checks=EXPECTED_FAILURES)


def test_the_same_bytes_for_any_number_of_threads(data):
    X, y, *_ = data
    forests = [BudgetForestClassifier(budget=5, max_trees=8, n_jobs=n, random_state=3).fit(X, y).ensemble_ for n in (None, 2, 3)]
    assert dump(forests[0]) == dump(forests[1]) == dump(forests[2])


def test_tree_i_does_not_depend_on_the_others(data):
    X, y, *_ = data
    few, many = (BudgetForestClassifier(max_trees=n, random_state=3).fit(X, y).ensemble_ for n in (3, 6))
    assert [few.text(t) for t in range(3)] == [many.text(t) for t in range(3)]


def test_the_mean_cost_on_held_out_rows_meets_the_budget_and_one_more_tree_would_not(data):
    X, y, *_ = data
    forest = BudgetForestClassifier(budget=4.5, max_trees=40, random_state=0).fit(X, y)
    assert 1 <= forest.n_trees_ < 40
    assert forest.ensemble_.metrics["held_out"]["mean_cost"] <= 4.5
    held = np.sort(np.random.default_rng((0, 2**32)).permutation(len(X))[: round(0.3 * len(X))])
    assert forest.acquire(X[held]).cost.mean() == pytest.approx(forest.ensemble_.metrics["held_out"]["mean_cost"])
    looser = BudgetForestClassifier(budget=None, max_trees=forest.n_trees_ + 1, random_state=0)
    rest = np.setdiff1d(np.arange(len(X)), held)
    assert looser.fit(X[rest], y[rest]).acquire(X[held]).cost.mean() > 4.5


def test_measuring_takes_time_in_proportion_to_the_trees(data, monkeypatch):
    X, y, *_ = data
    measured, learner = [], BudgetForestClassifier(budget=1000, max_trees=200, alpha=30, random_state=0)
    real = learner._measure
    monkeypatch.setattr(learner, "_measure", lambda trees, *rest: measured.append(len(trees.roots)) or real(trees, *rest))
    learner.fit(X, y)
    assert learner.n_trees_ == 200
    assert measured[:6] == [1, 1, 2, 3, 4, 6]  # the first is the single leaf
    assert sum(measured) < 4 * 200


def test_the_table_is_binned_once_for_all_alphas(data, monkeypatch):
    X, y, *_ = data
    binned, real = [], Binning.apply
    monkeypatch.setattr(Binning, "apply", lambda self, *rest: binned.append(self) or real(self, *rest))
    BudgetForestClassifier(alpha=[0, 2, 8], max_trees=1, random_state=0).fit(X, y)
    assert len(binned) == 1


@pytest.mark.parametrize("limit", [4.0, 4.3, 4.6, 5.0, 5.5])
def test_halving_ends_at_a_size_whose_successor_breaks_the_budget(data, limit):
    X, y, *_ = data
    forest = BudgetForestClassifier(budget=limit, max_trees=25, alpha=4, random_state=0).fit(X, y)
    held = np.sort(np.random.default_rng((0, 2**32)).permutation(len(X))[: round(0.3 * len(X))])
    rest = np.setdiff1d(np.arange(len(X)), held)
    costs = [
        p.mean_cost
        for p in by_trees(BudgetForestClassifier(max_trees=25, alpha=4, random_state=0).fit(X[rest], y[rest]).ensemble_, X[held], y[held])
    ]
    n = forest.n_trees_
    assert n == 25 or costs[n] > limit
    assert n == 0 or costs[n - 1] <= limit


def test_a_budget_that_no_tree_fits_gives_one_leaf_and_says_so(data):
    X, y, *_ = data
    with pytest.warns(UserWarning, match=re.escape("no tree fits the budget of 0.5 per case: the model is a single leaf")):
        forest = BudgetForestClassifier(budget=0.5, random_state=0).fit(X, y)
    assert forest.n_trees_ == 0
    assert forest.acquire(X).cost.max() == 0
    assert set(forest.predict(X)) <= set(y)


def test_a_grid_is_decided_by_error_within_the_budget_then_cost_then_the_larger_value(data):
    X, y, *_ = data
    chosen = BudgetForestClassifier(budget=5, alpha=[0, 4, 16], max_trees=6, random_state=0).fit(X, y)
    single = {
        a: BudgetForestClassifier(budget=5, alpha=a, max_trees=6, random_state=0).fit(X, y).ensemble_.metrics["held_out"]
        for a in (0, 4, 16)
    }
    assert chosen.alpha_ == min(single, key=lambda a: (single[a]["error"], single[a]["mean_cost"], -a))
    assert chosen.ensemble_.metrics["held_out"] == single[chosen.alpha_]


def test_both_orders_give_the_same_labels_and_deciding_saves(data):
    X, y, test_X, _ = data
    whole = BudgetForestClassifier(max_trees=15, stop="leaf", random_state=0).fit(X, y)
    early = BudgetForestClassifier(max_trees=15, random_state=0).fit(X, y)
    assert (whole.predict(test_X) == early.acquire(test_X).labels).all()
    assert early.acquire(test_X).cost.mean() < whole.acquire(test_X).cost.mean()
    assert early.expected_cost_ == whole.expected_cost_


def test_dear_features_are_avoided_and_groups_bought_together():
    rng = np.random.default_rng(0)
    signal = rng.normal(size=2000)
    X = np.column_stack([signal, signal, rng.normal(size=2000)])
    y = (signal > 0).astype(int)
    forest = BudgetForestClassifier(costs=[10, 1, 1], max_trees=5, random_state=0).fit(X, y)
    assert "x0" not in forest.ensemble_.used
    costs = CostModel([Price("x0", 10, "g", 0.1), Price("x1", 1, "g", 0.1), Price("x2", 1)])
    assert BudgetForestClassifier(costs=costs, price="path", max_trees=2, random_state=0).fit(X, y).acquire(X).cost.max() <= 1.1


def test_it_survives_an_archive_and_serves_sessions(data):
    X, y, *_ = data
    forest = BudgetForestClassifier(max_trees=3, random_state=0).fit(X, y.astype(str))
    served = load(dump(forest.ensemble_))
    assert served.learner == "budget-forest"
    assert served.parameters["max_trees"] == 3
    assert decide(served, dict(zip(served.schema.names, X[0].tolist(), strict=True))).label == forest.predict(X[:1])[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": -1}, "the budget is -1: expected a number from 0"),
        ({"budget": math.nan}, "the budget is nan"),
        ({"max_trees": 0}, "max_trees is 0: expected a whole number of at least 1"),
        ({"alpha": [0, -2]}, "alpha is -2: expected a number of at least 0"),
        ({"validation_fraction": 1.0, "budget": 3}, "validation_fraction is 1.0: expected a number between 0 and 1"),
        ({"n_jobs": 0}, "n_jobs is 0: expected None or a whole number other than 0"),
        ({"order": "cheapest"}, "order is 'cheapest'"),
    ],
)
def test_wrong_parameters_are_named(settings, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        BudgetForestClassifier(**settings).fit([[0], [1], [2], [3]], [0, 1, 0, 1])


def test_curves_and_their_picture(data, tmp_path):
    X, y, test_X, test_y = data
    ensemble = BudgetForestClassifier(max_trees=6, random_state=0).fit(X, y).ensemble_
    grown = by_trees(ensemble, test_X, test_y)
    assert [point.trees for point in grown] == [1, 2, 3, 4, 5, 6]
    limited = by_budget(ensemble, test_X, test_y, [0, 2, 4, 8])
    assert [point.max_cost <= point.budget for point in limited] == [True] * 4
    assert limited[0].mean_cost == 0
    best = frontier([*grown, *limited])
    assert all(a.mean_cost < b.mean_cost and a.error > b.error for a, b in itertools.pairwise(best))
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        plot({"trees": grown, "budgets": limited}, tmp_path / f"curve{ending}")
        assert (tmp_path / f"curve{ending}").read_bytes().startswith(start)
    with pytest.raises(ValueError, match=r"a plot's name ends in \.png or \.svg"):
        plot({"trees": grown}, tmp_path / "curve.bmp")


def test_leaf_confidence_is_the_share_of_training_cases_in_the_leaves(data):
    X, y, test_X, _ = data
    forest = BudgetForestClassifier(max_trees=4, alpha=5, random_state=0).fit(X, y == 1)
    shares = leaf_confidence(forest.ensemble_, test_X, True)
    one = test_X[0]
    counts = np.zeros(2)
    for t in range(4):
        flat, i = forest.ensemble_.flat, forest.ensemble_.flat.roots[t]
        while flat.feature[i] >= 0:
            i = flat.first_child[i] + int(one[flat.feature[i]] > flat.threshold[i])
        counts += flat.dense(i, 2)
    assert shares[0] == pytest.approx(counts[1] / counts.sum())


def test_precision_at_5_as_in_the_yahoo_experiment():
    good, bad = [True] * 5, [False] * 5
    assert precision_at_5([5, 4, 3, 2, 1], good, ["q"] * 5) == 1.0
    assert precision_at_5([5, 4, 3, 2, 1], bad, ["q"] * 5) == 0.0
    assert precision_at_5([1, 2, 3, 4, 5], [False, True, True, True, True], ["q"] * 5) == 0.8
    assert precision_at_5([5, 4, 3, 2, 1] * 2, good + bad, ["a"] * 5 + ["b"] * 5) == 0.5
    assert precision_at_5([2, 1], [True, True], ["q", "q"]) == 0.4
    with pytest.raises(ValueError, match="2 scores, 1 truths, 2 queries"):
        precision_at_5([1, 2], [True], ["a", "b"])
