"""Ensemble: flat node arrays, trees, votes; the one form that every learner ends in and everything serves."""

import copy
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from frugal.models.calibrate import Calibration
from frugal.models.costs import LONGEST_NAME, LONGEST_TEXT, CostModel, is_word, shown
from frugal.models.describing import path_text, tree_text
from frugal.models.flat import LOUDEST, Flat, packed
from frugal.models.frontier import Frontier
from frugal.models.kernels.pricing import Prices
from frugal.models.kernels.serving import walking
from frugal.models.kernels.serving.checking import trail_starts
from frugal.models.kernels.serving.nodes import NODE
from frugal.models.kernels.serving.reading import Reader
from frugal.models.kernels.serving.walking import Forest
from frugal.models.naming import quoted
from frugal.models.schema import Schema, Value
from frugal.models.tree import Leaf, Split, Tree
from frugal.models.votes import VOTES, ballot, prior

ORDERS = {"sequential": walking.SEQUENTIAL, "votes": walking.VOTES}
STOPS = {"leaf": walking.AT_LEAVES, "decided": walking.WHEN_DECIDED}
SURENESSES = {"label": False, "penalty": True}
DELAYS = {"wait": 0, "ahead": walking.AHEAD}
TOLD = {"smoothing", "calibration", "frontier", "learner", "parameters", "metrics"}  # settings that no array depends on
WAYS = ("vote", "order", "stop", "sureness", "delayed", "penalties", "reader", "blend")
SETTINGS = (*WAYS, *sorted(TOLD))
SILENT = Reader(
    np.empty(0, NODE), np.empty(0, np.int16), np.empty(0, np.int32), np.zeros(1, np.int32), np.empty(0, np.uint8), 1,
    np.empty(0, np.uint8), 8, 0.0,
)  # fmt: skip
MOST_CLASSES = 2**16  # their positions are kept in two bytes
DEEPEST = 20  # levels of arrays and objects in parameters and metrics
Label = str | int | float | bool


class Ensemble:
    """Some trees, the order to ask in, and how they vote.

    A `reader` is a second ensemble, additive, that says what is known means; `blend` is its share in what is told. A confidence is compared
    with the told probability of the label or, with sureness "penalty", with 1 less the penalty to be expected of it, as a share of the
    greatest one. `frontier` has the operating points.

    The arrays of `flat` are taken over where they can be written: a large forest is held once. Nobody may change them afterwards.

    Examples
    --------
    >>> from frugal.models import CostModel, Feature, Leaf, Schema, Split, decide
    >>> schema = Schema([Feature("temperature", unit="C"), Feature("cough", "categorical", ("no", "yes"))])
    >>> tree = Split("temperature", [6, 4], threshold=37.5, children=[
    ...     Leaf([5, 1]),
    ...     Split("cough", [1, 3], branches={"no": 0, "yes": 1}, children=[Leaf([1, 0]), Leaf([0, 3])]),
    ... ])
    >>> ensemble = Ensemble.of([tree], schema, {"temperature": 2, "cough": 1}, classes=["well", "flu"], vote="counts")
    >>> print(ensemble.text(0))
    temperature <= 37.5?  [6, 4]
      yes, missing: well  [5, 1]
      no: cough?  [1, 3]
        no: well  [1, 0]
        yes, missing: flu  [0, 3]
    >>> decide(ensemble, {"temperature": 39}).feature
    'cough'
    """

    def __init__(
        self,
        flat: Flat,
        schema: Schema,
        costs: CostModel | Mapping[str, float] | Sequence[float] | None,
        *,
        classes: Sequence[Label],
        vote: Literal["majority", "counts", "weighted", "additive"],
        order: Literal["sequential", "votes"] = "votes",
        stop: Literal["leaf", "decided"] = "decided",
        sureness: Literal["label", "penalty"] = "label",
        delayed: Literal["wait", "ahead"] = "wait",
        penalties: Any = None,
        reader: Flat | None = None,
        blend: float = 0.5,
        smoothing: float = 1.0,
        calibration: Mapping[str, Any] | None = None,
        frontier: Mapping[str, Any] | None = None,
        learner: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        self.schema = schema
        self.costs = costs.arranged(schema.names) if isinstance(costs, CostModel) else CostModel.of(costs, schema.names)
        self.classes = _classes(classes)
        self.vote, self.order, self.stop, self.sureness, self.delayed = vote, order, stop, sureness, delayed
        for name, value, allowed in (
            ("vote", vote, VOTES),
            ("order", order, ORDERS),
            ("stop", stop, STOPS),
            ("sureness", sureness, SURENESSES),
            ("delayed", delayed, DELAYS),
        ):
            if value not in tuple(allowed):  # a file may hold what has no hash
                raise ValueError(f"{name} is {value!r}: expected one of {', '.join(map(repr, allowed))}")
        self.penalties = _penalties(penalties, len(self.classes))
        self._describe(smoothing, calibration, frontier, learner, parameters, metrics)
        self._arrays = flat.own()
        parent = self._arrays.check(schema, len(self.classes), vote)
        self.flat = self._arrays.frozen()
        self.blend = 0.5 if reader is None else _blend(blend)
        self._reads = None if reader is None else self._checked_reader(reader)
        self.trail = trail_starts(parent, self._arrays.roots)  # where each tree's longest path starts in an array of all
        self.served = self._served(self._arrays, parent)
        self.used = used_names(flat, schema) | (used_names(reader, schema) if reader is not None else frozenset())
        self._check_sold()

    @property
    def reader(self) -> Flat | None:
        """The trees that say what is known means, where that is not left to those that ask."""
        return None if self._reads is None else self._reads.frozen()

    def _checked_reader(self, reader: Flat) -> Flat:
        if self.stop == "decided":
            raise ValueError("with a reader nothing is decided before all trees are at their ends: use stop='leaf'")
        arrays = reader.own()
        try:
            arrays.check(self.schema, len(self.classes), "additive")
        except ValueError as error:
            raise ValueError(f"the reader: {error}") from None
        return arrays

    def _check_sold(self) -> None:
        unsold = [price.feature for price in self.costs.prices if price.cost is None and price.feature in self.used]
        if unsold:
            raise ValueError(f"a tree asks for {quoted(unsold)}, priced None: what is never to be bought cannot be asked")

    def _describe(self, smoothing: Any, calibration: Any, frontier: Any, learner: Any, parameters: Any, metrics: Any) -> None:
        """Set what says how sure the trees are and when to stop, and where they come from."""
        self.smoothing = _smoothing(smoothing)
        self.calibration = None if calibration is None else Calibration.of(calibration, len(self.classes)).as_dict()
        self.frontier = None if frontier is None else Frontier.of(frontier)
        if learner is not None and not isinstance(learner, str):
            raise ValueError(f"learner is {learner!r}: expected its name or None")
        if learner is not None and not is_word(learner):
            raise ValueError(f"learner is {shown(learner)}: not a name that can be written, of at most {LONGEST_NAME} characters")
        self.learner = learner
        self.parameters, self.metrics = _plain(parameters, "parameters"), _plain(metrics, "metrics")

    @classmethod
    def of(
        cls,
        trees: Iterable[Tree | Leaf | Split],
        schema: Schema,
        costs: CostModel | Mapping[str, float] | Sequence[float] | None = None,
        *,
        classes: Sequence[Label],
        vote: Literal["majority", "counts", "weighted", "additive"],
        weights: Sequence[float] | None = None,
        **settings: Any,
    ) -> "Ensemble":
        """Build from grown trees, taken one by one; `weights` are one per tree, by default 1 each."""
        return cls(
            Flat.of((tree if isinstance(tree, Tree) else _laid_out(tree, schema, len(classes)) for tree in trees), weights),
            schema,
            CostModel.of(costs, schema.names),
            classes=classes,
            vote=vote,
            **settings,
        )

    def prefix(self, trees: int) -> "Ensemble":
        """The same with its first trees only."""
        if not 1 <= trees <= len(self):
            raise ValueError(f"trees is {trees!r}: expected a number from 1 to {len(self)}")
        if self.vote == "majority":
            return self._first(trees)
        settings = {name: getattr(self, name) for name in SETTINGS if name not in ("frontier", "metrics")}
        return Ensemble(self._arrays.first(trees, self.schema.arity), self.schema, self.costs, classes=self.classes, **settings)

    def followed_by(self, trees: Flat) -> "Ensemble":
        """The same with more trees behind its own."""
        settings = {name: getattr(self, name) for name in SETTINGS if name not in ("frontier", "metrics")}
        return Ensemble(self._arrays.followed_by(trees), self.schema, self.costs, classes=self.classes, **settings)

    def _first(self, trees: int) -> "Ensemble":
        """A prefix that shares this one's arrays: under "majority" nothing that is derived of a node depends on the other trees."""
        first = copy.copy(self)
        first.metrics, first.frontier = {}, None
        first._arrays = self._arrays.first(trees, self.schema.arity)
        first.flat = first._arrays.frozen()
        first.served = self.served._replace(
            roots=self.served.roots[:trees],
            weights=self.served.weights[:trees],
            shares=self.served.shares[:trees],
            prior=prior(first._arrays, len(self.classes)),
        )
        first.trail = self.trail[: trees + 1]
        first.used = used_names(first.flat, self.schema) | (used_names(self._reads, self.schema) if self._reads else frozenset())
        return first

    def with_settings(self, **changes: Any) -> "Ensemble":
        """The same trees asked or voted in another way: order, stop, vote, delayed, penalties, smoothing,
        calibration, costs; or with another learner, parameters, metrics."""
        if changes.keys() <= TOLD:  # the arrays stay as they are: one copy of them serves both
            same = copy.copy(self)
            same._describe(**{name: getattr(self, name) for name in sorted(TOLD)} | changes)
            same.served = self.served._replace(smoothing=same.smoothing, calibration=_as_numbers(same.calibration))
            return same
        settings: dict[str, Any] = {name: getattr(self, name) for name in (*SETTINGS, "costs")}
        settings |= {"frontier": None} | changes  # what was measured of sessions that went another way says nothing
        costs = CostModel.of(settings.pop("costs"), self.schema.names)
        return Ensemble(self._arrays, self.schema, costs, classes=self.classes, **settings)

    def __len__(self) -> int:
        return len(self.flat.roots)

    def __repr__(self) -> str:
        return (
            f"Ensemble({len(self)} trees, {len(self.flat.feature):,} nodes, {len(self.classes)} classes, "
            f"vote={self.vote!r}, order={self.order!r}, stop={self.stop!r})"
        )

    @property
    def prices(self) -> Prices:
        return self.costs.served

    def text(self, tree: int) -> str:
        """A tree as indented text: every question, where its answers lead, and the values of each node."""
        return tree_text(self.flat, self.schema, self.classes, self.vote, self._tree(tree))

    def path_text(self, tree: int, answers: Mapping[str, Value]) -> str:
        """The path a case takes through a tree, as far as its answers reach."""
        return path_text(self.flat, self.schema, self.classes, self.vote, self._tree(tree), answers)

    def _tree(self, tree: int) -> int:
        if not 0 <= tree < len(self):
            raise IndexError(f"there is no tree {tree}: the ensemble has trees 0 to {len(self) - 1}")
        return int(self.flat.roots[tree])

    def _served(self, flat: Flat, parent: NDArray[np.int32]) -> Forest:
        kept, classes = flat.kept(), len(self.classes)
        votes = ballot(self.vote, self.stop, kept, classes, parent, flat.roots, flat.weights)
        return Forest(
            nodes=packed(flat, self.schema.arity),
            outcomes=flat.outcomes,
            arity=self.schema.arity,
            roots=flat.roots,
            weights=flat.weights,
            shares=votes.shares,
            classes=classes,
            **kept._asdict(),
            label=votes.label,
            possible=votes.possible,
            bounds=votes.bounds,
            penalties=self.penalties if self.penalties is not None else np.empty((0, 0)),
            vote=VOTES[self.vote],
            order=ORDERS[self.order] | DELAYS[self.delayed],
            stop=STOPS[self.stop],
            scale=votes.scale,
            margin=votes.margin,
            numeric=not len(flat.outcomes),
            weighs=SURENESSES[self.sureness],
            prior=prior(flat, classes),
            smoothing=self.smoothing,
            calibration=_as_numbers(self.calibration),
            reader=self._served_reader(),
        )

    def _served_reader(self) -> Reader:
        if self._reads is None:
            return SILENT
        flat = self._reads
        return Reader(packed(flat, self.schema.arity), flat.outcomes, flat.roots, *flat.kept(), self.blend)


def _blend(blend: float) -> float:
    if isinstance(blend, bool) or not isinstance(blend, (int, float)) or not 0 <= blend <= 1:
        raise ValueError(f"blend is {shown(blend)}: expected the reader's share, a number from 0 to 1")
    return float(blend)


def _as_numbers(calibration: Mapping[str, Any] | None) -> NDArray[np.float64]:
    return np.hstack([*calibration.values()] if calibration else [[]])


def _laid_out(tree: Leaf | Split, schema: Schema, classes: int) -> Tree:
    if len(tree.values) != classes:
        raise ValueError(f"a tree has values for {len(tree.values)} classes: the ensemble has {classes}")
    return Tree.of(tree, schema)


def used_names(flat: Flat, schema: Schema) -> frozenset[str]:
    """The features that any tree asks for."""
    used = np.zeros(len(schema) + 1, bool)
    used[flat.feature] = True  # a leaf's -1 is the last, which is no feature's
    return frozenset(name for name, wanted in zip(schema.names, used.tolist(), strict=False) if wanted)


def _smoothing(smoothing: float) -> float:
    if isinstance(smoothing, bool) or not isinstance(smoothing, (int, float)) or not 0 <= smoothing <= LOUDEST:
        raise ValueError(f"smoothing is {shown(smoothing)}: expected a number from 0 to {LOUDEST:g}")
    return float(smoothing)


def _classes(classes: Sequence[Label]) -> tuple[Label, ...]:
    if isinstance(classes, str):
        raise ValueError(f"classes is {classes!r}: expected a sequence of labels")
    plain = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
    if not 0 < len(plain) <= MOST_CLASSES:
        raise ValueError(f"{len(plain):,} classes: an ensemble has at least one class and at most {MOST_CLASSES:,}")
    wrong = [c for c in plain if not isinstance(c, (str, int, float, bool)) or c in (math.inf, -math.inf) or c != c or not is_word(str(c))]
    if wrong:
        raise ValueError(f"the class {str(wrong[0])[:80]}: expected text of at most {LONGEST_NAME} characters, a number, true or false")
    if len(set(plain)) < len(plain):
        raise ValueError(f"the class {next(c for c, times in Counter(plain).items() if times > 1)!r} is there more than once")
    return plain


def _plain(given: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    """A mapping that JSON can hold, so that every ensemble can be archived."""
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"{what} is {given!r}: expected a mapping")
    try:
        text = json.dumps(dict(given or {}), allow_nan=False, ensure_ascii=False)
        text.encode()
        plain: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} must hold only what JSON can: {str(error)[:200]}") from None
    _check_shown(plain, what)
    return plain


def _check_shown(plain: dict[str, Any], what: str) -> None:
    """Refuse what could be kept but not shown: looked at level by level, so that no depth is too much for the check itself."""
    level: list[Any] = [plain]
    for depth in range(DEEPEST + 1):
        below: list[Any] = []
        for part in level:
            if isinstance(part, (dict, list)) and depth == DEEPEST:
                raise ValueError(f"{what} must be nested no more than {DEEPEST} levels deep")
            if isinstance(part, dict):
                if not all(is_word(name) for name in part):
                    raise ValueError(f"{what} must have names of at most {LONGEST_NAME} characters, without NUL")
                below += part.values()
            elif isinstance(part, list):
                below += part
            elif isinstance(part, str) and (len(part) > LONGEST_TEXT or "\x00" in part):
                raise ValueError(f"{what} must have texts of at most {LONGEST_TEXT:,} characters, without NUL")
        level = below


def _penalties(penalties: Any, classes: int) -> NDArray[np.float64] | None:
    if penalties is None:
        return None
    matrix = np.array(penalties, np.float64)
    if (
        matrix.shape != (classes, classes)
        or not np.isfinite(matrix).all()
        or (matrix < 0).any()
        or (matrix > LOUDEST).any()
        or np.diag(matrix).any()
    ):
        raise ValueError(
            f"penalties: expected a {classes} x {classes} matrix of numbers from 0 to {LOUDEST:g}, with zeros on the diagonal; "
            "row: the class that is said, column: the class that is true"
        )
    return matrix
