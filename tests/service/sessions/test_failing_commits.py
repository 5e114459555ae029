"""The n-th commit fails, n = 1, 2, ...: the client never sees 2xx for it, nothing of it stays, and a retry succeeds.

The failures are the databases' own, raised at COMMIT by a deferred constraint.
"""

import itertools

import httpx
import psycopg
import pytest

from frugal.service.config import Settings
from tests.databases import rows
from tests.examples import clinic
from tests.service.conftest import publish
from tests.serving import problem, serving

WRITES = 6  # of the script below


def break_commit(client: httpx.Client, url: str, n: int) -> None:
    """Let the n-th commit that writes to sessions fail, once."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as db:
            db.execute("CREATE SEQUENCE commits")  # a sequence does not roll back
            db.execute(
                f"""CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('commits') = {n} THEN RAISE EXCEPTION 'this commit fails'; END IF; RETURN NULL; END $$"""
            )
            db.execute(
                """CREATE CONSTRAINT TRIGGER fails AFTER INSERT OR UPDATE ON sessions
                DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()"""
            )
        return
    commits = itertools.count(1)

    def install(db) -> None:
        db.create_function("commit_number", 0, lambda: next(commits))
        db.execute("CREATE TABLE nobody (id INTEGER PRIMARY KEY)")
        db.execute("CREATE TABLE dangling (id REFERENCES nobody DEFERRABLE INITIALLY DEFERRED)")
        for event in ("INSERT", "UPDATE"):
            db.execute(
                f"""CREATE TRIGGER fails_{event} AFTER {event} ON sessions WHEN commit_number() = {n}
                BEGIN INSERT INTO dangling VALUES (1); END"""
            )

    client.app.state.database.writer.run(install, 2)  # type: ignore[attr-defined]


def play(client: httpx.Client) -> tuple[dict, int]:
    """A whole session, every request sent again until it is acknowledged; the session and how often that was needed."""
    refused = 0

    def send(path: str, body: dict, **headers: str) -> dict:
        nonlocal refused
        for _ in range(3):
            reply = client.post(path, json=body, headers=headers)
            if reply.is_success:
                return reply.json()
            problem(reply, 503, "database-away")
            assert reply.headers["retry-after"] == "1"
            refused += 1
        raise AssertionError("a retry did not succeed")

    session = send("/v1/sessions", {"model": "clinic", "budget": 100, "known": {"iron": 5}}, **{"Idempotency-Key": "k"})
    answers = f"/v1/sessions/{session['id']}/answers"
    send(answers, {"feature": "fever", "value": "yes"})
    send(answers, {"answers": [{"feature": "sugar", "status": "pending"}, {"feature": "scan", "status": "pending"}]})
    send(answers, {"feature": "sugar", "value": 150})
    send(answers, {"feature": "scan", "value": "dark"})
    send("/v1/sessions", {"model": "clinic"})
    return client.get(f"/v1/sessions/{session['id']}").json(), refused


@pytest.mark.parametrize("n", range(1, WRITES + 2))
def test_a_commit_that_fails_is_never_acknowledged(database_url: str, n: int) -> None:
    with serving(Settings(database=database_url)) as client:
        publish(client, "clinic", clinic())
        break_commit(client, database_url, n)
        session, refused = play(client)
    assert refused == (1 if n <= WRITES else 0)
    assert (session["status"], session["spent"], session["revision"]) == ("done", 56.0, 5)
    assert [(line["feature"], line["cost"]) for line in session["answers"]] == [
        ("iron", 0.0),
        ("fever", 1.0),
        ("sugar", 5.0),
        ("scan", 50.0),
    ]
    assert rows(database_url, "SELECT count(*) FROM sessions") == [(2,)]
    assert rows(database_url, "SELECT count(*), sum(cost) FROM answers") == [(4, 56_000_000)]
