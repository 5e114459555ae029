"""A warm-up: every kernel a server or trainer runs, compiled or loaded from the cache before the first request."""

import numpy as np

from models.acquire import acquire, predict
from models.decide import decide
from models.ensemble import Ensemble
from models.kernels import parsing
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
    _read_a_table()
    if training:
        BudgetForestClassifier(max_trees=1, random_state=0).fit([[0.0], [1.0]], ["a", "b"])
    return kernels()


def _read_a_table() -> None:
    """The kernels of reading, on arrays of the types that they get."""
    data = np.frombuffer(b"1,x\n", np.uint8)
    values, forms = np.empty((2, 1)), np.empty((2, 1), np.uint8)
    entries, numbers, slots = np.empty((8, 6), np.int64), np.empty(8), np.full(16, -1, np.int64)
    parsing.place_entries(slots, entries, 0)
    parsing.parse_rows(data, 0, 0, 9, np.ones(2, np.uint8), values, forms, slots, entries, numbers, 0)
    counts, span, yes = np.empty((2, 6), np.int64), np.empty(2), np.empty(2, np.bool_)
    parsing.sum_up(values, forms, 1, np.zeros(1, np.int64), counts, span, span.copy(), yes, yes.copy())
    parsing.gather_texts(data, entries[:1], np.ones(1, np.int64), np.empty(4, np.uint8))
    parsing.recode(values[0], forms[0], np.zeros(8, np.int32), np.empty(1, np.int32))
    parsing.row_end(np.frombuffer(bytearray(b"1,x\n"), np.uint8), 0, 0, 0, False)
