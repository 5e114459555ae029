"""Sweeps: every session whose time is up is ended, whatever is wrong with others; and lists, which end those that they meet."""

import pytest

from frugal.service.errors import DatabaseAway, Problem, VersionDamaged
from frugal.service.sessions import steps as steps_module
from frugal.service.sessions.state import Given, Session
from frugal.service.sessions.steps import Opening, Steps, sweep_forever
from tests.databases import rows
from tests.examples import clinic, wide
from tests.service.sessions.using import ME, change, with_steps

MANY = 2 * steps_module.AT_ONCE + 50
BY_STATUS = "SELECT name, status, count(*) FROM sessions GROUP BY name, status ORDER BY name"
DAMAGE = """
UPDATE archive_chunks SET bytes = :wrong WHERE archive_id IN (SELECT archive_id FROM versions WHERE name = :name)
"""


async def opened(steps: Steps, model: str, count: int) -> list[Session]:
    """Sessions whose time is up at once."""
    return [(await steps.open("me", Opening(model))).session for _ in range(count)]


def damage(steps: Steps, *names: str) -> None:
    for name in names:
        change(steps, DAMAGE, wrong=b"no model", name=name)
    steps.versions._loaded.clear()


def failures(steps: Steps) -> list[str]:
    heard: list[str] = []
    steps.failed = lambda error, version: heard.append(f"{version} {type(error).__name__}")
    return heard


def test_sessions_on_a_damaged_version_keep_no_others(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        await opened(steps, "broken", MANY)
        await opened(steps, "clinic", 3)
        await opened(steps, "torn", 5)
        await opened(steps, "clinic", MANY)
        damage(steps, "broken", "torn")
        heard = failures(steps)
        for _ in range(2):
            await steps.sweep()
            assert rows(database_url, BY_STATUS) == [("broken", "open", MANY), ("clinic", "expired", MANY + 3), ("torn", "open", 5)]
        assert (
            sorted(heard) == ["broken:1 VersionDamaged"] * 2 + ["torn:1 VersionDamaged"] * 2
        )  # each version was tried once in each sweep, not once for every session

    with_steps(database_url, work, {"clinic": clinic(), "broken": clinic(), "torn": clinic()}, ttl=0)


def test_a_version_that_was_mended_is_swept_next_time(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        await opened(steps, "broken", 3)
        whole = rows(database_url, "SELECT bytes FROM archive_chunks")[0][0]
        damage(steps, "broken")
        failures(steps)
        await steps.sweep()
        assert rows(database_url, BY_STATUS) == [("broken", "open", 3)]
        change(steps, DAMAGE, wrong=whole, name="broken")
        await steps.sweep()
        assert rows(database_url, BY_STATUS) == [("broken", "expired", 3)]

    with_steps(database_url, work, {"broken": clinic()}, ttl=0)


def test_one_session_that_cannot_be_ended_keeps_no_others(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(steps: Steps) -> None:
        sessions = await opened(steps, "clinic", MANY)
        odd = {session.id for session in sessions[: steps_module.AT_ONCE + 10]}
        append = steps.ledger.append

        async def failing(before: Session, after: Session) -> bool:
            if before.id in odd:
                raise DatabaseAway()  # as where a page of the file is damaged
            return await append(before, after)

        monkeypatch.setattr(steps.ledger, "append", failing)
        heard = failures(steps)
        await steps.sweep()
        assert rows(database_url, BY_STATUS) == [("clinic", "expired", MANY - len(odd)), ("clinic", "open", len(odd))]
        assert heard == ["clinic:1 DatabaseAway"] * len(odd)

    with_steps(database_url, work, {"clinic": clinic()}, ttl=0)


def test_a_database_that_is_away_ends_the_sweep(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(steps: Steps) -> None:
        await opened(steps, "clinic", 50)

        async def away(*_: object) -> None:
            raise DatabaseAway()

        heard = failures(steps)
        with monkeypatch.context() as patch:
            patch.setattr(steps.ledger, "append", away)
            patch.setattr(steps.ledger, "ping", away)
            with pytest.raises(DatabaseAway):
                await steps.sweep()
        assert heard == ["clinic:1 DatabaseAway"]
        await steps.sweep()
        assert rows(database_url, BY_STATUS) == [("clinic", "expired", 50)]

    with_steps(database_url, work, {"clinic": clinic()}, ttl=0)


def test_a_sweep_that_fails_is_told_and_tried_again(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(steps: Steps) -> None:
        heard: list[Exception] = []

        async def fails_then_ends() -> None:
            if len(heard) == 2:
                raise KeyboardInterrupt
            raise ValueError

        monkeypatch.setattr(steps, "sweep", fails_then_ends)
        with pytest.raises(KeyboardInterrupt):
            await sweep_forever(steps, 0.001, heard.append)
        assert [type(error) for error in heard] == [ValueError, ValueError]

    with_steps(database_url, work, {})


def test_all_that_is_past_its_retention_goes_in_one_sweep(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        await opened(steps, "clinic", MANY)
        await steps.sweep()
        change(steps, "UPDATE sessions SET expires_at = :long_ago", long_ago="2020-01-01T00:00:00.000000Z")
        await steps.sweep()
        assert rows(database_url, "SELECT count(*) FROM sessions") == [(0,)]

    with_steps(database_url, work, {"clinic": clinic()}, ttl=0, retention=3600)


def queries(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the database from here on, by whatever way."""
    heard: list[str] = []

    def counted(owner: object, name: str) -> None:
        real = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given: (heard.append(name), real(*given))[1])

    for name in ("read", "write"):
        counted(steps.database, name)
    if hasattr(steps.ledger, "pool"):
        counted(steps.ledger.pool, "_run")
    else:
        counted(steps.ledger, "_fetch")
    return heard


def test_a_page_of_sessions_is_one_query(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"model{i}" for i in range(8)]

    async def work(steps: Steps) -> None:
        steps.versions.most = 16
        for i in range(40):
            id = (await steps.open("me", Opening(names[i % 8], reference=f"case {i}"))).session.id
            if i % 2:
                await steps.answer("me", id, [Given("f0", "value", 1.0), Given("f1", "pending")])
            if i % 5 == 0:
                await steps.finish("me", id)
        await steps.open("you", Opening(names[0]))
        heard = queries(steps, monkeypatch)
        page, last = await steps.page("me", None, 30, None)
        assert len(heard) == 1
        assert [seen.session.reference for seen in page] == [f"case {i}" for i in range(39, 9, -1)]
        assert last == page[-1].session.id
        rest, end = await steps.page("me", last, 30, None)
        assert ([seen.session.reference for seen in rest], end) == ([f"case {i}" for i in range(9, -1, -1)], None)
        assert len(heard) == 2
        for seen in [*page, *rest]:
            one = await steps.read("me", seen.session.id)
            assert (one.session, one.standing) == (seen.session, seen.standing)
        heard.clear()
        steps.versions._loaded.clear()
        over, _ = await steps.page("me", None, 100, "done")  # what is over needs no version: none is loaded
        assert (len(heard), len(over), len(steps.versions)) == (1, 8, 0)
        assert (await steps.page("me", None, 100, "expired"))[0] == []
        assert (await steps.page("nobody", None, 100, None)) == ([], None)

    with_steps(database_url, work, {name: wide(3) for name in names})


def test_a_session_that_is_over_is_shown_though_its_version_is_damaged(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        id = (await steps.open("me", Opening("clinic"))).session.id
        over = (await steps.finish("me", id)).session
        damage(steps, "clinic")
        assert (await steps.read("me", id)).session == over
        assert [seen.session for seen in (await steps.page("me", None, 10, None))[0]] == [over]

    with_steps(database_url, work, {"clinic": clinic()})


@pytest.mark.parametrize("ttl", [3600, 0], ids=["open", "due"])
def test_a_session_that_is_open_is_shown_though_its_version_is_damaged(database_url: str, ttl: int) -> None:
    async def work(steps: Steps) -> None:
        lost, well = (await opened(steps, "clinic", 1))[0], (await opened(steps, "other", 1))[0]
        damage(steps, "clinic")
        seen = await steps.read("me", lost.id)
        assert (seen.session.id, seen.session.status, seen.standing) == (lost.id, "open", None)
        page, _ = await steps.page("me", None, 10, None)
        assert {each.session.id: each.standing is None for each in page} == {lost.id: True, well.id: ttl == 0}
        for move in (steps.finish("me", lost.id), steps.answer("me", lost.id, [Given("fever", "value", "yes")])):
            with pytest.raises(VersionDamaged, match="clinic:1 are damaged: publish the model again"):
                await move

    with_steps(database_url, work, {"clinic": clinic(), "other": clinic()}, ttl=ttl)


def test_a_list_ends_the_sessions_whose_time_is_up(database_url: str) -> None:
    async def work(steps: Steps) -> None:
        sessions = await opened(steps, "clinic", 3)
        await steps.delete(ME, sessions[1].id)
        page, _ = await steps.page("me", None, 10, None)
        assert [(seen.session.id, seen.session.status) for seen in page] == [(sessions[i].id, "expired") for i in (2, 0)]
        assert rows(database_url, BY_STATUS) == [("clinic", "expired", 2)]
        with pytest.raises(Problem, match="no session"):
            await steps.read("me", sessions[1].id)

    with_steps(database_url, work, {"clinic": clinic()}, ttl=0)
