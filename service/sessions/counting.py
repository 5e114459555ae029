"""What is counted of sessions, where it happens."""

from frugal.models.costs import money
from frugal.service import metrics
from frugal.service.sessions.ledger import new_lines
from frugal.service.sessions.state import Session


def opened(session: Session) -> None:
    metrics.opened.inc()
    ended(session)


def stepped(before: Session, after: Session) -> None:
    """A step, what it charged, and whether it was the last."""
    metrics.steps.inc()
    bought = sum(line.bought for _, line in new_lines(before, after))
    if bought:
        metrics.charges.inc(bought)
        metrics.charged.inc(money(after.spent - before.spent))
    ended(after)


def ended(session: Session) -> None:
    if session.prediction is not None:
        metrics.stops.labels(session.prediction.reason).inc()


def replayed() -> None:
    metrics.replays.inc()
