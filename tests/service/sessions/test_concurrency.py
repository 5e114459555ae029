"""Steps that race each other, on real connections: charged once, never beyond the budget."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import httpx
import pytest

from frugal.models import dump
from frugal.service.config import Settings
from frugal.service.errors import Conflict, Problem
from frugal.service.registry.cache import Versions
from frugal.service.registry.versions import publish
from frugal.service.sessions.ledger import IdempotencyKey
from frugal.service.sessions.opening import open_ledger
from frugal.service.sessions.state import Given, Session
from frugal.service.sessions.steps import Opening, Seen, Steps
from frugal.service.store.audit import Actor
from frugal.service.store.db import open_database
from tests.databases import rows
from tests.examples import wide
from tests.service.conftest import publish as publish_over_http
from tests.service.sessions.mutants import MUTANTS

AT_ONCE = 16
BUDGET = 10
WRONG_BOOKS = """
SELECT s.id FROM sessions s LEFT JOIN answers a ON a.session_id = s.id
GROUP BY s.id, s.spent, s.budget HAVING coalesce(sum(a.cost), 0) <> s.spent OR coalesce(sum(a.cost), 0) > s.budget
"""


@asynccontextmanager
async def steps_on(url: str, mutant: type | None = None) -> AsyncIterator[Steps]:
    """Use cases on a ledger with as many connections as there are racers."""
    settings = Settings(database=url, pool=AT_ONCE)
    database = open_database(settings)
    publish(database, "wide", dump(wide(AT_ONCE)), Actor("me"))
    ledger = await open_ledger(database, settings)
    if mutant is not None:
        ledger.__class__ = mutant
    try:
        yield Steps(ledger, Versions(database, 4), database, ttl=3600)
    finally:
        await ledger.close()
        database.close()


async def race(*moves: Awaitable[Seen]) -> tuple[list[Seen], list[BaseException]]:
    outcomes = await asyncio.gather(*moves, return_exceptions=True)
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for error in errors:
        if isinstance(error, (AttributeError, TypeError, NameError)):
            raise error  # the test's own fault
    return [outcome for outcome in outcomes if isinstance(outcome, Seen)], errors


async def spend_at_once(steps: Steps) -> tuple[list[Seen], list[BaseException]]:
    """Sixteen different features at once against a budget for ten."""
    opened = await steps.open("me", Opening("wide", budget=BUDGET * 1_000_000))
    return await race(*(steps.answer("me", opened.session.id, [Given(f"f{i}", "value", 1.0)]) for i in range(AT_ONCE)))


async def same_at_once(steps: Steps) -> tuple[list[Seen], list[BaseException]]:
    opened = await steps.open("me", Opening("wide"))
    return await race(*(steps.answer("me", opened.session.id, [Given("f3", "value", 1.0)]) for _ in range(32)))


def run(url: str, work: Callable[[Steps], Awaitable[object]], mutant: type | None = None) -> None:
    async def main() -> None:
        async with steps_on(url, mutant) as steps:
            await work(steps)

    asyncio.run(main())


def test_identical_answers_at_once_are_one_charge(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        seen, errors = await same_at_once(steps)
        assert errors == []
        assert sorted(one.replayed for one in seen) == [False] + [True] * 31
        assert {one.session.spent for one in seen} == {1_000_000}

    run(database_url, work)
    assert rows(database_url, "SELECT count(*), sum(cost) FROM answers") == [(1, 1_000_000)]


def test_racing_answers_never_spend_more_than_the_budget(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        for _ in range(100):
            seen, errors = await spend_at_once(steps)
            assert len(seen) == BUDGET
            assert all(isinstance(error, Conflict) for error in errors), errors

    run(database_url, work)
    assert rows(database_url, "SELECT count(*), sum(cost) FROM answers") == [(100 * BUDGET, 100 * BUDGET * 1_000_000)]
    assert rows(database_url, "SELECT DISTINCT status, spent, revision FROM sessions") == [("done", BUDGET * 1_000_000, 1 + BUDGET)]
    assert rows(database_url, WRONG_BOOKS) == []


@pytest.mark.parametrize("number", [0, 1])
def test_the_wrong_ways_to_charge_are_caught(database_url: str, number: int) -> None:
    """The same race on the two variants that overspend must leave books that do not add up."""

    async def work(steps: Steps) -> None:
        for _ in range(100):
            await spend_at_once(steps)

    run(database_url, work, MUTANTS["postgresql" if database_url.startswith("postgresql") else "sqlite"][number])
    assert rows(database_url, WRONG_BOOKS) != []


def test_a_finish_and_answers_at_once_leave_one_end(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        for _ in range(20):
            opened = await steps.open("me", Opening("wide"))
            id = opened.session.id
            moves = [steps.answer("me", id, [Given(f"f{i}", "value", 1.0)]) for i in range(8)]
            seen, errors = await race(*moves, *(steps.finish("me", id) for _ in range(4)))
            assert all(isinstance(error, Problem) and error.slug == "session-closed" for error in errors), errors
            last = await steps.read("me", id)
            assert last.session.status == "done"
            assert max(one.session.revision for one in seen) == last.session.revision == 2 + len(last.session.answers)

    run(database_url, work)
    assert rows(database_url, WRONG_BOOKS) == []


def test_twins_with_one_idempotency_key_open_one_session(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        for i in range(20):
            key = IdempotencyKey(f"key {i}", "0" * 64)
            seen, errors = await race(*(steps.open("me", Opening("wide"), key) for _ in range(8)))
            assert errors == []
            assert len({one.session.id for one in seen}) == 1
            assert sorted(one.replayed for one in seen) == [False] + [True] * 7

    run(database_url, work)
    assert rows(database_url, "SELECT count(*) FROM sessions") == [(20,)]


def test_over_http_identical_answers_at_once_are_one_charge(client: httpx.Client, database_url: str) -> None:
    publish_over_http(client, "wide", wide(4))
    id = client.post("/v1/sessions", json={"model": "wide"}).json()["id"]

    def send(_: int) -> httpx.Response:
        return client.post(f"/v1/sessions/{id}/answers", json={"feature": "f0", "value": 1})

    with ThreadPoolExecutor(32) as pool:
        replies = list(pool.map(send, range(32)))
    assert {reply.status_code for reply in replies} == {200}
    assert sum("idempotent-replayed" not in reply.headers for reply in replies) == 1
    assert {reply.text for reply in replies} == {replies[0].text}
    assert rows(database_url, "SELECT count(*), sum(cost) FROM answers") == [(1, 1_000_000)]


def test_what_another_process_did_is_seen_though_this_one_remembers_otherwise(database_url: str) -> None:
    """A process tries its own last state of a session first; the guard tells it when that is old."""

    def f(i: int, value: float = 1.0) -> list[Given]:
        return [Given(f"f{i}", "value", value)]

    async def work(here: Steps) -> None:
        there = Steps(here.ledger, here.versions, here.database, ttl=3600)  # remembers on its own
        id = (await here.open("me", Opening("wide", budget=4_000_000))).session.id
        await here.answer("me", id, f(0))
        await there.answer("me", id, f(1))
        third = await here.answer("me", id, f(2))
        assert [line.feature for line in third.session.answers] == ["f0", "f1", "f2"]
        assert (third.session.spent, third.session.revision) == (3_000_000, 4)
        replay = await there.answer("me", id, f(1))
        assert (replay.replayed, replay.session) == (True, third.session)
        await there.answer("me", id, f(3))
        with pytest.raises(Conflict, match="over"):
            await here.answer("me", id, f(4))
        with pytest.raises(Problem, match="no session"):
            await here.answer("somebody else", id, f(5))
        other = (await here.open("me", Opening("wide"))).session.id
        await here.answer("me", other, f(0))
        await there.finish("me", other)
        with pytest.raises(Conflict, match="over"):
            await here.answer("me", other, f(1))
        gone = (await here.open("me", Opening("wide"))).session.id
        await here.answer("me", gone, f(0))
        await there.delete(Actor("me"), gone)
        with pytest.raises(Problem, match="no session"):
            await here.answer("me", gone, f(1))
        with pytest.raises(Problem, match="no session"):
            await here.answer("me", gone, f(0))

    run(database_url, work)
    assert rows(database_url, WRONG_BOOKS) == []


def test_a_step_that_is_written_at_the_last_attempt_is_acknowledged(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(steps: Steps) -> None:
        id = (await steps.open("me", Opening("wide"))).session.id
        steps._recent.clear()
        append, refused = steps.ledger.append, iter(range(19))

        async def late(before: Session, after: Session) -> bool:
            return False if next(refused, None) is not None else await append(before, after)

        monkeypatch.setattr(steps.ledger, "append", late)
        assert (await steps.answer("me", id, [Given("f0", "value", 1.0)])).session.spent == 1_000_000

    run(database_url, work)
