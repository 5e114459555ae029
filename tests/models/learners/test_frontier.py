"""FrontierClassifier and operating points as their users meet them: aims that are kept, defaults, caps, penalties, odd tables."""

import itertools
import re
import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.estimator_checks import check_estimator

from frugal.models import (
    Ask,
    BudgetForestClassifier,
    CostModel,
    FrontierClassifier,
    GreedyTreeClassifier,
    Price,
    PricedBoostingClassifier,
    Stop,
    decide,
    dump,
    load,
)
from frugal.models.acquire import acquire
from tests.models.learners.test_priced_boosting import DRAWS, table

COSTS = [8, 4, 2, 1]


@pytest.fixture(scope="module")
def model():
    X, y, _ = table(3000)
    return FrontierClassifier(costs=COSTS, random_state=0, n_jobs=2).fit(X, y)


@pytest.fixture(scope="module")
def test_rows():
    X, y, _ = table(4000, seed=1)
    return X, y


def test_check_estimator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(FrontierClassifier(), expected_failed_checks={"check_sample_weight_equivalence_on_dense_data": DRAWS})


def test_an_aim_is_the_mean_cost_of_cases_like_those_in_training(model, test_rows):
    X, y = test_rows
    errors = []
    for aim in (0, 1, 2, 4, 7, 10, 15):
        found = model.acquire(X, aim=aim)
        assert found.cost.mean() <= 1.05 * aim
        errors.append(np.mean(found.labels != y))
    assert errors[0] > 0.45
    assert errors[-1] < 0.15
    assert all(after <= before + 0.01 for before, after in itertools.pairwise(errors))


def test_a_frontier_starts_at_nothing_and_rises(model):
    points = model.frontier_
    assert points[0].cost == 0.0
    assert points[0].cap == 0.0
    costs = [point.cost for point in points]
    assert costs == sorted(set(costs))
    assert points[-1].error < points[0].error / 2


def test_stopping_early_is_as_good_as_buying_everything_for_less(model, test_rows):
    X, y = test_rows
    forest = RandomForestClassifier(min_samples_leaf=5, random_state=0).fit(*table(3000)[:2])
    found = model.acquire(X, aim=13)
    assert found.cost.mean() < 0.88 * sum(COSTS)
    assert np.mean(found.labels != y) < np.mean(forest.predict(X) != y) + 0.01


def test_the_default_is_the_budget_or_the_knee(test_rows):
    X, y, _ = table(3000)
    thrifty = FrontierClassifier(budget=3, costs=COSTS, random_state=0).fit(X, y)
    free = FrontierClassifier(costs=COSTS, random_state=0).fit(X, y)
    default = thrifty.ensemble_.frontier.default
    assert thrifty.frontier_[default] == max((point for point in thrifty.frontier_ if point.cost <= 3), key=lambda point: point.cost)
    assert np.array_equal(thrifty.acquire(test_rows[0]).cost, thrifty.acquire(test_rows[0], aim=3).cost)
    assert 0 < free.ensemble_.frontier.default < len(free.frontier_) - 1


def test_a_budget_alone_is_hard_and_confidence_one_goes_to_the_end(model, test_rows):
    X, _ = test_rows
    found = model.acquire(X, budget=7)
    assert found.cost.max() <= 7
    end = model.acquire(X, confidence=1)
    assert np.array_equal(end.labels, model.predict(X))
    assert np.array_equal(end.probabilities, model.predict_proba(X))
    assert end.cost.mean() >= model.acquire(X, aim=10).cost.mean()


@pytest.mark.parametrize("wanted", [{"aim": 4}, {"aim": 9, "budget": 6}, {"confidence": 0.8}, {"budget": 9}, {}])
def test_acquire_is_what_sessions_do(model, test_rows, wanted):
    """A session that stops by the point that `acquire` takes asks, pays and says the same."""
    from frugal.models.frontier import stop_at

    X, _ = test_rows
    found = model.acquire(X[:40], **wanted)
    budget = wanted.get("budget")
    confidence, cap = stop_at(model.ensemble_.frontier, budget, wanted.get("aim"), wanted.get("confidence"))
    for r, row in enumerate(X[:40]):
        answers, spent = {}, 0.0
        while isinstance(decision := decide(model.ensemble_, answers, budget, spent, confidence=confidence, cap=cap), Ask):
            answers[decision.feature] = row[int(decision.feature[1:])]
            spent += decision.cost
        assert isinstance(decision, Stop)
        assert decision.label == found.labels[r]
        assert spent == found.cost[r]
        assert list(decision.probabilities.values()) == found.probabilities[r].tolist()


def test_told_probabilities_come_true(model, test_rows):
    from frugal.models.calibrate import calibration_error

    X, y = test_rows
    for found in (model.acquire(X), model.acquire(X, confidence=1), *(model.acquire(X, budget=budget) for budget in (2, 5, 9))):
        assert calibration_error(found.probabilities.max(axis=1), found.labels == y) < 0.05


def test_the_same_bytes_for_any_number_of_threads():
    X, y, _ = table(2500)
    one, two = (FrontierClassifier(costs=COSTS, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert dump(one.ensemble_) == dump(two.ensemble_)
    again = load(dump(one.ensemble_))
    assert again.frontier == one.ensemble_.frontier
    assert np.array_equal(acquire(again, X, aim=5).cost, one.acquire(X, aim=5).cost)


def test_a_cap_is_kept_by_every_point():
    X, y, _ = table(2500)
    test, truth, _ = table(3000, seed=1)
    groups = CostModel([Price("x0", 4, "g", 2), Price("x1", 3, "g", 1), Price("x2", 2), Price("x3", 1)])
    model = FrontierClassifier(cap=5, costs=groups, random_state=0).fit(X, y)
    assert all(point.cap is not None and point.cap <= 5 for point in model.frontier_)
    for found in (model.acquire(test), model.acquire(test, aim=4), model.acquire(test, budget=5)):
        assert found.cost.max() <= 5
    free = FrontierClassifier(costs=groups, random_state=0).fit(X, y)
    errors = [np.mean(each.acquire(test, budget=5).labels != truth) for each in (model, free)]
    assert errors[0] <= errors[1] + 0.01


def test_a_fixed_set_fills_its_cap():
    """The dearest feature does not fit; those that do are found all the same."""
    from frugal.models.learners.fixed_set import FixedSet

    X, y, _ = table(2500)
    shared = FixedSet(cap=6, random_state=0)
    shared.costs = COSTS
    prepared_by = FrontierClassifier(cap=6, costs=COSTS, random_state=0)
    prepared = prepared_by._prepare(X, y, None)
    shared.classes_ = prepared_by.classes_
    ensemble = shared._again(prepared, prepared.rows)
    assert prepared.costs.total(ensemble.used) <= 6
    assert ensemble.used == {"x1", "x2"}


def test_other_learners_can_be_candidates(test_rows):
    X, y, _ = table(2500)
    model = FrontierClassifier(learners=("budget-forest", "greedy-tree"), costs=COSTS, random_state=0).fit(X, y)
    assert model.learner_ in ("budget-forest", "greedy-tree")
    assert model.ensemble_.reader is not None
    assert len(model.frontier_) > 1
    assert model.ensemble_.learner == "frontier"


@pytest.mark.parametrize("kind", [BudgetForestClassifier, GreedyTreeClassifier, PricedBoostingClassifier])
@pytest.mark.parametrize("reader", [False, True])
def test_every_learner_can_have_points_and_a_reader(kind, reader, test_rows):
    X, y, _ = table(2500)
    test, truth = test_rows
    model = kind(points=True, reader=reader, random_state=0).fit(X, y)
    assert (model.ensemble_.reader is not None) == reader
    aims = [point.cost for point in model.frontier_]
    assert aims[0] == 0.0
    for aim in (1.5, 2.5):
        assert model.acquire(test, aim=aim).cost.mean() <= 1.06 * aim
    assert np.mean(model.acquire(test, aim=4).labels != truth) < 0.25
    assert dump(load(dump(model.ensemble_))) == dump(model.ensemble_)


def test_a_reader_makes_a_forest_better(test_rows):
    X, y, _ = table(3000)
    test, truth = test_rows
    plain, read = (BudgetForestClassifier(reader=reader, max_trees=20, random_state=0).fit(X, y) for reader in (False, True))
    assert read.score(test, truth) > plain.score(test, truth)


def test_models_without_points_cannot_aim():
    X, y, _ = table(300)
    model = GreedyTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="this model has no operating points, so it cannot aim at a mean cost: train it with points=True"):
        model.acquire(X, aim=3)
    with pytest.raises(AttributeError, match="no operating points: fit it with points=True"):
        model.frontier_  # noqa: B018
    found = model.acquire(X, confidence=0.9)
    assert found.cost.mean() <= model.acquire(X).cost.mean()


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"aim": 3, "confidence": 0.9}, "aim and confidence both say when to stop: give one of them"),
        ({"aim": -1}, "the aim is -1: expected a number from 0"),
        ({"aim": float("nan")}, "the aim is nan: expected a number from 0"),
        ({"aim": "much"}, "the aim is 'much': expected a number of at least 0"),
        ({"confidence": 2}, "the confidence is 2: expected a number above 0 and at most 1"),
    ],
)
def test_wrong_wishes_are_named(model, wanted, said):
    with pytest.raises(ValueError, match="^" + re.escape(said)):
        model.acquire([[0.0, 0.0, 0.0, 0.0]], **wanted)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"learners": ()}, "learners is (): expected a list of at least one of 'priced-boosting'"),
        ({"learners": ("forest",)}, "learners is ('forest',): expected a list of at least one of"),
        ({"learners": "priced-boosting"}, "learners is 'priced-boosting': expected a list"),
        ({"points": False}, "points is False: this learner is made of its operating points"),
        ({"cap": -1}, "cap is -1: expected a number of at least 0, or None"),
        ({"budget": -1}, "the budget is -1: expected a number from 0"),
        ({"costs": [None] * 4}, "every feature is priced None"),
    ],
)
def test_wrong_parameters_are_named(parameters, said):
    X, y, _ = table(60)
    with pytest.raises(ValueError, match="^" + re.escape(said)):
        FrontierClassifier(random_state=0, **parameters).fit(X, y)


def test_dear_mistakes_move_labels_points_and_the_default(test_rows):
    X, y, _ = table(3000)
    test, truth = test_rows
    dear = FrontierClassifier(costs=COSTS, misclassification_cost={1: {0: 1000}, 0: {1: 100}}, random_state=0).fit(X, y)
    cheap = FrontierClassifier(costs=COSTS, misclassification_cost={1: {0: 1}, 0: {1: 0.1}}, random_state=0).fit(X, y)
    found, frugal = dear.acquire(test), cheap.acquire(test)
    assert found.cost.mean() > 3 * frugal.cost.mean()
    penalty = np.where(truth == 1, 1000, 100) * (found.labels != truth)
    assert penalty.mean() + found.cost.mean() < 100 * np.mean(truth == 0)
    assert dear.ensemble_.sureness == "penalty"
    point = dear.frontier_[dear.ensemble_.frontier.default]
    assert point.cost + point.error == min(each.cost + each.error for each in dear.frontier_)


def test_progress_rises_to_the_end():
    X, y, _ = table(400)
    told = []
    FrontierClassifier(random_state=0).fit(X, y, progress=told.append)
    fractions = [each.fraction for each in told]
    assert fractions == sorted(fractions)
    assert fractions[0] < 0.1
    assert 0.6 < fractions[-1] <= 1


@pytest.mark.parametrize(
    ("X", "y", "parameters"),
    [
        ([[0.0], [1.0]], ["a", "b"], {}),
        ([[0.0], [1.0], [2.0]], ["a", "a", "a"], {}),
        ([[0.0]], ["a"], {}),
        ([[float(i)] for i in range(50)], [0] * 49 + [1], {}),
        ([[float(i)] for i in range(60)], [0, 1, 2, 3, 4] * 12, {}),
        ([[float("nan")]] * 40, [0, 1] * 20, {}),
        ([[1.0]] * 40, [0, 1] * 20, {}),
        ([[float(i)] for i in range(40)], [0] * 20 + [1] * 20, {"costs": [0]}),
        ([[float(i)] for i in range(40)], [0] * 20 + [1] * 20, {"cap": 0}),
        ([[float(i)] for i in range(40)], [0] * 20 + [1] * 20, {"cap": 0.5}),
        ([[float(i)] for i in range(40)], [0] * 20 + [1] * 20, {"budget": 0}),
        ([[float(i), 1.0] for i in range(40)], [0] * 20 + [1] * 20, {"costs": [None, 1]}),
    ],
)
def test_sensible_models_of_odd_tables(X, y, parameters):
    model = FrontierClassifier(random_state=0, **parameters).fit(X, y)
    for told in (model.predict_proba(X), model.acquire(X).probabilities, model.acquire(X, aim=1).probabilities):
        assert np.allclose(told.sum(axis=1), 1)
        assert np.isfinite(told).all()
    assert set(model.predict(X)) <= set(y)
    assert model.frontier_[0].cost == 0
    assert model.acquire(X, aim=0).cost.max() == 0
    assert load(dump(model.ensemble_)).frontier == model.ensemble_.frontier


def test_weights_all_on_one_row():
    X, y, _ = table(100)
    weights = np.zeros(100)
    weights[3] = 7.0
    model = FrontierClassifier(random_state=0).fit(X, y, weights)
    assert (model.predict(X) == y[3]).all()


@pytest.mark.parametrize("way", [1, -1])
def test_directions_hold_with_a_reader(way):
    """A reader that saw more or less of a case from value to value could not hold them: in the end everything is asked."""
    X, y, _ = table(1500)
    X[:, 0] = np.abs(X[:, 0])
    model = PricedBoostingClassifier(
        costs=COSTS, monotone={"x0": way, "x1": way}, reader=True, n_levels=8, trees_per_level=4, max_leaves=8, random_state=0
    ).fit(X, y if way == 1 else 1 - y)
    for row in X[:40]:
        ladder = np.tile(row, (100, 1))
        ladder[:, 0] = np.linspace(-4, 4, 100)
        assert (way * np.diff(model.predict_proba(ladder)[:, 1]) >= -1e-9).all()


def test_importances_are_shares_of_error_removed_and_of_money(model):
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_money_.sum() == pytest.approx(1)
    assert model.feature_importances_.argmax() == 0
    assert model.feature_importances_[3] < 0.02
    paid = model.acquire(table(3000)[0], confidence=1).acquired.mean(axis=0) * COSTS
    assert model.feature_money_ == pytest.approx(paid / paid.sum(), abs=0.03)
