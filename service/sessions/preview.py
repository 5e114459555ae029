"""A decision with no session kept: the same rules on answers that the client holds itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from frugal.models import Ask, Standing, Wait
from frugal.models.frontier import Stopping
from frugal.models.schema import Value
from frugal.service.registry.cache import Version
from frugal.service.sessions.state import Given, Session, accept, known_answers, standing_of
from frugal.service.store.tables import now

NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Preview:
    """Where a case stands; `spent` is in millionths."""

    standing: Standing
    spent: int

    @property
    def status(self) -> str:
        decision = self.standing.decision
        return "open" if isinstance(decision, Ask) else "waiting" if isinstance(decision, Wait) else "done"


def preview(
    version: Version,
    known: Mapping[str, Value],
    given: Sequence[Given],
    budget: int | None,
    spent: int | None,
    seed: int,
    stop: Stopping,
) -> Preview:
    """Replay the answers as one step without a limit, then decide within the budget. `spent` None is what they cost."""
    at = now()
    answers = known_answers(version.ensemble, known, at)
    case = Session(NOBODY, "", version.name, version.number, "open", 1, None, seed, None, None, stop, None, 0, answers, None, at, at, at)
    case = accept(case, given, version.ensemble, at) or case
    paid = case.spent if spent is None else spent
    return Preview(standing_of(case._replace(budget=budget, spent=paid), version.ensemble), paid)
