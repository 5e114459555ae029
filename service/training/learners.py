"""The learners that can be asked for: their parameters as a schema with defaults and a sentence each, and the paper they come from.

A test holds the names and defaults here equal to those of the classes in models.learners.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from models.learners import LEARNERS
from service.errors import InvalidRequest

OWN = frozenset(("costs", "n_jobs", "random_state", "budget"))  # what a request says elsewhere, or the machine decides
BUDGET_RF = "Nan, Wang, Saligrama: Feature-Budgeted Random Forest, ICML 2015"

Threshold = Annotated[float, Field(ge=0)]
Grid = Annotated[
    Annotated[Threshold, Tag("<number>")] | Annotated[list[Threshold], Field(min_length=1, max_length=50), Tag("<grid>")],
    Discriminator(lambda given: "<grid>" if isinstance(given, (list, tuple)) else "<number>"),
]
Term = Annotated[tuple[Threshold, list[Annotated[int, Field(ge=0, le=16)]]], Field(strict=False)]  # an array in JSON


class Params(BaseModel):
    """Parameters of a learner: unknown names are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class GreedyTreeParams(Params):
    impurity: Literal["threshold-pairs", "clipped-pairs", "powers", "polynomial"] = Field(
        "threshold-pairs", description="what makes a set of cases impure: equation 11, the appendix's variant of it, 14 or 13 of the paper"
    )
    alpha: Grid = Field(
        0.0, description="cases of a class that count as noise; a list is a grid, decided by least error on rows held out within the budget"
    )
    power: int = Field(2, ge=2, le=16, description="the exponent of the impurities powers and polynomial")
    split: Literal["minimax", "expected"] = Field("minimax", description="judge a question by its worst outcome, or by the mean outcome")
    stumps: Literal["exact", "random"] = Field("exact", description="try every cut of the bins, or a random few as in section 3")
    validation_fraction: float = Field(0.3, gt=0, lt=1, description="rows held out where there is a budget or a grid")
    max_bins: int = Field(255, ge=2, le=255, description="distinct values of a number that growing tells apart")
    order: Literal["votes", "sequential"] = Field("votes", description="ask what most votes per cost wait for, or tree after tree")
    stop: Literal["decided", "leaf"] = Field("decided", description="stop when no answer can change the label, or at the leaves")
    price: Literal["constant", "path"] = Field("constant", description="the paper's cost, or next to nothing for what the path has bought")
    terms: Annotated[list[Term], Field(min_length=1)] | None = Field(
        None, description="of the polynomial: pairs of a factor and one exponent per class"
    )
    categorical: list[str] | None = Field(None, description="columns of numbers to be taken as categories")


class BudgetForestParams(GreedyTreeParams):
    max_trees: int = Field(40, ge=1, le=1000, description="trees at most; a budget may end the forest earlier")


@dataclass(frozen=True)
class Entry:
    """A learner as the wire shows it."""

    kind: Any
    params: type[Params]
    summary: str
    paper: str

    @property
    def takes_budget(self) -> bool:
        return "budget" in self.kind().get_params()


CATALOGUE = {
    "budget-forest": Entry(
        LEARNERS["budget-forest"], BudgetForestParams, "a random forest of greedy minimax trees, as many as fit the budget", BUDGET_RF
    ),
    "greedy-tree": Entry(
        LEARNERS["greedy-tree"], GreedyTreeParams, "one greedy minimax tree: the subroutine of the forest's Algorithm 1", BUDGET_RF
    ),
}


def shown_learners() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "summary": entry.summary,
            "paper": entry.paper,
            "takes_budget": entry.takes_budget,
            "parameters": entry.params.model_json_schema(),
        }
        for name, entry in CATALOGUE.items()
    ]


def find_learner(name: str) -> Entry:
    entry = CATALOGUE.get(name)
    if entry is None:
        raise InvalidRequest(f"learner: there is none of this name; the learners are {', '.join(CATALOGUE)}.", allowed=list(CATALOGUE))
    return entry


def checked_params(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters as they were given, judged against the learner's schema."""
    params = find_learner(name).params
    unknown = [parameter for parameter in given if parameter not in params.model_fields]
    if unknown:
        allowed = list(params.model_fields)
        raise InvalidRequest(f"params: {name} has no parameter of this name; it knows {', '.join(allowed)}.", allowed=allowed)
    try:
        return params.model_validate(given).model_dump(exclude_unset=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[:20]
        faults = [{"where": _where(fault["loc"]), "what": fault["msg"]} for fault in found]
        raise InvalidRequest(f"{faults[0]['where']}: {faults[0]['what']}", errors=faults) from None


def _where(place: tuple[int | str, ...]) -> str:
    return ".".join(["params", *(str(part) for part in place if not str(part).startswith("<"))])
