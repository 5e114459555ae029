"""A warm-up: kernels compiled, or loaded from the cache, before anybody needs them. In parts, so that sessions wait for their own only."""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack

from frugal.models.acquire import acquire, predict
from frugal.models.decide import decide
from frugal.models.ensemble import Ensemble
from frugal.models.kernels.compiling import Kernels, NotCachedError, kernels, only_loading, turn
from frugal.models.learners.budget_forest import BudgetForestClassifier
from frugal.models.learners.frontier import FrontierClassifier
from frugal.models.learners.greedy import GreedyTreeClassifier
from frugal.models.schema import Feature, Schema
from frugal.models.tree import Leaf, Split


class Parts:
    """Kernels by what needs them: each part is run once on something tiny, in this order."""

    def __init__(self, work: Mapping[str, Callable[[], None]], threaded: Collection[str] = ()) -> None:
        self.work, self.threaded = dict(work), frozenset(threaded)

    def warm_up(self, *parts: str) -> Kernels:
        """Run something tiny through every kernel of these parts, by default all: half a minute at first, half a second from the cache.

        A part that another process is compiling is waited for and then loaded. Says how many kernels came from the cache and how many had
        to be compiled.
        """
        for part in self._in_order(parts):
            if part in self.threaded or not self.load_cached(part):
                with turn(part):
                    self.work[part]()
        return kernels()

    def compile_ahead(self, *parts: str) -> None:
        """`warm_up` for a process that compiles for others: it takes every turn at the start, so that who wants a later part waits."""
        turns = {part: ExitStack() for part in self._in_order(parts)}
        with ExitStack() as all_turns:
            for part, own in turns.items():
                all_turns.enter_context(own).enter_context(turn(part))
            for part, own in turns.items():
                with own:
                    self.work[part]()

    def load_cached(self, part: str) -> bool:
        """Load a part's kernels; False where one would have to be compiled, which is then left undone."""
        if part in self.threaded:
            raise ValueError(f"{part} works in threads of its own, which would compile")
        try:
            with only_loading():
                self.work[part]()
            return True
        except NotCachedError:
            return False

    def _in_order(self, parts: tuple[str, ...]) -> list[str]:
        """The same order in every process: two that take several turns cannot wait for each other."""
        return [part for part in self.work if part in parts or not parts]


def _decide() -> None:
    for ensemble in _tiny():
        decide(ensemble, {"size": 2.0})


def _predict() -> None:
    for ensemble in _tiny():
        acquire(ensemble, [[2.0, 1.0]])
        predict(ensemble, [[2.0, 1.0]])


def _grow() -> None:
    BudgetForestClassifier(max_trees=1, categorical=[1], random_state=0).fit([[0.0, 0.0], [1.0, 1.0]], ["a", "b"])
    FrontierClassifier(categorical=[1], random_state=0).fit([[0.0, 0.0], [1.0, 1.0]] * 20, ["a", "b"] * 20)
    GreedyTreeClassifier(points=True, random_state=0).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "b", "a", "b"])


def _tiny() -> list[Ensemble]:
    """One for each way that votes are kept."""
    schema = Schema([Feature("size"), Feature("colour", "categorical", ("red", "green"))])
    colours = Split("colour", [1, 2], branches={"red": 0, "green": 1}, children=[Leaf([1, 0]), Leaf([0, 2])])
    tree = Split("size", [2, 2], threshold=1.0, children=[Leaf([1, 0]), colours])
    return [Ensemble.of([tree], schema, classes=["a", "b"], vote=vote) for vote in ("majority", "counts")]


PARTS = Parts(
    {
        "deciding": _decide,  # what a session needs, from loading its model to the prediction
        "predicting": _predict,  # whole tables of rows
        "growing": _grow,  # training, beside predicting
    },
    threaded=["growing"],
)
warm_up = PARTS.warm_up
