"""Shapes that several routes share: strict objects, money, raw values, names of models, items of answers."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from frugal.models.costs import DEAREST, LONGEST_NAME, LONGEST_TEXT, MOST, is_text, millionths
from frugal.models.schema import Value
from frugal.service.registry.versions import REFERENCE, REFERENCE_WORDS
from frugal.service.sessions.state import Given


class Strict(BaseModel):
    """A JSON object: unknown names are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def example(body: dict[str, Any]) -> ConfigDict:
    """The `model_config` of a shape with an example of itself, which a test sends."""
    return ConfigDict(json_schema_extra={"examples": [body]})


def _exact(amount: float) -> float:
    if -Decimal(repr(amount)).normalize().as_tuple().exponent > 6:  # type: ignore[operator]
        raise ValueError("money has at most 6 decimals")
    return amount


def _text(text: str) -> str:
    if not is_text(text) or "\x00" in text:
        raise ValueError("expected text that can be stored: no NUL, no lone surrogates")
    return text


def _reference(text: str) -> str:
    if not REFERENCE.fullmatch(text):
        raise ValueError(REFERENCE_WORDS)
    return text


def _raw(value: Any) -> Any:
    """A raw value: a number, text, true or false. Whether a feature takes it is judged later, against its version."""
    if isinstance(value, str):
        return _text(value)
    if value is not None and not isinstance(value, (bool, int, float)):
        raise ValueError("expected a number, text, true or false")
    if isinstance(value, float) and not abs(value) < float("inf"):
        raise ValueError("expected a finite number")
    return value


RAW = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "boolean"}]}
Money = Annotated[float, Field(ge=0, le=MOST), AfterValidator(_exact)]
Cost = Annotated[float, Field(strict=True, ge=0, le=DEAREST, allow_inf_nan=False), AfterValidator(_exact)]
Text = Annotated[str, AfterValidator(_text)]
Words = Annotated[Text, Field(min_length=1, max_length=LONGEST_TEXT)]
FeatureName = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_text)]  # also of a group or a class
Reference = Annotated[str, Field(max_length=140, examples=["heart", "heart@live", "heart:3"]), AfterValidator(_reference)]
Raw = Annotated[Any, BeforeValidator(_raw), Field(json_schema_extra=RAW)]
RawOrNull = Annotated[Any, BeforeValidator(_raw), Field(json_schema_extra={"anyOf": [*RAW["anyOf"], {"type": "null"}]})]
Known = dict[FeatureName, RawOrNull]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Confidence = Annotated[float, Field(gt=0, le=1)]
AIM = "a mean cost over many cases: the session stops by the model's operating point for it; not together with confidence"


class Item(Strict):
    """One answer: a value, or a status."""

    model_config = example({"feature": "chest_pain", "value": "typical"})

    feature: FeatureName
    value: Raw = None
    status: Literal["unavailable", "pending"] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "Item":
        if (self.value is None) == (self.status is None):
            raise ValueError('give a value, or the status "unavailable" or "pending"')
        return self

    def given(self) -> Given:
        return Given(self.feature, self.status or "value", self.value)


def once_each(items: Sequence[Item]) -> Sequence[Item]:
    names = {item.feature for item in items}
    if len(names) < len(items):
        raise ValueError("a feature is named twice")
    return items


Items = Annotated[list[Item], Field(fail_fast=True), AfterValidator(once_each)]
ItemsOrMapping = Annotated[
    Annotated[Items, Tag("<items>")] | Annotated[Known, Tag("<mapping>")],
    Discriminator(lambda given: "<items>" if isinstance(given, list) else "<mapping>"),
]


class PriceBody(Strict):
    """What a feature costs, and how it is asked for."""

    model_config = example({"cost": 7.27, "group": "blood", "cost_in_group": 5.17, "delayed": True})

    cost: Cost | None = Field(description="null: never to be bought")
    group: FeatureName | None = None
    cost_in_group: Cost | None = Field(None, description="the cost once another feature of the group is bought")
    delayed: bool = False
    unit: Words | None = None
    question: Words | None = None


CostOrPrice = Annotated[
    Annotated[Cost | None, Tag("<number>")] | Annotated[PriceBody, Tag("<price>")],
    Discriminator(lambda given: "<price>" if isinstance(given, (dict, PriceBody)) else "<number>"),
]
Costs = dict[FeatureName, CostOrPrice]


def prices_of(costs: Costs | None) -> dict[str, dict[str, Any]]:
    """Costs as training takes them: an object each, with what was said and nothing else."""
    return {
        name: price.model_dump(exclude_defaults=True) if isinstance(price, PriceBody) else {"cost": price}
        for name, price in (costs or {}).items()
    }


def one_stop(body: Any) -> Any:
    """Of a body that says when to stop: one way at most."""
    if body.aim is not None and body.confidence is not None:
        raise ValueError("aim and confidence both say when to stop: leave one of them out")
    return body


def in_millionths(amount: float | None) -> int | None:
    return None if amount is None else millionths(amount, "an amount")


def answers_of(known: dict[str, Value]) -> list[Given]:
    """Answers given as a mapping; null is unavailable."""
    return [Given(name, "unavailable" if value is None else "value", value) for name, value in known.items()]
