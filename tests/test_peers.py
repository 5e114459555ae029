"""The rivals in benchmarks/peers, on tables small enough to work out by hand."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import check_grad

from benchmarks.peers.astc import ASTC, Explained
from benchmarks.peers.cstc import CSTC
from benchmarks.peers.curve import curve, hull
from benchmarks.peers.objective import Objective
from benchmarks.peers.paths import halving
from benchmarks.peers.tables import Prices

CHEAP, DEAR, NOISE = range(3)
COSTS = np.array([1.0, 10.0, 30.0])


def two_kinds(undecided: float) -> tuple[np.ndarray, np.ndarray]:
    """Where the cheap feature is -1 the answer is -1; where it is 1, the dear one is the answer. The third says nothing."""
    rows = 200
    cheap = np.where(np.arange(rows) < undecided * rows, 1.0, -1.0)
    dear = np.where(np.arange(rows) % 2, 1.0, -1.0)
    noise = np.where(np.arange(rows) // 2 % 2, 1.0, -1.0)
    return np.column_stack([cheap, dear, noise]), np.where(cheap < 0, -1, dear).astype(int)


def wide(rows: int, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 8))
    y = np.clip(np.floor(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + classes / 2), 0, classes - 1).astype(int)
    return X, y, rng.integers(1, 11, 8).astype(float)


def test_astc_buys_the_dear_feature_only_where_the_cheap_one_does_not_decide() -> None:
    X, y = two_kinds(0.5)
    labels, cost, bought = ASTC(budget=10, depth=1).fit(X, y, COSTS).acquire(X)
    assert (labels == y).all()  # the root pays 1 of its 10, which leaves too little for the dear feature; each child has 10 of its own
    assert (cost == np.where(X[:, CHEAP] < 0, 1, 11)).all()
    assert (bought[:, DEAR] == (X[:, CHEAP] > 0)).all()
    assert not bought[:, NOISE].any()


def test_astc_with_less_than_the_dear_feature_costs_stays_with_the_cheap_one() -> None:
    X, y = two_kinds(0.5)
    labels, cost, _ = ASTC(budget=9, depth=1).fit(X, y, COSTS).acquire(X)
    assert (cost == 1).all()
    assert np.mean(labels != y) == 0.25  # one half is right, of the other half a half


def test_astc_gains_are_falls_of_the_squared_error() -> None:
    rng = np.random.default_rng(1)
    Z, Y = rng.normal(size=(50, 6)), rng.normal(size=(50, 2))

    def left(columns: list[int]) -> float:
        block = np.column_stack([Z[:, columns], np.ones(50)])
        return float(((Y - block @ np.linalg.lstsq(block, Y)[0]) ** 2).sum())

    fit = Explained(Z, Y, ridge=0)
    fit.take(np.array([1]))
    fit.take(np.array([3, 4]))
    assert fit.gain(np.array([0])) == pytest.approx(left([1, 3, 4]) - left([0, 1, 3, 4]))
    assert fit.gain(np.array([2, 5])) == pytest.approx(left([1, 3, 4]) - left([1, 2, 3, 4, 5]))
    assert fit.gain(np.array([3, 4])) == pytest.approx(0, abs=1e-6)


def test_cstc_buys_the_dear_feature_only_where_the_cheap_one_does_not_decide() -> None:
    """With a quarter undecided, a little of the dear feature lowers the squared loss at the rate 2/4, at the root as well as at the child.

    At the root that costs lam * 10/41 in the other three quarters too, at the child in its quarter alone: lam = 5 lies between.
    """
    X, y = two_kinds(0.25)
    labels, cost, bought = CSTC(lam=5, depth=1, slope=10).fit(X, y, COSTS).acquire(X)
    assert (labels == y).all()
    assert (cost == np.where(X[:, CHEAP] < 0, 1, 11)).all()
    assert (bought[:, DEAR] == (X[:, CHEAP] > 0)).all()


@pytest.mark.parametrize("targets", [1, 3])
def test_cstc_slopes_are_those_of_its_objective(targets: int) -> None:
    rng = np.random.default_rng(2)
    Z, Y = np.column_stack([rng.normal(size=(30, 3)), np.ones(30)]), rng.choice([-1.0, 1.0], (30, targets))
    problem = Objective(Z, Y, np.array([0, 1, 1]), np.array([0.3, 0.5]), depth=2, rho=0.1, slope=3, inner=0.7)
    problem.axes = rng.normal(size=problem.axes.shape)
    shape = problem.nodes, 4, targets
    bounds = problem.bounds(rng.normal(size=shape))

    def value(packed: np.ndarray) -> tuple[float, np.ndarray]:
        found, by_weights, by_cuts = problem.value(packed[:-3].reshape(shape), packed[-3:], *bounds)
        return found, np.concatenate([by_weights.ravel(), by_cuts])

    assert check_grad(lambda v: value(v)[0], lambda v: value(v)[1], rng.normal(size=np.prod(shape) + 3)) < 1e-4


def test_cstc_bounds_touch_the_relaxed_cost_where_the_weights_stand() -> None:
    """One feature of price .5, weights .3 at the root and .4 at one of two leaves: that path costs .5 * .5, the other .5 * .3."""
    problem = Objective(np.array([[1.0, 1.0]]), np.zeros((1, 1)), np.array([0]), np.array([0.5]), depth=1, rho=0, slope=1, inner=0)
    weights = np.array([[[0.3], [0]], [[0.4], [-0.4]], [[0], [0]]])  # the leaves' scores are 0, as the target is: no loss is left
    cuts = np.array([0.3])  # at the score: both ways are as likely
    assert problem.value(weights, cuts, *problem.bounds(weights))[0] == pytest.approx(0.5 * (0.5 * 0.5 + 0.5 * 0.3), abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sweep", [[ASTC(b, depth=2) for b in (0, 2, 5, 10, 20, 40)], [CSTC(b, depth=2, rounds=4) for b in (100, 10, 0.3)]])
def test_more_money_buys_more_and_errs_less(sweep: list[ASTC | CSTC], classes: int) -> None:
    X, y, costs = wide(300, classes)
    found = [tree.fit(X[:200], y[:200], costs).acquire(X) for tree in sweep]
    means = [cost.mean() for _, cost, _ in found]
    assert all(later >= earlier - 0.05 * costs.sum() for earlier, later in pairwise(means))
    assert means[0] == 0
    assert means[-1] > 0.5 * costs.sum()
    assert np.mean(found[-1][0] != y) < np.mean(found[0][0] != y) - 0.1
    for _, cost, bought in found:
        assert cost == pytest.approx(bought @ costs)


@pytest.mark.parametrize("tree", [ASTC(8, depth=2), CSTC(4, depth=2, rounds=4)])
def test_what_was_not_bought_changes_nothing(tree: ASTC | CSTC) -> None:
    X, y, costs = wide(300, 3)
    both = np.column_stack([X, X**2])  # two columns for each raw feature, with one cost
    owner = np.tile(np.arange(8), 2)
    labels, cost, bought = tree.fit(both, y, costs, owner).acquire(both)
    assert 0 < bought.mean() < 1
    hidden = np.where(bought[:, owner], both, 1e3)
    again = tree.acquire(hidden)
    assert (again[0] == labels).all()
    assert (again[1] == cost).all()


def test_a_walk_of_fewer_levels_buys_no_more() -> None:
    X, y, costs = wide(300, 2)
    tree = ASTC(8, depth=2).fit(X, y, costs)
    means = [tree.acquire(X, depth)[1].mean() for depth in range(3)]
    assert means == sorted(means)
    assert means[-1] == tree.acquire(X)[1].mean()


def test_a_cut_halves_what_can_be_halved() -> None:
    assert halving(np.array([1.0, 2, 3, 4])) == 2.5
    assert halving(np.array([1.0, 1, 1, 2])) == 1.5
    assert halving(np.ones(3)) == np.inf


def test_the_hull_is_chosen_on_validation_and_read_on_test() -> None:
    points = [(0, 0.5, 0, 0.5), (0.1, 0.45, 0.1, 0.1), (0.2, 0.3, 0.2, 0.32), (0.5, 0.31, 0.5, 0.0), (0.6, 0.2, 0.6, 0.2)]
    assert hull(points) == [points[0], points[2], points[4]]
    assert curve(points)["errors"] == pytest.approx([0.41, 0.305, 0.23])


def test_a_group_pays_its_first_price_once() -> None:
    prices = Prices(first=np.array([7.0, 5.0, 3.0]), saved=np.array([2.0, 2.0, 0.0]), group=np.array([0, 0, -1]))
    bought = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0]], bool)
    assert prices.paid(bought).tolist() == [7, 10, 8, 0]
    assert prices.everything == 13
