"""A warm-up: every kernel a server or trainer runs, compiled or loaded from the cache before the first request."""

from models.acquire import acquire, predict
from models.decide import decide
from models.ensemble import Ensemble
from models.kernels.compiling import Kernels, kernels
from models.learners.budget_forest import BudgetForestClassifier
from models.schema import Feature, Schema
from models.tree import Leaf, Split


def warm_up(training: bool = False) -> Kernels:
    """Run a tiny ensemble through everything, and grow one if `training`: a minute the first time, half a second from the cache.

    Says how many kernels came from the cache and how many had to be compiled.
    """
    schema = Schema([Feature("size"), Feature("colour", "categorical", ("red", "green"))])
    tree = Split(
        "size",
        [2, 2],
        threshold=1.0,
        children=[
            Leaf([1, 0]),
            Split("colour", [1, 2], branches={"red": 0, "green": 1}, children=[Leaf([1, 0]), Leaf([0, 2])]),
        ],
    )
    for vote in ("majority", "counts"):
        ensemble = Ensemble.of([tree], schema, classes=["a", "b"], vote=vote)
        decide(ensemble, {"size": 2.0})
        acquire(ensemble, [[2.0, 1.0]])
        predict(ensemble, [[2.0, 1.0]])
    if training:
        BudgetForestClassifier(max_trees=1, random_state=0).fit([[0.0], [1.0]], ["a", "b"])
    return kernels()
