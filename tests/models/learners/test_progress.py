"""What a learner tells while it grows."""

import numpy as np

from frugal.models import BudgetForestClassifier, GreedyTreeClassifier


def told(kind=BudgetForestClassifier, **settings):
    X, y = np.random.default_rng(0).integers(0, 4, (80, 3)), np.arange(80) % 2
    calls = []
    kind(random_state=0, **settings).fit(X, y, progress=calls.append)
    return calls


def test_a_cost_that_was_not_measured_is_not_told_as_nothing():
    assert [(call.trees, call.mean_cost is None) for call in told(max_trees=3, alpha=[0, 1])] == [
        (trees, trees < 3) for _ in range(2) for trees in (1, 2, 3)
    ]
    assert all(call.mean_cost is None for call in told(max_trees=3))
    assert all(call.mean_cost > 0 for call in told(max_trees=3, budget=100))


def test_the_fraction_rises_to_the_whole_over_a_grid():
    assert [call.fraction for call in told(max_trees=2, alpha=[0, 1])] == [0.25, 0.5, 0.75, 1.0]
    assert [call.fraction for call in told(GreedyTreeClassifier, alpha=[0, 1])] == [0.5, 1.0]
    assert {call.phase for call in told(max_trees=2)} == {"growing"}
