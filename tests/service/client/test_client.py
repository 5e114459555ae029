"""The Python client against a real server, some of its replies lost on the way."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import numpy as np
import pytest

from frugal.models import dump
from frugal.service.client import PENDING, UNAVAILABLE, Client, ClientError, Problem, Unreachable
from frugal.service.client.sessions import as_asked
from frugal.service.config import Settings
from frugal.service.keyform import new_key
from tests.databases import fresh_sqlite
from tests.examples import aimed, clinic, wide
from tests.service.client.wires import Relay, quick, relayed, scripted
from tests.serving import serving

GRAVE = {"fever": "yes", "sugar": 120, "scan": "dark"}
ADMIN = new_key()


@pytest.fixture
def client(shared_client: httpx.Client) -> Iterator[Client]:
    """A client of the shared clinic; waiting takes no time, and is noted in `waits`."""
    with quick(shared_client) as client:
        yield client


def test_run_drives_a_session_to_its_end(client):
    asked = []

    def acquire(question):
        asked.append((question["feature"], question["cost"]))
        return GRAVE[question["feature"]]

    session = client.run("clinic", acquire=acquire, budget=60, known={"shoe_size": 44}, reference="case 17")
    assert asked == [("fever", 1.0), ("sugar", 5.0), ("scan", 50.0)]
    assert (session["status"], session["spent"], session["reference"]) == ("done", 56.0, "case 17")
    assert session["prediction"]["label"] == "grave"
    assert client.session(session["id"]) == session


def test_a_run_that_crashed_goes_on_under_the_same_idempotency_key(client):
    opening = {"seed": 7, "confidence": 0.99, "idempotency_key": "case-18", "known": {"fever": "yes"}}
    first = client.open("clinic", **opening)
    client.answer(first["id"], "sugar", 120)
    asked = []
    session = client.run("clinic", lambda question: asked.append(question["feature"]) or "dark", **opening)
    assert (session["id"], session["seed"], asked) == (first["id"], 7, ["scan"])


def test_what_was_typed_becomes_what_the_question_wants(client):
    typed = {"fever": " yes ", "sugar": "120.0", "scan": "dark"}
    session = client.run("clinic", lambda question: typed[question["feature"]], budget=60)
    assert [answer["value"] for answer in session["answers"]] == ["yes", 120.0, "dark"]
    assert session["prediction"]["label"] == "grave"


@pytest.mark.parametrize("typed", ["", "high", "1,5", "inf", "nan"])
def test_what_is_no_number_is_left_to_the_server_to_refuse(client, typed):
    with pytest.raises(Problem, match="a finite number") as refused:
        client.run("clinic", lambda question: {"fever": "yes"}.get(question["feature"], typed))
    assert refused.value.slug == "wrong-answer"
    assert client.resume(refused.value.session_id, lambda question: {"sugar": "5", "iron": "5"}[question["feature"]])["status"] == "done"


def test_typed_text_finds_categories_that_are_numbers_or_truths():
    question = {"kind": "categorical", "categories": [1, 2.5, True, "1 or 2"]}
    assert [as_asked(question, text) for text in ("1", "2.5", "true", "1 or 2", "3")] == [1, 2.5, True, "1 or 2", "3"]
    assert [as_asked({"kind": "numeric", "categories": None}, given) for given in (63, None, PENDING)] == [63, None, PENDING]


@pytest.mark.parametrize("nothing", [None, UNAVAILABLE])
def test_run_understands_unavailable(client, nothing):
    session = client.run("clinic", lambda question: "yes" if question["feature"] == "fever" else nothing)
    assert session["status"] == "done"
    assert {answer["feature"]: answer.get("status") for answer in session["answers"]}["sugar"] == "unavailable"
    assert session["spent"] == 1.0


def order_scan(question):
    return PENDING if question["feature"] == "scan" else GRAVE[question["feature"]]


def test_run_collects_what_was_pending(client):
    came = iter([{}, {"scan": PENDING}, {"scan": "dark"}])
    wanted = []

    def collect(pending):
        wanted.append(pending)
        return next(came)

    session = client.run("clinic", order_scan, collect=collect)
    assert wanted == [["scan"]] * 3
    assert client.waits == [1.0, 1.0]
    assert (session["prediction"]["label"], session["spent"]) == ("grave", 56.0)


def test_a_session_that_waits_is_left_and_resumed(client):
    for collect in (None, lambda pending: None):
        left = client.run("clinic", order_scan, collect=collect)
        assert (left["status"], left["spent"]) == ("waiting", 56.0)
        assert client.resume(left["id"], order_scan)["status"] == "waiting"
        over = client.resume(left["id"], order_scan, collect=lambda pending: {"scan": None})
        assert (over["status"], over["spent"]) == ("done", 56.0)


def test_what_acquire_raises_leaves_the_session_to_resume(client):
    with pytest.raises(ZeroDivisionError) as caught:
        client.run("clinic", lambda question: 1 / 0, reference="broken")
    session = next(session for session in client.sessions("open") if session["reference"] == "broken")
    assert session["id"] in caught.value.__notes__[0]
    with pytest.raises(Problem) as refused:
        client.resume(session["id"], lambda question: "perhaps")
    assert (refused.value.slug, refused.value.session_id) == ("wrong-answer", session["id"])
    assert client.resume(session["id"], lambda question: "no")["prediction"]["label"] == "well"


def test_a_session_that_was_finished_meanwhile_is_given_as_it_ended(client):
    opened = client.open("clinic")

    def acquire(question):
        client.finish(opened["id"])
        return "yes"

    session = client.resume(opened["id"], acquire)
    assert (session["prediction"]["reason"], session["spent"]) == ("stopped", 0.0)


def test_step_by_step(client):
    session = client.open("clinic", budget=60)
    id = session["id"]
    assert client.answer(id, "fever", "yes")["ask"]["feature"] == "sugar"
    assert client.unavailable(id, "iron")["spent"] == 1.0
    assert client.pending(id, "scan")["spent"] == 51.0
    assert client.answer_all(id, {"sugar": np.int64(120)})["status"] == "waiting"
    assert client.answer_all(id, [{"feature": "scan", "value": "clear"}])["prediction"]["label"] == "ill"
    assert client.finish(id)["prediction"]["reason"] == "leaf"
    client.delete(id)
    with pytest.raises(Problem) as gone:
        client.session(id)
    assert (gone.value.status, gone.value.slug) == (404, "session-not-found")
    with pytest.raises(Problem):
        client.delete(id)


def test_a_problem_has_what_the_server_said(client):
    id = client.open("clinic", budget=2)["id"]
    with pytest.raises(Problem, match="remain") as refused:
        client.answer(id, "scan", "dark")
    problem = refused.value
    assert (problem.status, problem.slug, problem.body["cost"], problem.body["remaining"]) == (409, "over-budget", 50.0, 2.0)
    assert problem.detail == str(problem)


def test_decisions_with_nothing_kept(client):
    assert client.next("clinic", answers={"fever": "yes"}, budget=60)["ask"]["feature"] == "sugar"
    assert client.next("clinic", answers=iter([{"feature": "fever", "value": "yes"}]), spent=9)["spent"] == 9.0
    rows = client.predict("clinic", [GRAVE, {"fever": "no"}], budget=60)["rows"]
    assert [row["label"] for row in rows] == ["grave", "well"]


def test_an_aim_goes_wherever_a_budget_goes(client):
    client.publish("aimed", dump(aimed()))
    session = client.run("aimed", lambda question: GRAVE[question["feature"]], aim=5, budget=60)
    assert (session["aim"], session["budget"], session["spent"], session["prediction"]["reason"]) == (5.0, 60.0, 6.0, "aim")
    assert client.open("aimed", aim=0)["prediction"]["reason"] == "aim"
    assert client.next("aimed", answers={"fever": "yes", "sugar": 120}, aim=5)["prediction"]["reason"] == "aim"
    assert [row["cost"] for row in client.predict("aimed", [GRAVE, {"fever": "no"}], aim=5)["rows"]] == [6.0, 1.0]
    assert client.version("aimed", 1)["frontier"]["default"] == 1
    with pytest.raises(Problem, match="both say when to stop") as refused:
        client.open("aimed", aim=5, confidence=0.9)
    assert refused.value.slug == "invalid-request"


def test_sessions_come_page_after_page(client):
    opened = {client.open("clinic", reference="many")["id"] for _ in range(103)}
    found = [session["id"] for session in client.sessions() if session["reference"] == "many"]
    assert len(found) == 103
    assert set(found) == opened


def test_admins_publish_name_and_retire(tmp_path):
    (tmp_path / "wide.safetensors").write_bytes(dump(wide(3)))
    with fresh_sqlite(tmp_path) as url, serving(Settings(database=url, admin_key=ADMIN)) as server, quick(server, ADMIN) as admin:
        assert admin.publish("clinic", dump(clinic()))["version"] == 1
        assert admin.publish("clinic", tmp_path / "wide.safetensors", alias="live")["aliases"] == ["live"]
        assert admin.set_alias("clinic", "calm", 1)["aliases"] == {"live": 2, "calm": 1}
        admin.drop_alias("clinic", "calm")
        assert admin.retire("clinic", 2)["retired_at"]
        assert admin.model("clinic")["aliases"] == {"live": 2}
        assert [model["name"] for model in admin.models()] == ["clinic"]
        assert admin.version("clinic", 1)["classes"] == ["well", "ill", "grave"]
        assert {deed["action"] for deed in admin.audit()} == {"version.publish", "version.retire", "alias.drop", "alias.set"}


def test_admins_make_and_revoke_keys(tmp_path):
    with fresh_sqlite(tmp_path) as url, serving(Settings(database=url, admin_key=ADMIN)) as server, quick(server, ADMIN) as admin:
        chief = admin.create_key("chief", "admin")
        made = admin.create_key("ward", expires_at=datetime.now(UTC) + timedelta(days=1))
        assert {(key["owner"], key["role"]) for key in list(admin.keys())} == {("chief", "admin"), ("ward", "client")}
        with quick(server, made["key"]) as ward:
            assert list(ward.sessions()) == []
            with pytest.raises(Problem) as refused:
                ward.create_key("other")
            assert refused.value.slug == "forbidden"
            admin.revoke_key(made["id"])
            with pytest.raises(Problem) as revoked:
                list(ward.sessions())
            assert revoked.value.status == 401
        admin.revoke_key(chief["id"])
        assert all(key["revoked_at"] for key in list(admin.keys()))


# Replies that are lost


@pytest.fixture
def relay(shared_client: httpx.Client) -> Iterator[Relay]:
    with relayed(shared_client.base_url) as relay:
        yield relay


def test_a_lost_reply_is_sent_again_and_charged_once(shared_client, relay):
    with quick(shared_client, url=relay.url) as client:

        def acquire(question):
            relay.lose = 2
            return GRAVE[question["feature"]]

        relay.lose = 2
        session = client.run("clinic", acquire, reference="lossy")
        assert (session["spent"], session["prediction"]["label"], session["revision"]) == (56.0, "grave", 4)
        assert relay.lost == 8
        assert [found["id"] for found in client.sessions() if found["reference"] == "lossy"] == [session["id"]]


def test_finishing_and_deleting_survive_a_lost_reply(shared_client, relay):
    with quick(shared_client, url=relay.url) as client:
        id = client.open("clinic")["id"]
        relay.lose = 1
        assert client.finish(id)["status"] == "done"
        relay.lose = 1
        client.delete(id)
        client.set_alias("clinic", "brief", 1)
        relay.lose = 1
        client.drop_alias("clinic", "brief")
        assert relay.lost == 3


def test_publishing_is_not_repeated_when_its_reply_is_lost(shared_client, relay):
    with quick(shared_client, url=relay.url) as client:
        relay.lose = 1
        with pytest.raises(Unreachable, match="may have done it: look before you send it again") as lost:
            client.publish("once", dump(clinic()))
        assert lost.value.sent
        assert len(client.model("once")["versions"]) == 1


def test_a_server_that_keeps_losing_replies_is_given_up(shared_client, relay):
    with quick(shared_client, url=relay.url) as client:
        relay.lose = 99
        with pytest.raises(Unreachable) as lost:
            client.open("clinic")
        assert (lost.value.sent, relay.lost, len(client.waits)) == (True, 5, 4)


def test_no_server_is_unreachable_after_a_few_attempts(client):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        with quick(None, url=f"http://127.0.0.1:{taken.getsockname()[1]}") as nobody:
            for call in (lambda: nobody.open("clinic"), lambda: nobody.create_key("ward")):
                nobody.waits.clear()
                with pytest.raises(Unreachable) as refused:
                    call()
                assert not refused.value.sent
                assert len(nobody.waits) == 4
                assert all(0.1 * 2**n <= wait <= 0.2 * 2**n for n, wait in enumerate(nobody.waits))


def test_retry_after_is_honoured(tmp_path):
    with fresh_sqlite(tmp_path) as url, serving(Settings(database=url, admin_key=ADMIN, max_rate=1)) as server:
        with Client(str(server.base_url), ADMIN) as client:
            waits = []
            client._sleep = lambda seconds: (waits.append(seconds), time.sleep(seconds))
            for _ in range(4):  # two at once are allowed, then one a second
                assert list(client.models()) == []
        assert waits
        assert all(1 <= wait <= 1.1 for wait in waits)


def test_a_time_to_come_back_is_waited_for():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    replies = (f"503 Away\nRetry-After: {later}", "502 Bad Gateway\nRetry-After: soon", '200 OK\n\n{"id": "7"}')
    with scripted(*replies) as url, quick(None, url=url) as client:
        assert client.session("7") == {"id": "7"}
        assert 15 < client.waits[0] <= 20.1
        assert 0.2 <= client.waits[1] <= 0.4


def test_a_longer_wait_than_a_program_has_is_told_at_once():
    body = '{"type": "urn:frugal:problem:too-many-sessions", "detail": "Finish some."}'
    with scripted(f"429 Too Many\nRetry-After: 60\n\n{body}") as url, quick(None, url=url) as client:
        with pytest.raises(Problem, match="Finish some") as refused:
            client.open("clinic")
        assert (refused.value.slug, refused.value.retry_after, client.waits) == ("too-many-sessions", 60.0, [])


def test_making_a_key_is_not_repeated_after_an_error():
    with scripted("503 Away\nRetry-After: 1") as url, quick(None, url=url) as client:
        with pytest.raises(Problem, match="the server answered 503 Away") as refused:
            client.create_key("ward")
        assert (refused.value.slug, client.waits) == ("", [])


def test_something_else_than_the_service_is_told_apart():
    reply = "200 OK\n\n<html>hello</html>"
    with scripted(reply) as url, quick(None, url=url) as client, pytest.raises(ClientError, match="not as a Frugal server does"):
        client.model("clinic")


def test_what_cannot_be_sent_is_a_value_error(client):
    for url in ("localhost:8000", "ftp://localhost", "http://localhost:port"):
        with pytest.raises(ValueError, match="the server's address is"):
            Client(url)
    with pytest.raises(ValueError, match="copy it again"):
        Client("http://localhost", "frgl_\nx")
    for id in ("", ".."):
        with pytest.raises(ValueError, match="is no id and no name"):
            client.session(id)
    with pytest.raises(ValueError, match="not JSON compliant"):
        client.open("clinic", budget=float("nan"))
    with pytest.raises(TypeError, match="cannot be sent"):
        client.answer("7", "sugar", object())
    with pytest.raises(Problem, match="no session"):
        client.session("a?b#c")


def test_the_client_needs_httpx_alone():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, service.client; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "httpx" in loaded
    assert not loaded & {"models", "numpy", "fastapi", "sqlalchemy", "pydantic", "frugal.service.errors"}
