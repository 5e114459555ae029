"""A learner's parameters, declared once: each with what it may be, a default and a sentence.

The constructor, `get_params`, the checks before a fit, the JSON Schema of the wire, `--set` on the command line and the tables in docs are
made from these.
"""

import inspect
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, dataclass_transform

from frugal.models.costs import shown

T = TypeVar("T")


@dataclass(frozen=True)
class Choice:
    """One of some words."""

    words: tuple[str, ...]

    def wrong(self, value: Any) -> str | None:
        if isinstance(value, str) and value in self.words:
            return None
        return " or ".join(map(repr, self.words)) if len(self.words) == 2 else "one of " + ", ".join(map(repr, self.words))


@dataclass(frozen=True)
class Flag:
    """Yes or no."""

    def wrong(self, value: Any) -> str | None:
        return None if isinstance(value, bool) else "True or False"


@dataclass(frozen=True)
class Number:
    """A number from `low` to `high`, the ends included unless `open`."""

    low: float = 0.0
    high: float = math.inf
    open: bool = False

    def wrong(self, value: Any) -> str | None:
        inside = not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)
        if inside and (self.low < value < self.high if self.open else self.low <= value <= self.high):
            return None
        if self.open:
            return f"a number between {self.low:g} and {self.high:g}"
        return f"a number of at least {self.low:g}" if self.high == math.inf else f"a number from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class NumberOr:
    """A number, or a word that stands for how to find it, or None."""

    number: Number
    word: str | None

    def wrong(self, value: Any) -> str | None:
        expected = self.number.wrong(value)
        same = value is None if self.word is None else isinstance(value, str) and value == self.word
        return None if expected is None or same else f"{expected}, or {self.word!r}"


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`; `most` is a limit on the wire only, where others share the machine."""

    low: int
    high: int | None = None
    most: int | None = None

    def wrong(self, value: Any) -> str | None:
        whole = not isinstance(value, bool) and isinstance(value, numbers.Integral)
        if whole and self.low <= value and (self.high is None or value <= self.high):
            return None
        return f"a whole number of at least {self.low}" if self.high is None else f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Grid:
    """A number, or a sequence of them of which the best is taken."""

    each: Number

    def wrong(self, value: Any) -> str | None:
        for one in self.values(value):
            if (expected := self.each.wrong(one)) is not None:
                return expected
        return None

    @staticmethod
    def values(value: Any) -> Sequence[Any]:
        return list(value) if hasattr(value, "__len__") and not isinstance(value, str) else [value]


@dataclass(frozen=True)
class Terms:
    """Pairs of a factor and one exponent per class, or None: checked when the classes are known."""

    def wrong(self, value: Any) -> str | None:
        return None


@dataclass(frozen=True)
class Columns:
    """Columns by name or position, or None: checked when the table is known."""

    def wrong(self, value: Any) -> str | None:
        return None


@dataclass(frozen=True)
class Directions:
    """Columns by name, and for each whether more of it can only raise what is told (1) or lower it (-1); or None."""

    def wrong(self, value: Any) -> str | None:
        if value is None or (isinstance(value, Mapping) and all(not isinstance(way, bool) and way in (1, -1) for way in value.values())):
            return None
        return "a mapping of columns to 1 or -1, or None"


@dataclass(frozen=True)
class ClassWeights:
    """How much a case of each class counts: a mapping of labels to numbers, "balanced" or None; labels are checked when they are known."""

    def wrong(self, value: Any) -> str | None:
        if value is None or (isinstance(value, str) and value == "balanced"):
            return None
        if isinstance(value, Mapping) and all(Number(0).wrong(weight) is None for weight in value.values()):
            return None
        return 'a mapping of labels to numbers of at least 0, "balanced", or None'


@dataclass(frozen=True)
class Names:
    """Some of these words, each once."""

    words: tuple[str, ...]

    def wrong(self, value: Any) -> str | None:
        if isinstance(value, (list, tuple)) and value and len(set(map(str, value))) == len(value) and set(value) <= set(self.words):
            return None
        return "a list of at least one of " + ", ".join(map(repr, self.words)) + ", each once"


@dataclass(frozen=True)
class Aside:
    """What a request says elsewhere, or the machine decides: budget, costs, threads, seed. Checked where it is used; `allowed` tells what
    it may be."""

    allowed: str = ""

    def wrong(self, value: Any) -> str | None:
        return None


Kind = Choice | Flag | Number | NumberOr | Whole | Grid | Terms | Columns | Directions | ClassWeights | Names | Aside


@dataclass(frozen=True)
class Parameter:
    """One parameter as everybody sees it: its name and default, what it may be, and a sentence."""

    name: str
    default: Any
    kind: Kind
    text: str
    kw_only: bool = False
    before: str | None = None  # where it stands in the constructor, if not last

    def as_argument(self) -> inspect.Parameter:
        kind = inspect.Parameter.KEYWORD_ONLY if self.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(self.name, kind, default=self.default)


def parameter(kind: Kind, text: str, *, default: Any, kw_only: bool = False, before: str | None = None) -> Any:
    """Declare a parameter in a learner's class; those that all learners share come last, by keyword."""
    return Parameter("", default, kind, text, kw_only, before)


class _Learned:
    """Stands in a class for what only a fit makes."""


def learned(*, init: Literal[False] = False) -> Any:
    """Declare what a fit leaves behind: not there before."""
    return _Learned()


@dataclass_transform(eq_default=False, field_specifiers=(parameter, learned))
def learner(kind: type[T]) -> type[T]:
    """A class whose declared parameters make its constructor."""
    own = [replace(value, name=name) for name, value in vars(kind).items() if isinstance(value, Parameter)]
    for name in [name for name, value in vars(kind).items() if isinstance(value, _Learned)]:
        delattr(kind, name)
    declared = list(getattr(kind, "_declared", ()))
    for each in own:
        setattr(kind, each.name, each.default)
        again = [i for i, other in enumerate(declared) if other.name == each.name]
        if again:  # another default, in its old place
            declared[again[0]] = each
            continue
        places = [i for i, other in enumerate(declared) if other.name == each.before or other.kw_only]
        declared.insert(len(declared) if each.kw_only or not places else places[0], each)
    kind._declared = tuple(declared)  # type: ignore[attr-defined]
    kind.__init__ = _constructor(declared)  # type: ignore[method-assign]
    return kind


def _constructor(declared: list[Parameter]) -> Callable[..., None]:
    """What sets the parameters and does nothing else, as scikit-learn wants it."""
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    signature = inspect.Signature([own, *(each.as_argument() for each in declared)], return_annotation=None)

    def construct(*given: Any, **named: Any) -> None:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        (_, made), *values = bound.arguments.items()
        for name, value in values:
            setattr(made, name, value)

    construct.__name__, construct.__qualname__ = "__init__", "__init__"
    construct.__signature__ = signature  # type: ignore[attr-defined]
    return construct


def parameters_of(learner: Any) -> tuple[Parameter, ...]:
    """The parameters of a learner or its class, in the order of the constructor."""
    found: tuple[Parameter, ...] = learner._declared
    return found


def check_parameters(learner: Any) -> None:
    """ValueError names the first parameter that is wrong, its value and what was expected."""
    for each in parameters_of(learner):
        name, kind, value = each.name, each.kind, getattr(learner, each.name)
        if isinstance(kind, Grid) and not len(kind.values(value)):
            raise ValueError(f"{name} is an empty grid: give a number or a sequence of numbers")
        if (expected := kind.wrong(value)) is not None:
            wrong = next(one for one in kind.values(value) if kind.each.wrong(one)) if isinstance(kind, Grid) else value
            raise ValueError(f"{name} is {shown(wrong)}: expected {expected}")
