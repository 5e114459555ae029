"""Every rule that reads before it writes (the last, the first, a name taken, a limit), raced on both databases."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from frugal.models import dump
from frugal.service.config import Settings
from frugal.service.errors import Problem
from frugal.service.owners import issuing as keys
from frugal.service.registry import versions as registry
from frugal.service.registry.cache import Versions
from frugal.service.sessions.opening import open_ledger
from frugal.service.sessions.state import Given
from frugal.service.sessions.steps import Opening, Steps
from frugal.service.store import audit
from frugal.service.store.audit import Actor
from frugal.service.store.db import Database, open_database
from frugal.service.store.ids import new_id
from frugal.service.tables import Reader
from frugal.service.training import datasets, jobs
from frugal.service.training.spec import Spec
from tests.databases import rows
from tests.examples import clinic
from tests.racing import at_once, slugs
from tests.serving import serving

ME = Actor("me")
ROUNDS = 20
MANY = 8


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """With a connection for every racer."""
    database = open_database(Settings(database=database_url, pool=4 * MANY))
    yield database
    database.close()


def admin(database: Database) -> Actor:
    """Somebody with an admin key."""
    return Actor("boss", UUID(keys.create(database, ME, "boss", "admin")["id"]))


def stored(database: Database, name: str, row: bytes = b"31,red,no\n") -> Any:
    with Reader() as reader:
        reader.feed(b"age,colour,sick\n" + (row + b"40,blue,yes\n") * 10)
        return datasets.store(database, ME, name, reader.finish(), 100, None)


def asked(dataset: str) -> Spec:
    return Spec(dataset=dataset, label="sick", learner="budget-forest", publish={"name": "small", "alias": None})


def test_admins_who_revoke_each_other_leave_one(database: Database, database_url: str) -> None:
    for _ in range(ROUNDS):
        first, second = admin(database), admin(database)
        assert slugs(at_once([partial(revoke, database, first, second), partial(revoke, database, second, first)])) == ["conflict"]
        [(id,)] = rows(database_url, "SELECT id FROM keys WHERE revoked_at IS NULL")
        keys.revoke(database, ME, UUID(str(id)))  # from the machine itself everything may go


def test_a_ring_of_admins_who_revoke_each_other_leaves_one(database: Database, database_url: str) -> None:
    ring = [admin(database) for _ in range(MANY)]
    works = [partial(revoke, database, one, other) for one, other in zip(ring, [*ring[1:], ring[0]], strict=True)]
    assert slugs(at_once(works)) == ["conflict"]
    assert rows(database_url, "SELECT count(*) FROM keys WHERE revoked_at IS NULL") == [(1,)]


def revoke(database: Database, actor: Actor, other: Actor) -> None:
    assert other.key_id is not None
    keys.revoke(database, actor, other.key_id)


def test_of_first_keys_made_at_once_without_a_key_one_is_made(database_url: str) -> None:
    """The first key ends the open mode: whoever came in before it has no say in keys after it."""
    with serving(Settings(database=database_url)) as client:

        def create(number: int) -> int:
            return client.post("/v1/admin/keys", json={"owner": f"owner-{number}", "role": "admin"}).status_code

        replies = at_once([partial(create, number) for number in range(MANY)])
    assert sorted(replies) == [201] + [401] * (MANY - 1)
    assert rows(database_url, "SELECT count(*) FROM keys") == [(1,)]


def test_a_first_key_is_not_revoked_by_who_came_in_without_one(database: Database, database_url: str) -> None:
    visitor = Actor("local", None, "request-1")
    made = UUID(keys.create(database, visitor, "boss", "admin")["id"])
    with pytest.raises(Problem, match="Send yours"):
        keys.revoke(database, visitor, made)
    assert rows(database_url, "SELECT count(*) FROM keys WHERE revoked_at IS NULL") == [(1,)]


def test_a_data_set_deleted_by_several_is_deleted_once(database: Database, database_url: str) -> None:
    for _ in range(ROUNDS):
        stored(database, "small")
        outcomes = at_once([partial(datasets.delete, database, ME, "small")] * 4)
        assert slugs(outcomes) == ["dataset-not-found"] * 3
    assert rows(database_url, "SELECT count(*) FROM audit_log WHERE action = 'dataset.delete'") == [(ROUNDS,)]


def test_a_data_set_deleted_while_it_is_priced_is_priced_or_gone(database: Database) -> None:
    for _ in range(ROUNDS):
        stored(database, "small")
        price = partial(datasets.set_costs, database, ME, "small", {"age": {"cost": 2.0}})
        deleted, *priced = at_once([partial(datasets.delete, database, ME, "small"), price, price, price])
        assert deleted is None
        assert set(slugs(priced)) <= {"dataset-not-found"}


def test_a_data_set_is_deleted_or_trained_on_not_both(database: Database, database_url: str) -> None:
    for _ in range(ROUNDS):
        stored(database, "small")
        submit = partial(jobs.submit, database, ME, asked("small"))
        outcomes = at_once([partial(datasets.delete, database, ME, "small"), submit])
        there = rows(database_url, "SELECT count(*) FROM datasets") == [(1,)]
        assert slugs(outcomes) == (["dataset-in-use"] if there else ["dataset-not-found"])
        assert rows(database_url, "SELECT count(*) FROM jobs WHERE status = 'queued'") == [(int(there),)]
        if there:
            jobs.cancel(database, ME, outcomes[1][0].id)
            datasets.delete(database, ME, "small")


def test_of_tables_stored_under_one_name_at_once_one_stays(database: Database, database_url: str) -> None:
    works: list[Callable[[], Any]] = [partial(stored, database, "small", b"%d,red,no\n" % (number % 4)) for number in range(MANY)]
    for _ in range(5):
        outcomes = at_once(works)
        new = [outcome for outcome in outcomes if not isinstance(outcome, Problem) and not outcome[1]]
        assert len(new) == 1
        assert slugs(outcomes) == ["dataset-exists"] * (MANY - 2)  # two of them sent the same table
        assert rows(database_url, "SELECT count(*) FROM archives") == [(1,)]
        datasets.delete(database, ME, "small")


def test_versions_published_at_once_are_numbered_and_the_alias_stands_for_the_last(database: Database, database_url: str) -> None:
    data = dump(clinic())
    publish = partial(registry.publish, database, "clinic", data, ME, "live")
    outcomes = at_once([publish] * (4 * MANY))
    assert sorted(found["version"] for found in outcomes) == list(range(1, 4 * MANY + 1))
    assert rows(database_url, "SELECT number FROM aliases") == [(4 * MANY,)]


def test_an_alias_moved_by_several_stands_where_the_last_deed_put_it(database: Database, database_url: str) -> None:
    data = dump(clinic())
    for _ in range(MANY):
        registry.publish(database, "clinic", data, ME)
    works = [partial(registry.set_alias, database, "clinic", "live", number, ME) for number in range(1, MANY + 1)]
    for _ in range(ROUNDS):
        assert slugs(at_once([*works, partial(drop_alias, database)])) == []
        last = database.read(lambda db: audit.listed(db, None, 1))[0]
        there = [(last.details["version"],)] if last.action == "alias.set" else []
        assert rows(database_url, "SELECT number FROM aliases") == there


def drop_alias(database: Database) -> None:
    with suppress(Problem):  # it is not there yet
        registry.drop_alias(database, "clinic", "live", ME)


def test_a_version_retired_by_several_keeps_the_first_time(database: Database) -> None:
    registry.publish(database, "clinic", dump(clinic()), ME)
    outcomes = at_once([partial(registry.retire, database, "clinic", 1, ME)] * MANY)
    assert len({found["retired_at"] for found in outcomes}) == 1


def test_a_job_cancelled_by_several_is_cancelled_once(database: Database, database_url: str) -> None:
    stored(database, "small")
    job = jobs.submit(database, ME, asked("small"))[0]
    assert {row.status for row in at_once([partial(jobs.cancel, database, ME, job.id)] * MANY)} == {"cancelled"}
    assert rows(database_url, "SELECT count(*) FROM job_events WHERE kind = 'cancelled'") == [(1,)]


def with_steps(url: str, work: Callable[[Steps], Any], most_open: int = 1_000_000) -> None:
    async def main() -> None:
        settings = Settings(database=url, pool=4 * MANY)
        database = open_database(settings)
        registry.publish(database, "clinic", dump(clinic()), ME)
        ledger = await open_ledger(database, settings)
        try:
            await work(Steps(ledger, Versions(database, 4), database, 3600, most_open))
        finally:
            await ledger.close()
            database.close()

    asyncio.run(main())


async def told(*moves: Any) -> list[Any]:
    outcomes = await asyncio.gather(*moves, return_exceptions=True)
    assert all(isinstance(outcome, Problem) or not isinstance(outcome, BaseException) for outcome in outcomes), outcomes
    return outcomes


def test_sessions_opened_at_once_are_no_more_than_the_owner_may_have(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        places = 5
        for _ in range(3):
            outcomes = await told(*(steps.open("me", Opening("clinic")) for _ in range(4 * MANY)))
            assert slugs(outcomes) == ["too-many-sessions"] * (4 * MANY - places)
            assert rows(database_url, "SELECT count(*) FROM sessions") == [(5,)]
            opened = [seen.session.id for seen in outcomes if not isinstance(seen, Problem)]
            await told(steps.delete(ME, opened[0]), steps.delete(ME, opened[1]))
            places = 2  # free at once, and no more than these

    with_steps(database_url, work, most_open=5)


def test_a_session_deleted_by_several_is_deleted_once(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        for _ in range(ROUNDS):
            id = (await steps.open("me", Opening("clinic"))).session.id
            outcomes = await told(*(steps.delete(ME, id) for _ in range(4)), steps.answer("me", id, [Given("fever", "value", "yes")]))
            assert slugs(outcomes[:4]) == ["session-not-found"] * 3
            assert rows(database_url, "SELECT count(*) FROM answers") == [(0,)]
        assert rows(database_url, "SELECT count(*) FROM audit_log WHERE action = 'session.delete'") == [(ROUNDS,)]

    with_steps(database_url, work)


def test_a_job_submitted_with_a_key_while_its_data_set_goes_is_one_or_none(database: Database, database_url: str) -> None:
    for number in range(ROUNDS):
        stored(database, "small")
        submit = partial(jobs.submit, database, ME, asked("small"), (f"key-{number}", "hash"))
        outcomes = at_once([partial(datasets.delete, database, ME, "small"), submit, submit])
        submitted = {outcome[0].id for outcome in outcomes[1:] if not isinstance(outcome, Problem)}
        assert len(submitted) == int(outcomes[0] is not None)
        for id in submitted:
            jobs.cancel(database, ME, id)
            datasets.delete(database, ME, "small")


def test_somebody_unknown_is_told_so_while_others_race(database: Database) -> None:
    boss = admin(database)
    outcomes = at_once([partial(keys.revoke, database, boss, new_id()) for _ in range(MANY)])
    assert slugs(outcomes) == ["key-not-found"] * MANY
