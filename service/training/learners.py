"""The learners that can be asked for: what each declares of its parameters, as pydantic checks it and as a JSON Schema."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, create_model

from frugal.models.learners import LEARNERS
from frugal.models.learners.estimator import Learner
from frugal.models.learners.parameters import (
    Aside,
    Choice,
    ClassWeights,
    Columns,
    Directions,
    Flag,
    Grid,
    Kind,
    Names,
    Number,
    NumberOr,
    Parameter,
    Terms,
    Whole,
    parameters_of,
)
from frugal.models.naming import meant
from frugal.service.errors import InvalidRequest

Term = Annotated[tuple[Annotated[float, Field(ge=0)], list[Annotated[int, Field(ge=0, le=16)]]], Field(strict=False)]  # an array in JSON
MOST_IN_A_GRID = 50


class Params(BaseModel):
    """Parameters of a learner: unknown names are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Entry:
    """A learner as the wire shows it."""

    kind: type[Learner]
    params: type[Params]

    @property
    def takes_budget(self) -> bool:
        return "budget" in self.kind().get_params()


@cache
def catalogue() -> dict[str, Entry]:
    return {name: Entry(kind, _params(kind)) for name, kind in LEARNERS.items()}


def _params(kind: type[Learner]) -> type[Params]:
    """What a request may say; what it says elsewhere, such as the budget, is left out."""
    fields: dict[str, Any] = {
        each.name: (_annotation(each.kind), Field(_default(each), description=each.text))
        for each in parameters_of(kind)
        if not isinstance(each.kind, Aside)
    }
    return create_model(kind.__name__.removesuffix("Classifier") + "Params", __base__=Params, **fields)


def _default(each: Parameter) -> Any:
    """As JSON has it: a tuple is an array."""
    return list(each.default) if isinstance(each.default, tuple) else each.default


def _annotation(kind: Kind) -> Any:
    match kind:
        case Choice(words):
            return Literal[words]
        case Flag():
            return bool
        case Number(low, high, True):
            return Annotated[float, Field(gt=low, lt=high)]
        case Number(low, high):
            return Annotated[float, Field(ge=low, le=None if high == float("inf") else high)]
        case NumberOr(number, None):
            return _annotation(number) | None
        case NumberOr(number, word):
            return Annotated[
                Annotated[_annotation(number), Tag("<number>")] | Annotated[Literal[word], Tag("<word>")],
                Discriminator(lambda given: "<word>" if isinstance(given, str) else "<number>"),
            ]
        case Whole():
            limits = [limit for limit in (kind.high, kind.most) if limit is not None]
            return Annotated[int, Field(ge=kind.low, le=min(limits, default=None))]
        case Grid(each):
            one = _annotation(each)
            many = list.__class_getitem__(one)
            grid = Annotated[many, Field(min_length=1, max_length=MOST_IN_A_GRID), Tag("<grid>")]  # type: ignore[valid-type]  # made at run time
            return Annotated[Annotated[one, Tag("<number>")] | grid, Discriminator(_shape)]
        case Terms():
            return Annotated[list[Term], Field(min_length=1)] | None
        case Columns():
            return list[str] | None
        case Directions():
            return dict[str, Literal[1, -1]] | None
        case Names(words):
            some = list.__class_getitem__(Literal[words])
            return Annotated[some, Field(min_length=1, max_length=len(words))]
        case ClassWeights():
            weights = dict[str, Annotated[float, Field(ge=0)]]
            return Annotated[
                Annotated[weights, Tag("<weights>")] | Annotated[Literal["balanced"] | None, Tag("<word>")],
                Discriminator(lambda given: "<weights>" if isinstance(given, dict) else "<word>"),
            ]
        case _:
            raise TypeError(f"{kind} has no form on the wire")


def _shape(given: Any) -> str:
    return "<grid>" if isinstance(given, (list, tuple)) else "<number>"


def shown_learners() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "summary": entry.kind.summary,
            "paper": entry.kind.paper,
            "takes_budget": entry.takes_budget,
            "parameters": entry.params.model_json_schema(),
        }
        for name, entry in catalogue().items()
    ]


def find_learner(name: str) -> Entry:
    entry = catalogue().get(name)
    if entry is None:
        raise InvalidRequest(f"learner: there is none of this name; the learners are {', '.join(LEARNERS)}.", allowed=list(LEARNERS))
    return entry


def checked_params(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters as they were given, judged against the learner's schema."""
    params = find_learner(name).params
    unknown = [parameter for parameter in given if parameter not in params.model_fields]
    if unknown:
        allowed = list(params.model_fields)
        near = meant(unknown[0], allowed)
        raise InvalidRequest(f"params: {name} has no parameter of this name{near}; it knows {', '.join(allowed)}.", allowed=allowed)
    try:
        return params.model_validate(given).model_dump(exclude_unset=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[:20]
        faults = [{"where": _where(fault["loc"]), "what": fault["msg"]} for fault in found]
        raise InvalidRequest(f"{faults[0]['where']}: {faults[0]['what']}", errors=faults) from None


def _where(place: tuple[int | str, ...]) -> str:
    return ".".join(["params", *(str(part) for part in place if not str(part).startswith("<"))])
