"""The shape of a version's metrics, as docs/archive.md has it: what people, clients and charts can rely on."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from frugal.models.costs import LONGEST_NAME
from frugal.service.errors import BadArchiveSent

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, le=1e300)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Number = Annotated[float, Field(ge=-1e300, le=1e300)]
MOST_NAMES = 1000  # of metrics that are not known here, and of numbers in each
TOGETHER = ("rows", "error", "commonest_class_error", "mean_cost", "max_cost", "cost_of_everything", "feature_use")


class Shape(BaseModel):
    """Numbers are numbers, finite ones; what is not known by name is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class CurvePoint(Shape):
    """Error and cost of the first `trees` trees, or under a hard `budget`."""

    by: Literal["trees", "budget"]
    error: Share
    mean_cost: Amount
    max_cost: Amount
    trees: Annotated[int, Field(ge=1)]
    budget: Amount | None = None


class Aimed(Shape):
    """What aiming at a mean cost came to, and what the best fixed set of features for as much did. Errors may be what mistakes cost."""

    aim: Amount
    mean_cost: Amount
    error: Amount
    stop_early: Share
    fixed_set_error: Amount
    fixed_set: Annotated[list[Annotated[str, Field(max_length=LONGEST_NAME)]], Field(max_length=MOST_NAMES)]


class Metrics(Shape):
    """How a model does on rows that its learner never saw; all may be left out. Others are numbers, or numbers by name."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Number | Annotated[dict[str, Number], Field(max_length=MOST_NAMES)]] = Field(init=False)

    rows: Count | None = None
    error: Share | None = None
    commonest_class_error: Share | None = None
    calibration_error: Share | None = None
    mean_cost: Amount | None = None
    max_cost: Amount | None = None
    cost_of_everything: Amount | None = None
    total_cost: Amount | None = None
    standard_cost: Amount | None = None
    normalised_cost: Amount | None = None
    confusion: dict[str, dict[str, Count]] | None = None
    feature_use: dict[str, Share] | None = None
    held_out: dict[str, float] | None = None
    aims: Annotated[list[Aimed], Field(max_length=1000)] | None = None
    suggested_aim: Amount | None = None
    curve: Annotated[list[CurvePoint], Field(max_length=1000)] | None = None

    @model_validator(mode="after")
    def _whole(self) -> "Metrics":
        lacking = [name for name in TOGETHER if getattr(self, name) is None]
        if self.rows is not None and lacking:
            raise ValueError(f"with `rows` there must be {', '.join(lacking)}")
        if len(self.__pydantic_extra__) > MOST_NAMES:
            raise ValueError(f"there are more than {MOST_NAMES:,} metrics")
        return self


def check_metrics(metrics: dict[str, Any]) -> None:
    """Refuse metrics of another shape; what is wrong is said by the names of the shape, not by those that were sent."""
    try:
        Metrics.model_validate(metrics)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"] if part in KNOWN or isinstance(part, int))
        what = first["msg"].removeprefix("Value error, ")
        raise BadArchiveSent(f"its metrics do not have the documented shape{f', at {where}' if where else ''}: {what}") from None


KNOWN = {*Metrics.model_fields, *CurvePoint.model_fields, *Aimed.model_fields}
