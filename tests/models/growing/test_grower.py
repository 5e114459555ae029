"""The grower: weights on a grid, memory within a limit, trees laid out."""

import subprocess
import sys

import numba
import numpy as np
import pytest

from frugal.models import BudgetForestClassifier, CostModel, Feature, GreedyTreeClassifier, Schema
from frugal.models.growing import grower
from frugal.models.growing.binning import SAMPLE, Binning, sample_rows
from frugal.models.growing.grower import Grower
from frugal.models.growing.rules import impurity, minimax
from frugal.models.growing.targets import GRID, constant, counts, on_grid


def grower_on(codes, classes, many, schema, **settings):
    binning = Binning.of(codes, schema)
    return Grower(
        bins=binning.apply(codes, schema),
        binning=binning,
        target=counts(classes, many),
        rule=minimax(impurity("threshold-pairs", many)),
        context=constant(CostModel.of(None, schema.names)),
        weights=np.ones(len(codes)),
        seed=0,
        **settings,
    )


@pytest.mark.parametrize("greatest", [1.0, 0.3, 1e-9, 1e9, 2.0**21 + 1])
def test_positive_weights_are_at_least_one_step_and_sums_are_exact(greatest):
    weights = greatest * np.array([1.0, 0.37, 1e-7, 1e-300, 0.0])
    rounded = on_grid(weights)
    assert (rounded > 0).tolist() == [True, True, True, True, False]
    step = rounded[3]
    assert np.log2(step) == np.rint(np.log2(step))
    assert (rounded / step == np.rint(rounded / step)).all()
    assert rounded.max() / step <= GRID
    assert abs(rounded - weights).max() <= step
    assert rounded.sum() - rounded[0] - rounded[1] - rounded[2] == rounded[3]


def test_rows_of_tiny_weight_are_learned_from():
    X = np.repeat([[0.0], [1.0], [2.0]], 30, axis=0)
    y = np.repeat(["a", "b", "c"], 30)
    tree = GreedyTreeClassifier().fit(X, y, np.repeat([1.0, 1e-8, 1e-15], 30))
    assert tree.predict([[0], [1], [2]]).tolist() == ["a", "b", "c"]


def test_huge_whole_weights_stay_exact():
    """1 beside 2^53: in plain sums the small row would be lost, and with it the end of the search for the next bin."""
    X = np.arange(300.0).reshape(-1, 1) % 100
    y = (X[:, 0] > 50).astype(int)
    weights = np.where(np.arange(300) == 7, 2.0**39, 1.0)
    tree = GreedyTreeClassifier().fit(X, y, weights)
    assert (tree.predict(X) == y).all()


@pytest.mark.parametrize("weights", [[1e-200, 1e-200], [1e200, 1.0]])
def test_weights_beyond_reason_are_refused(weights):
    with pytest.raises(ValueError, match=r"the greatest sample_weight is 1e[+-]200: expected 1e-12 to 1e12"):
        GreedyTreeClassifier().fit([[0], [1]], [0, 1], weights)


def test_the_same_tree_with_any_number_of_slots(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 3, (3000, 3)), rng.normal(size=(3000, 2))])
    y = rng.integers(0, 3, 3000)
    forests = []
    for many in (0, 1, 2, 3, 4, 9):
        monkeypatch.setattr(Grower, "_slots", lambda self, many=many: many)
        forests.append(BudgetForestClassifier(categorical=[0, 1, 2], max_trees=2, random_state=0).fit(X, y).ensemble_.flat)
    for other in forests[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(forests[0], other, strict=True))


@pytest.mark.parametrize(
    ("limit", "threads", "slots"), [(4 << 30, 1, 4), (4 << 30, 2, 4), (1 << 24, 1, 2), (1 << 24, 2, 1), (1 << 20, 1, 0)]
)
def test_histograms_take_a_quarter_of_the_memory_at_most(monkeypatch, limit, threads, slots):
    monkeypatch.setattr(grower, "memory_limit", lambda: limit)
    schema = Schema(Feature(f"x{i}") for i in range(100))
    codes = np.tile(np.arange(256.0).reshape(-1, 1), 100)
    made = grower_on(codes, np.zeros(256, np.int32), 8, schema, threads=threads)
    assert made._slots() == slots
    assert slots * threads * (255 + 1) * 100 * 8 * 8 <= limit / 4


def test_histograms_take_a_gibibyte_at_most(monkeypatch):
    monkeypatch.setattr(grower, "memory_limit", lambda: 1 << 50)
    schema = Schema([Feature("x")])
    each = (255 + 1) * 2**13 * 8
    made = grower_on(np.arange(256.0).reshape(-1, 1), np.zeros(256, np.int32), 2**13, schema, threads=20)
    assert made._slots() == (1 << 30) // 20 // each == 3


def test_bins_do_not_follow_a_period_of_the_table():
    """Every other row is 0: of a table twice as long as the sample, every second row would see nothing else."""
    values = np.where(np.arange(2 * SAMPLE) % 2, np.arange(2 * SAMPLE), 0).astype(float)
    edges = Binning.of(values.reshape(-1, 1), Schema([Feature("x")])).edges[0]
    assert len(edges) > 100
    assert Binning.of(values.reshape(-1, 1), Schema([Feature("x")]), seed=1).edges[0].tolist() != edges.tolist()


def test_rows_are_drawn_once_each_in_order_and_by_the_seed():
    drawn = sample_rows(1000, 100, 3)
    assert len(drawn) == 100
    assert (np.diff(drawn) > 0).all()
    assert drawn[-1] > 800
    assert drawn.tolist() == sample_rows(1000, 100, 3).tolist() != sample_rows(1000, 100, 4).tolist()
    assert sample_rows(100, 100, 3) == slice(None)


WIDE = """
import resource
import subprocess
import sys
import numpy as np
from frugal.models import BudgetForestClassifier
resource.setrlimit(resource.RLIMIT_DATA, (512 << 20, 512 << 20))
X, y = np.random.default_rng(0).normal(size=(600, 1024)), np.arange(600) % 64
print(BudgetForestClassifier(max_trees=2, n_jobs=2, random_state=0).fit(X, y).n_trees_)
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="minutes without compiled kernels")
def test_a_wide_table_of_many_classes_trains_within_its_limit_of_memory():
    """Four histograms of 1,024 x 256 cells and 64 classes would take 512 MiB for each of the two threads."""
    done = subprocess.run([sys.executable, "-c", WIDE], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("2", "")
