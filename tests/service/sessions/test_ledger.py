"""The ledger's own statements, where nothing but their guards protects: on both databases, for one answer and for several."""

import pytest

from frugal.service.sessions import postgres, sqlite
from frugal.service.sessions.state import Answer, Session
from frugal.service.sessions.steps import Opening, Steps
from tests.databases import rows
from tests.examples import wide
from tests.service.sessions.using import change, with_steps

GUARDS = {  # in the words of PostgreSQL, then of SQLite
    "budget": (" AND (budget IS NULL OR spent + $3 <= budget)", " AND (budget IS NULL OR spent + :charge <= budget)"),
    "revision": (" AND revision = $2", " AND revision = :seen"),
    "status": (" AND status IN ('open', 'waiting')", " AND status IN ('open', 'waiting')"),
}
AMOUNT = 4_000_000


def charged(session: Session, features: int, cost: int) -> Session:
    """The session with so many more answers, each at this cost, whatever its budget says."""
    begin = len(session.answers)
    lines = [Answer(f"f{i}", "value", 1.0, cost, True, "answer", session.updated_at) for i in range(begin, begin + features)]
    return session._replace(spent=session.spent + features * cost, revision=session.revision + 1, answers=(*session.answers, *lines))


def books(url: str) -> list[tuple]:
    return rows(url, "SELECT s.spent, s.revision, s.status, (SELECT count(*) FROM answers) FROM sessions s")


async def overdraw(steps: Steps, url: str, features: int) -> None:
    """The revision is right, and the sum does not fit: some bug, or somebody who changed the budget meanwhile."""
    session = (await steps.open("me", Opening("wide", budget=2 * AMOUNT))).session
    assert not await steps.ledger.append(session, charged(session, features, 2 * AMOUNT // features + 1))
    assert books(url) == [(0, 1, "open", 0)]
    assert await steps.ledger.append(session, charged(session, features, AMOUNT // features))
    after = charged(session, features, AMOUNT // features)
    change(steps, "UPDATE sessions SET budget = :less", less=AMOUNT + 10)
    assert not await steps.ledger.append(after, charged(after, features, 11))
    assert books(url) == [(AMOUNT, 2, "open", features)]
    assert await steps.ledger.append(after, charged(after, features, 10 // features))  # to the last millionth
    assert books(url) == [(AMOUNT + 10, 3, "open", 2 * features)]


async def come_second(steps: Steps, url: str, features: int) -> None:
    """The sum fits, and another step came first."""
    session = (await steps.open("me", Opening("wide", budget=10 * AMOUNT))).session
    assert await steps.ledger.append(session, charged(session, features, 1))
    known = Answer("f7", "value", 1.0, 0, False, "known", session.updated_at)
    late = session._replace(answers=(known,) * 8)  # so that it brings features of its own
    assert not await steps.ledger.append(late, charged(late, features, 1))
    assert books(url) == [(features, 2, "open", features)]


async def come_too_late(steps: Steps, url: str, features: int) -> None:
    """The sum fits, the revision is right, and the session is over."""
    session = (await steps.open("me", Opening("wide", budget=10 * AMOUNT))).session
    change(steps, "UPDATE sessions SET status = 'done', prediction = :said", said='{"label": "no", "reason": "stopped"}')
    assert not await steps.ledger.append(session, charged(session, features, 1))
    assert books(url) == [(0, 1, "done", 0)]


CASES = {"budget": overdraw, "revision": come_second, "status": come_too_late}


@pytest.mark.parametrize("features", [1, 2])
@pytest.mark.parametrize("guard", CASES)
def test_each_guard_holds_by_itself(database_url: str, guard: str, features: int) -> None:
    with_steps(database_url, lambda steps: CASES[guard](steps, database_url, features), {"wide": wide(16)})


@pytest.mark.parametrize("features", [1, 2])
@pytest.mark.parametrize("guard", CASES)
def test_a_statement_without_a_guard_is_caught(database_url: str, guard: str, features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names, words in ((postgres, ("APPEND", "APPEND_ONE"), GUARDS[guard][0]), (sqlite, ("APPEND",), GUARDS[guard][1])):
        for name in names:
            statement = getattr(module, name)
            assert statement.count(words) == 1
            monkeypatch.setattr(module, name, statement.replace(words, " AND $2::int IS NOT NULL" if "$2" in words else ""))
    with pytest.raises(Exception, match=r".") as caught:
        with_steps(database_url, lambda steps: CASES[guard](steps, database_url, features), {"wide": wide(16)})
    assert isinstance(caught.value, AssertionError) or "constraint" in str(caught.value), caught.value


def test_a_session_that_ended_before_votes_were_told_apart_can_be_read(database_url: str) -> None:
    async def run(steps: Steps) -> None:
        session = (await steps.open("me", Opening("wide"))).session
        said = '{"label": "no", "probabilities": {"no": 0.75, "yes": 0.25}, "reason": "stopped"}'
        change(steps, "UPDATE sessions SET status = 'done', prediction = :said", said=said)
        found = (await steps.read("me", session.id)).session.prediction
        assert found is not None
        assert found.votes == found.probabilities == {"no": 0.75, "yes": 0.25}

    with_steps(database_url, run, {"wide": wide(16)})
