"""Told probabilities against what comes true: the measure, the map, and learners that are asked for it."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugal.models import BudgetForestClassifier, GreedyTreeClassifier, acquire, decide, dump, load, stand
from frugal.models.calibrate import FLATTEST, Calibration, States, calibration_error, fit
from frugal.models.learners import points
from frugal.models.learners.prepared import Rows

CASES = 20_000
compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="minutes without compiled kernels")


def test_the_error_is_the_mean_distance_in_fifteen_bins():
    told = np.array([0.05, 0.05, 0.5, 0.5, 1.0, 1.0])
    right = np.array([0, 0, 1, 1, 1, 0], bool)
    assert calibration_error(told, right) == pytest.approx((2 * 0.05 + 2 * 0.5 + 2 * 0.5) / 6)
    assert calibration_error([0.46, 0.47], [True, False]) == pytest.approx((0.54 + 0.47) / 2)
    assert calibration_error(told, right, np.array([1, 1, 0, 0, 0, 0])) == pytest.approx(0.05)
    with pytest.raises(ValueError, match="there are no cases"):
        calibration_error([], [])


@pytest.mark.parametrize(
    ("slope", "end_bias", "bias"), [(-0.5, 0.0, (0.0, 0.0)), (0.5, -0.5, (0.3, -1.0)), (-0.9, 1.0, (-1.0, 2.0)), (-3.0, 0.5, (2.0, 2.0))]
)
def test_the_fit_finds_the_map_that_made_the_truth(slope, end_bias, bias):
    rng = np.random.default_rng(0)
    odds, far, done, label = rng.normal(1.5, 1, CASES), rng.random(CASES), rng.random(CASES), rng.integers(0, 2, CASES)
    chance = 1 / (1 + np.exp(-(odds + far * (np.array(bias)[label] + slope * odds) + done * end_bias)))
    found = fit(States(label, 1 / (1 + np.exp(-odds)), far, done, rng.random(CASES) < chance, np.ones(CASES)), 2)
    if slope < FLATTEST:  # what would turn the order round is not kept
        assert found.slope == FLATTEST
        return
    assert found.slope == pytest.approx(slope, abs=0.15)
    assert found.end_bias == pytest.approx(end_bias, abs=0.2)
    assert found.bias == pytest.approx(bias, abs=0.25)


def test_what_happens_at_the_roots_moves_nothing():
    states = States(np.zeros(100, int), np.full(100, 0.9), np.zeros(100), np.zeros(100), np.zeros(100, bool), np.ones(100))
    assert fit(states, 2) == Calibration(0.0, 0.0, (0.0, 0.0))


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_any_fit_can_be_kept(cases):
    found = fit(States(*(np.array(column) for column in zip(*cases, strict=True)), np.ones(len(cases))), 3)
    assert Calibration.of(found.as_dict(), 3) == found


def noisy(rows, seed=0):
    """Two classes, one in four, that two columns of six say something of."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    return X, np.where(X[:, 0] + X[:, 1] + rng.normal(scale=1.5, size=rows) > 1.5, "yes", "no")


def errors(learner, X, y):
    found = [learner.acquire(X), *(learner.acquire(X, budget) for budget in (1, 2, 3))]
    return [calibration_error(one.probabilities.max(axis=1), one.labels == y) for one in found]


@compiled
@pytest.mark.parametrize(("kind", "settings"), [(BudgetForestClassifier, {"max_trees": 20}), (GreedyTreeClassifier, {})])
def test_points_bring_told_probabilities_nearer_to_the_truth(kind, settings):
    (X, y), (test_X, test_y) = noisy(4000), noisy(8000, seed=1)
    plain = kind(random_state=0, **settings).fit(X, y)
    honest = kind(random_state=0, points=True, **settings).fit(X, y)
    assert plain.ensemble_.calibration is None
    assert (honest.predict(test_X) == plain.predict(test_X)).all()
    assert (honest.predict_proba(test_X).argmax(axis=1) == (honest.predict(test_X) == "yes")).all()
    assert np.mean(errors(honest, test_X, test_y)) < 0.06
    assert kind is BudgetForestClassifier or errors(honest, test_X, test_y)[0] < errors(plain, test_X, test_y)[0] / 2
    again = load(dump(honest.ensemble_))
    assert again.calibration == honest.ensemble_.calibration
    assert (acquire(again, test_X).probabilities == honest.acquire(test_X).probabilities).all()


@compiled
@pytest.mark.parametrize("settings", [{}, {"points": True}])
@pytest.mark.parametrize("kind", [BudgetForestClassifier, GreedyTreeClassifier])
def test_nothing_known_gives_the_training_shares(kind, settings):
    X, y = noisy(3000)
    told = stand(kind(random_state=0, **settings).fit(X, y).ensemble_, {}).probabilities
    assert told["yes"] == pytest.approx(np.mean(y == "yes"), abs=0.02)


def test_weights_that_come_to_one_together_tell_the_same_as_none():
    X, y = noisy(500)
    told = [GreedyTreeClassifier().fit(X, y, np.full(500, weight)).predict_proba(X) for weight in (1.0, 1 / 512)]
    assert told[1] == pytest.approx(told[0])


def test_a_weight_of_two_tells_the_same_as_a_row_twice():
    X, y = noisy(200)
    weights = np.arange(200) % 3 + 1
    twice = GreedyTreeClassifier().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert GreedyTreeClassifier().fit(X, y, weights).predict_proba(X) == pytest.approx(twice.predict_proba(X))


def test_every_row_is_judged_by_trees_that_it_did_not_grow():
    drawn = np.array([[1.0, 0, 2, 0], [0, 0, 1, 1]])
    rows, apart = points.out_of_bag(lambda tree: drawn[tree], 2, 4, seed=0)
    assert {int(row): left.tolist() for row, left in zip(rows, apart, strict=True)} == {0: [0, 1], 1: [1, 1], 3: [1, 0]}


def test_few_rows_are_judged_in_five_parts_and_many_in_fewer():
    parts = list(points.folds(12, seed=0))
    assert len(parts) == 5
    assert sorted(np.concatenate([judged for _, judged in parts]).tolist()) == list(range(12))
    assert all(not set(kept) & set(judged) and len(kept) + len(judged) == 12 for kept, judged in parts)
    assert [len(list(points.folds(rows, seed=0))) for rows in (4000, 6000, 10_000, 20_000)] == [5, 4, 2, 1]
    ((kept, judged),) = points.folds(20_000, seed=0)
    assert (len(kept), len(judged)) == (16_000, 4_000)
    assert list(points.folds(1, seed=0)) == []
    ((kept, judged),) = points.folds(100_000, seed=0, most=5000)
    assert (len(kept), len(judged)) == (5000, 10_000)
    assert not set(kept) & set(judged)


def test_states_are_those_that_decide_comes_to():
    """Judged by all trees, a row's first state is the end of its session at the leaves; cut short, one that a smaller budget gives."""
    X, y = noisy(300)
    ensemble = BudgetForestClassifier(max_trees=5, random_state=0).fit(X, y).ensemble_
    rows = Rows(X, (y == "yes").astype(np.int32), np.ones(300), 2)
    states = points.states(points.Judged(ensemble, rows, np.ones((300, 5))), 0, None)
    found = acquire(ensemble, X, to_leaves=True)
    assert states.told[:300].tolist() == found.probabilities.max(axis=1).tolist()
    assert (states.right[:300] == (found.labels == y)).all()
    assert (states.done[:300] == 1).all()
    assert len(states.told) == 900
    assert ((states.far >= 0) & (states.far <= 1)).all()
    assert states.far[300:].mean() < states.far[:300].mean()
    assert states.done[300:].mean() < 0.8
    half = np.tile([1.0, 1, 0, 0, 0], (300, 1))
    by_two = points.states(points.Judged(ensemble, rows, half), 0, None)
    labels = acquire(ensemble.prefix(2), X, to_leaves=True).labels  # the same trees alone
    assert (by_two.label[:300] == (labels == "yes")).all()
    assert by_two.told.tolist() != states.told.tolist()


def test_every_smoothing_is_told_as_if_it_were_the_ensembles_own():
    X, y = noisy(300)
    ensemble = BudgetForestClassifier(max_trees=5, random_state=0).fit(X, y).ensemble_
    rows = Rows(X, (y == "yes").astype(np.int32), np.ones(300), 2)
    smoothings = np.array([0.25, 1.0, 8.0])
    labels, told, *_ = points._told(points.Judged(ensemble, rows, np.ones((300, 5))), np.full(300, 2_500_000), smoothings, None)
    for k, smoothing in enumerate(smoothings):
        found = acquire(ensemble.with_settings(smoothing=float(smoothing), stop="leaf"), X, budget=2.5)
        assert told[:, k].tolist() == found.probabilities.max(axis=1).tolist()
        assert (labels == (found.labels == "yes")).all()


@compiled
def test_noise_is_smoothed_and_certainty_is_not():
    """Of one number all trees learn the same noise, so that their mean is no less sure of it than each of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 1))
    sure = X[:, 0] > 0
    noisy = sure ^ (rng.random(3000) < 0.3)
    fitted = {name: BudgetForestClassifier(random_state=0).fit(X[:2000], y[:2000]) for name, y in (("sure", sure), ("noisy", noisy))}
    assert fitted["sure"].ensemble_.smoothing < 1
    assert fitted["noisy"].ensemble_.smoothing >= 4
    careless = fitted["noisy"].ensemble_.with_settings(smoothing=1.0)
    errors = []
    for ensemble in (fitted["noisy"].ensemble_, careless):
        found = acquire(ensemble, X[2000:])
        errors.append(calibration_error(found.probabilities.max(axis=1), found.labels == noisy[2000:]))
    assert errors[0] < 0.055 < errors[1]


def test_weights_of_any_size_are_smoothed_alike():
    X, y = noisy(200)
    told = [BudgetForestClassifier(max_trees=5, random_state=0).fit(X, y, np.full(200, size)).predict_proba(X) for size in (1.0, 2**-10)]
    assert told[1] == pytest.approx(told[0])


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_points_of_a_few_rows_are_no_trouble(rows):
    X, y = [[float(k)] for k in range(rows)], [k % 2 for k in range(rows)]
    for kind in (BudgetForestClassifier, GreedyTreeClassifier):
        assert len(kind(points=True, random_state=0).fit(X, y).predict_proba(X)) == rows


def test_points_is_yes_or_no():
    with pytest.raises(ValueError, match="points is 'yes': expected True or False"):
        GreedyTreeClassifier(points="yes").fit([[0], [1]], [0, 1])


@compiled
def test_decide_and_acquire_tell_the_same_bits_of_a_calibrated_forest():
    X, y = noisy(1500)
    ensemble = BudgetForestClassifier(max_trees=9, random_state=0, points=True).fit(X, y).ensemble_
    found = acquire(ensemble, X[:50], 3)
    for r in range(50):
        answers = {name: X[r, i] for i, name in enumerate(ensemble.schema.names) if found.acquired[r, i]}
        for order in (answers, dict(reversed(answers.items()))):
            assert list(decide(ensemble, order, 0).probabilities.values()) == found.probabilities[r].tolist()
