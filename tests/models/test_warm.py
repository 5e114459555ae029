"""After a warm-up nothing is left to compile."""

import numba
import pytest

from models import CostModel, Ensemble, Feature, GreedyTreeClassifier, Leaf, Price, Schema, Split, acquire, decide, predict, warm_up
from models.kernels import acquiring, deciding, growing


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_no_kernel_is_compiled_after_a_warm_up():
    warm_up(training=True)
    kernels = (deciding.decide, acquiring.acquire, acquiring.predict, growing.grow)
    before = [len(kernel.signatures) for kernel in kernels]
    assert all(before)
    schema = Schema([Feature("a"), Feature("b", "categorical", ("x", "y")), Feature("c")])
    costs = CostModel([Price("a", 1), Price("b", 2, "g", 1), Price("c", 3, "g", 1)])
    tree = Split("b", [1, 2, 3], branches={"x": 0, "y": 1}, children=[Leaf([1, 0, 0]), Leaf([0, 2, 3])])
    for vote in ("majority", "counts", "weighted", "additive"):
        for penalties in (None, [[0, 1, 1], [1, 0, 1], [2, 2, 0]]):
            ensemble = Ensemble.of([tree], schema, costs, classes=list("pqr"), vote=vote, delayed="ahead", penalties=penalties)
            decide(ensemble, {"a": 1}, budget=3, pending=["b"], confidence=0.9)
            acquire(ensemble, [[0.0, 1.0, 2.0]], 3, confidence=0.5)
            predict(ensemble, [[0.0, 1.0, 2.0]])
    GreedyTreeClassifier(impurity="polynomial", categorical=[1], stumps="random").fit([[0, 1], [1, 2], [2, 1]], [0, 1, 2], [1, 2, 0.5])
    assert [len(kernel.signatures) for kernel in kernels] == before
