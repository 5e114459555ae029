"""A warm-up: kernels compiled, or loaded from the cache, before anybody needs them. In parts, so that sessions wait for their own only."""

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from frugal.models.acquire import acquire, predict
from frugal.models.decide import decide
from frugal.models.ensemble import Ensemble
from frugal.models.kernels.compiling import Kernels, NotCachedError, kernels, only_loading, turn
from frugal.models.learners.budget_forest import BudgetForestClassifier
from frugal.models.schema import Feature, Schema
from frugal.models.tree import Leaf, Split
from frugal.service.tables import parsing


def warm_up(*parts: str) -> Kernels:
    """Run something tiny through every kernel of these parts, by default all: a minute the first time, half a second from the cache.

    A part that another process is compiling is waited for and then loaded. Says how many kernels came from the cache and how many had to
    be compiled.
    """
    for part in _in_order(parts):
        if part in THREADED or not load_cached(part):
            with turn(part):
                PARTS[part]()
    return kernels()


def compile_ahead(*parts: str) -> None:
    """`warm_up` for a process that compiles for others: it takes every turn at the start, so that who wants a later part waits for it."""
    turns = {part: ExitStack() for part in _in_order(parts)}
    with ExitStack() as all_turns:
        for part, own in turns.items():
            all_turns.enter_context(own).enter_context(turn(part))
        for part, own in turns.items():
            with own:
                PARTS[part]()


def load_cached(part: str) -> bool:
    """Load a part's kernels; False where one would have to be compiled, which is then left undone."""
    if part in THREADED:
        raise ValueError(f"{part} works in threads of its own, which would compile")
    try:
        with only_loading():
            PARTS[part]()
        return True
    except NotCachedError:
        return False


def _in_order(parts: tuple[str, ...]) -> list[str]:
    """The same order in every process: two that take several turns cannot wait for each other."""
    return [part for part in PARTS if part in parts or not parts]


def _decide() -> None:
    for ensemble in _tiny():
        decide(ensemble, {"size": 2.0})


def _predict() -> None:
    for ensemble in _tiny():
        acquire(ensemble, [[2.0, 1.0]])
        predict(ensemble, [[2.0, 1.0]])


def _grow() -> None:
    BudgetForestClassifier(max_trees=1, categorical=[1], random_state=0).fit([[0.0, 0.0], [1.0, 1.0]], ["a", "b"])


def _read() -> None:
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


def _tiny() -> list[Ensemble]:
    """One for each way that votes are kept."""
    schema = Schema([Feature("size"), Feature("colour", "categorical", ("red", "green"))])
    colours = Split("colour", [1, 2], branches={"red": 0, "green": 1}, children=[Leaf([1, 0]), Leaf([0, 2])])
    tree = Split("size", [2, 2], threshold=1.0, children=[Leaf([1, 0]), colours])
    return [Ensemble.of([tree], schema, classes=["a", "b"], vote=vote) for vote in ("majority", "counts")]


PARTS: dict[str, Callable[[], None]] = {
    "deciding": _decide,  # what a session needs, from loading its model to the prediction
    "reading": _read,  # CSV tables
    "predicting": _predict,  # whole tables of rows
    "growing": _grow,  # training, beside predicting
}
THREADED = {"growing"}
