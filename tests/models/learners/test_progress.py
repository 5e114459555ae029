"""What a learner tells while it grows."""

import math

import numpy as np

from models import BudgetForestClassifier


def told(**settings):
    X, y = np.random.default_rng(0).integers(0, 4, (80, 3)), np.arange(80) % 2
    calls = []
    BudgetForestClassifier(max_trees=3, random_state=0, **settings).fit(X, y, progress=lambda *call: calls.append(call))
    return calls


def test_a_cost_that_was_not_measured_is_not_told_as_nothing():
    assert [(alpha, trees, math.isnan(cost)) for alpha, trees, cost in told(alpha=[0, 1])] == [
        (alpha, trees, trees < 3) for alpha in (0, 1) for trees in (1, 2, 3)
    ]
    assert all(math.isnan(cost) for _, _, cost in told())
    assert all(cost > 0 for _, _, cost in told(budget=100))
