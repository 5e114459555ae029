"""What a job is asked to do, complete: the same words in the request, in the job's row and in the child that trains."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from frugal.models.costs import shown

Penalties = float | Mapping[str, Mapping[str, float]]  # of every mistake; or by true label, then by the label that is said


@dataclass(frozen=True)
class Spec:
    """One training: its data, its learner, and what becomes of the model."""

    dataset: str
    label: str
    learner: str
    params: Mapping[str, Any] = field(default_factory=dict)
    budget: float | None = None  # the mean cost per case to stay within
    costs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what is not here costs 1
    penalties: Penalties | None = None
    test_fraction: float = 0.25
    seed: int = 0
    publish: Mapping[str, str | None] = field(default_factory=dict)  # name, and alias or None
    warnings: Sequence[str] = ()  # what was told when it was asked for

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Spec":
        return cls(**stored)


def why_no_mistake(penalties: Mapping[str, Mapping[str, float]]) -> str | None:
    """What is said of a penalty for the right answer; a 0 there is none.

    Examples
    --------
    >>> why_no_mistake({"ill": {"well": 500, "ill": 5}})
    "'ill' said for 'ill' is no mistake: leave it out"
    """
    right = next((true for true, row in penalties.items() if row.get(true)), None)
    return None if right is None else f"{shown(right)} said for {shown(right)} is no mistake: leave it out"
