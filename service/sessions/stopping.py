"""When a session stops asking, its budget apart: found once, when it opens, and kept with it."""

from frugal.models import Ensemble
from frugal.models.costs import money
from frugal.models.frontier import Stopping, stop_at
from frugal.service.errors import InvalidRequest


def found_stop(ensemble: Ensemble, budget: int | None, aim: int | None, confidence: float | None) -> Stopping:
    """The stop that a client's wishes come to on this version; budget and aim are in millionths."""
    if aim is not None and ensemble.frontier is None:
        raise InvalidRequest(
            "aim: this version has no operating points, so it cannot aim at a mean cost. Give a budget or a confidence instead, or train "
            'the model again with the learner frontier, or with the parameter "points": true.'
        )
    try:
        return stop_at(ensemble.frontier, _amount(budget), _amount(aim), confidence)
    except ValueError as error:
        raise InvalidRequest(f"{error}.") from None


def _amount(stored: int | None) -> float | None:
    return None if stored is None else money(stored)
