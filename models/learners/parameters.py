"""A learner's parameters, declared once: its fields with a kind, a default and a sentence each.

The constructor, `get_params`, the checks before a fit, the JSON Schema of the wire, `--set` on the command line and the tables in docs are
made from these.
"""

import dataclasses
import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, dataclass_transform

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
class Aside:
    """What a request says elsewhere, or the machine decides: budget, costs, threads, seed. Checked where it is used."""

    def wrong(self, value: Any) -> str | None:
        return None


Kind = Choice | Number | Whole | Grid | Terms | Columns | Aside


class Parameter(NamedTuple):
    """One parameter as everybody sees it."""

    name: str
    default: Any
    kind: Kind
    text: str


def parameter(kind: Kind, text: str, *, default: Any, kw_only: bool = False) -> Any:
    """Declare a parameter as a learner's field; those that all learners share come last, by keyword."""
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"kind": kind, "text": text})


def learned(*, init: Literal[False] = False) -> Any:
    """Declare what a fit leaves behind: not there before."""
    return dataclasses.field(init=init)


@dataclass_transform(eq_default=False, field_specifiers=(parameter, learned))
def learner(kind: type[T]) -> type[T]:
    """A class whose declared parameters make its constructor."""
    return dataclass(eq=False, repr=False)(kind)


def parameters_of(learner: Any) -> Iterator[Parameter]:
    """The parameters of a learner or its class, in the order of the constructor."""
    fields = [field for field in dataclasses.fields(learner) if "kind" in field.metadata]
    for field in sorted(fields, key=lambda field: bool(field.kw_only)):
        yield Parameter(field.name, field.default, field.metadata["kind"], field.metadata["text"])


def check_parameters(learner: Any) -> None:
    """ValueError names the first parameter that is wrong, its value and what was expected."""
    for name, _, kind, _ in parameters_of(learner):
        value = getattr(learner, name)
        if isinstance(kind, Grid) and not len(kind.values(value)):
            raise ValueError(f"{name} is an empty grid: give a number or a sequence of numbers")
        if (expected := kind.wrong(value)) is not None:
            wrong = next(one for one in kind.values(value) if kind.each.wrong(one)) if isinstance(kind, Grid) else value
            raise ValueError(f"{name} is {shown(wrong)}: expected {expected}")
