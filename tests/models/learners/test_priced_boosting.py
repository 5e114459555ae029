"""PricedBoosting as its users meet it: prices, caps, directions, words, weights, odd tables. Trees are compared in tests/models/growing."""

import itertools
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import check_estimator

from frugal.models import CostModel, Price, PricedBoostingClassifier, dump, load
from frugal.models.acquire import acquire
from frugal.models.kernels.marks import EVERY_CATEGORY

DRAWS = "rows are drawn, and their weights scaled to a mean of 1: a row of weight 2 is drawn as often as one of weight 1"


def table(rows=3000, seed=0, classes=2):
    """The class hangs on x0 and, less, on x1 and x2; x3 is noise; words say what x0 says, but less clearly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    said = X[:, 0] + 0.7 * X[:, 1] + 0.4 * X[:, 2] + 0.6 * rng.normal(size=rows)
    words = np.array(list("abcdefghijkl"), object)[np.clip(6 + 2 * X[:, 0] + rng.normal(size=rows), 0, 11).astype(int)]
    y = np.digitize(said, np.quantile(said, np.arange(1, classes) / classes))
    return X, y, pd.DataFrame(X, columns=list("pqrs")).assign(word=words)


def fitted(X, y, **parameters):
    return PricedBoostingClassifier(random_state=0, **{"n_levels": 8, "trees_per_level": 4} | parameters).fit(X, y)


def test_check_estimator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {"check_sample_weight_equivalence_on_dense_data": DRAWS}
        check_estimator(PricedBoostingClassifier(min_rows=2, n_levels=5, trees_per_level=4), expected_failed_checks=expected)


@pytest.mark.parametrize("classes", [2, 4])
def test_it_is_as_good_as_a_forest_that_buys_everything(classes):
    X, y, _ = table(classes=classes)
    test, truth, _ = table(2000, seed=1, classes=classes)
    ours = PricedBoostingClassifier(random_state=0).fit(X, y)
    forest = RandomForestClassifier(min_samples_leaf=5, random_state=0).fit(X, y)
    assert ours.score(test, truth) > forest.score(test, truth) - 0.01
    assert log_loss(truth, ours.predict_proba(test)) < log_loss(truth, forest.predict_proba(test)) + 0.01


def test_the_same_bytes_for_any_number_of_threads_and_none_from_another_seed():
    _, y, frame = table()
    one, two, other = (fitted(frame, y, n_jobs=jobs).set_params(random_state=seed).fit(frame, y) for jobs, seed in ((1, 0), (2, 0), (1, 1)))
    assert dump(one.ensemble_) == dump(two.ensemble_) != dump(other.ensemble_)
    assert dump(load(dump(one.ensemble_))) == dump(one.ensemble_)


def test_money_counts_for_less_along_the_path():
    """The first trees ask only for what is cheap; a lower price of everything else lets them ask for more."""
    X, y, _ = table()
    ensemble = PricedBoostingClassifier(costs=[50, 1, 1, 1], random_state=0).fit(X, y).ensemble_
    first = [int(np.argmax(ensemble.flat.feature[ensemble.flat.roots[1] :] == f)) for f in range(3)]
    assert min(first[1], first[2]) < first[0]
    assert ensemble.used >= {"x0", "x1", "x2"}


def test_a_number_for_lam_asks_the_same_price_of_every_tree():
    X, y, _ = table()
    cheap, dear = (fitted(X, y, lam=lam, n_levels=1, trees_per_level=40).expected_cost_ for lam in (0.001, 2.0))
    assert cheap > 2 * dear
    assert fitted(X, y, lam=1e6).ensemble_.used == frozenset()


def test_coupled_prices_are_paid_once_for_all_cases():
    """GreedyMiser: squared loss, and a feature costs its price when the model uses it first. What is used is then used freely."""
    X, y, _ = table()
    for lam in (0.002, 0.02, 0.2):
        model = fitted(X, y, lam=lam, n_levels=1, trees_per_level=40, price="model", loss="squared", costs=[4, 2, 2, 2])
        lazy = fitted(X, y, lam=lam, n_levels=1, trees_per_level=40, loss="squared", costs=[4, 2, 2, 2])
        together = model.ensemble_.costs.total(model.ensemble_.used)
        assert together <= lazy.ensemble_.costs.total(lazy.ensemble_.used)
        assert model.expected_cost_ >= 0.9 * together
    assert model.ensemble_.used < {"x0", "x1", "x2", "x3"}


def test_probabilities_of_squared_loss_are_near_the_truth():
    X, y, _ = table()
    test, truth, _ = table(2000, seed=1)
    told = fitted(X, y, loss="squared").predict_proba(test)[:, 1]
    assert log_loss(truth, told) < 1.1 * log_loss(truth, fitted(X, y).predict_proba(test)[:, 1])


GROUPED = CostModel([Price("x0", 3, "g", 1), Price("x1", 2, "g", 1), Price("x2", 2), Price("x3", 1)])


@pytest.mark.parametrize("costs", [[3, 2, 2, 1], GROUPED])
def test_a_cap_is_kept_and_trees_that_know_it_are_better(costs):
    X, y, _ = table()
    test, truth, _ = table(4000, seed=1)
    capped, free = (PricedBoostingClassifier(cap=cap, costs=costs, random_state=0).fit(X, y) for cap in (3, None))
    found = capped.acquire(test, 3)
    assert 2 < found.cost.mean() <= found.cost.max() <= 3
    errors = [np.mean(model.acquire(test, 3).labels != truth) for model in (capped, free)]
    assert errors[0] < errors[1] + 0.01


def test_cases_are_served_as_they_were_trained():
    """With the cap as budget, every training row ends with the scores that boosting left it with: told probabilities are those."""
    X, y, _ = table(1200)
    model = fitted(X, y, cap=3, costs=[2, 2, 1, 1], subsample=1.0)
    chances = model.acquire(X, 3).probabilities[:, 1]
    prepared = model._prepare(X, y, None)
    booster = model._booster(prepared, prepared.rows)
    assert len(list(booster.trees(*model._levels(prepared)))) == len(model.ensemble_) > 10
    assert np.allclose(chances, 1 / (1 + np.exp(-booster.scores[:, 0])), atol=1e-9)


@pytest.mark.parametrize("way", [1, -1])
def test_more_of_a_monotone_number_never_tells_less(way):
    X, y, _ = table(1500)
    X[:, 0] = np.abs(X[:, 0])  # the truth is neither rising nor falling in x0 - 0.7
    model = fitted(X, y if way == 1 else 1 - y, monotone={"x0": way, "x1": way}, max_leaves=16, l2=0.1, min_rows=3)
    for column, row in itertools.product((0, 1), X[:60]):
        ladder = np.tile(row, (200, 1))
        ladder[:, column] = np.linspace(-4, 4, 200)
        assert (way * np.diff(model.predict_proba(ladder)[:, 1]) >= -1e-12).all()
    free = fitted(X, y, max_leaves=16, l2=0.1, min_rows=3).predict_proba(ladder)[:, 1]
    assert (np.diff(free) < 0).any()
    assert (np.diff(free) > 0).any()


def test_a_feature_without_a_price_is_never_bought():
    X, y, frame = table()
    costs = {"p": None, "q": 1, "r": 1, "s": 1, "word": 2}
    ensemble = fitted(frame, y, costs=costs).ensemble_
    assert "p" not in ensemble.used
    assert ensemble.used == {"q", "r", "s", "word"}
    assert ensemble.costs.total(ensemble.schema.names) == 5
    assert load(dump(ensemble)).costs == ensemble.costs
    with pytest.raises(ValueError, match="every feature is priced None"):
        fitted(X, y, costs=[None] * 4)


def test_words_are_told_apart_in_sets():
    _, y, frame = table()
    model = fitted(frame[["word"]], y)
    flat = model.ensemble_.flat
    tables = flat.outcomes.reshape(-1, 12)
    assert len(tables) == (flat.kind == EVERY_CATEGORY).sum() > 10
    inside = (tables == 0).sum(axis=1)
    assert (inside == 1).any()
    assert ((inside > 1) & (inside < 11)).any()
    assert model.score(frame[["word"]], y) > 0.7


def test_missing_values_go_the_better_way():
    X, y, _ = table()
    X[::3, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 1, y)
    assert fitted(X, y).predict_proba(np.array([[np.nan, 0, 0, 0]]))[0, 1] > 0.9


def test_a_budget_cuts_one_model_to_every_size():
    X, y, _ = table()
    test, truth, _ = table(4000, seed=1)
    model = PricedBoostingClassifier(costs=[4, 3, 2, 1], random_state=0).fit(X, y)
    errors = [np.mean(model.acquire(test, budget).labels != truth) for budget in (0, 3, 7, 10)]
    assert errors[0] > errors[1] + 0.05
    assert errors[1] > errors[2] + 0.05
    assert errors[2] >= errors[3] - 0.005
    assert all(model.acquire(test, budget).cost.max() <= budget for budget in (0, 3, 7))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"lam": -1}, "lam is -1: expected a number of at least 0, or 'path'"),
        ({"lam": "paths"}, "lam is 'paths'"),
        ({"cap": -1}, "cap is -1: expected a number of at least 0, or None"),
        ({"cap": 3, "price": "model"}, "a cap is on what each case pays"),
        ({"monotone": {"x0": 2}}, "monotone is {'x0': 2}: expected a mapping of columns to 1 or -1, or None"),
        ({"monotone": ["x0"]}, "monotone is ['x0']"),
        ({"monotone": {"x9": 1}}, "monotone names 'x9', which is no column"),
        ({"monotone": {"x3": 1}, "categorical": ["x3"]}, "monotone names 'x3': its values are categories"),
        ({"loss": "hinge"}, "loss is 'hinge': expected 'log' or 'squared'"),
        ({"class_weight": {2: 1}}, "class_weight names '2': the labels are '0', '1'"),
        ({"class_weight": {0: 0, 1: 0}}, "class_weight is 0 for every class"),
        ({"class_weight": "even"}, "class_weight is 'even': expected a mapping of labels to numbers"),
        ({"misclassification_cost": {0: {2: 1}}}, "misclassification_cost names '2'"),
        ({"misclassification_cost": {0: 5}}, "misclassification_cost has 5 for a true label"),
        ({"misclassification_cost": [[0, 1]]}, "misclassification_cost has shape (1, 2)"),
        ({"misclassification_cost": [[1, 1], [1, 0]]}, "misclassification_cost: 0 said for 0 is no mistake"),
        ({"misclassification_cost": -1}, "misclassification_cost is -1 where another is said for one label"),
    ],
)
def test_wrong_parameters_are_named(parameters, said):
    X, y, _ = table(60)
    X[:, 3] = np.arange(60) % 3
    with pytest.raises(ValueError, match="^" + re.escape(said)):
        fitted(X, y, **parameters)


def test_monotone_is_for_two_classes():
    X, y, _ = table(200, classes=3)
    with pytest.raises(ValueError, match="monotone is for two classes: there are 3"):
        fitted(X, y, monotone={"x0": 1})


@pytest.mark.parametrize(
    ("X", "y", "parameters"),
    [
        ([[0.0], [1.0]], ["a", "b"], {}),
        ([[0.0], [1.0], [2.0]], ["a", "a", "a"], {}),
        ([[0.0]], ["a"], {}),
        ([[float(i)] for i in range(50)], [0] * 49 + [1], {}),
        ([[float(i)] for i in range(50)], [0, 1, 2, 3, 4] * 10, {}),
        ([[float("nan")]] * 40, [0, 1] * 20, {}),
        ([[1.0]] * 40, [0, 1] * 20, {}),
        ([[float(i)] for i in range(40)], [0] * 20 + [1] * 20, {"costs": [0]}),
        ([[float(i)] for i in range(40)], [0] * 20 + [1] * 20, {"cap": 0}),
        ([[float(i)] for i in range(40)], [0] * 20 + [1] * 20, {"l2": 0, "min_rows": 1, "learning_rate": 1.0}),
    ],
)
def test_sensible_models_of_odd_tables(X, y, parameters):
    model = fitted(X, y, **parameters)
    told = model.predict_proba(X)
    assert np.allclose(told.sum(axis=1), 1)
    assert np.isfinite(told).all()
    assert set(model.predict(X)) <= set(y)
    assert load(dump(model.ensemble_)).used == model.ensemble_.used


def test_weights_all_on_one_row():
    X, y, _ = table(100)
    weights = np.zeros(100)
    weights[3] = 7.0
    model = PricedBoostingClassifier(random_state=0).fit(X, y, weights)
    assert (model.predict(X) == y[3]).all()


def test_heavy_classes_are_said_more_often_and_dear_mistakes_less():
    X, y, _ = table()
    kinds = {}, {"class_weight": {1: 5}}, {"misclassification_cost": {1: {0: 5}, 0: {1: 1}}}
    shares = [np.mean(fitted(X, y, **kind).predict(X) == 1) for kind in kinds]
    assert shares[0] + 0.05 < min(shares[1:])
    matrix = fitted(X, y, misclassification_cost=[[0, 1], [5, 0]])
    assert np.array_equal(matrix.predict(X), fitted(X, y, misclassification_cost={1: {0: 5}, 0: {1: 1}}).predict(X))
    assert acquire(matrix.ensemble_, X[:5]).labels.shape == (5,)


def test_the_classes_are_balanced():
    X, y, _ = table()
    kept = (y == 0) | (np.arange(len(y)) % 20 == 0)
    rare, balanced = (np.mean(fitted(X[kept], y[kept], class_weight=kind).predict(X) == 1) for kind in (None, "balanced"))
    assert balanced > rare + 0.1
