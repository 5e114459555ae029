"""Every rule of a step, over HTTP, on both databases."""

import json
import re
import time

import httpx
import pytest

from frugal.service.config import Settings
from tests.databases import rows
from tests.examples import clinic, wide
from tests.service.conftest import publish
from tests.serving import problem, serving
from tests.waiting import eventually, let_time_pass


def opened(client: httpx.Client, **body) -> dict:
    reply = client.post("/v1/sessions", json={"model": "clinic", **body})
    assert reply.status_code == 201, reply.text
    return reply.json()


def answer(client: httpx.Client, session: dict, *items: tuple, **status) -> httpx.Response:
    """answer(client, s, ("fever", "yes")) or answer(client, s, scan="pending")."""
    given = [{"feature": name, "value": value} for name, value in items]
    given += [{"feature": name, "status": value} for name, value in status.items()]
    body = given[0] if len(given) == 1 else {"answers": given}
    return client.post(f"/v1/sessions/{session['id']}/answers", json=body)


def charged(session: dict) -> dict[str, float]:
    return {line["feature"]: line["cost"] for line in session["answers"]}


def test_a_session_from_its_opening_to_a_leaf(client: httpx.Client) -> None:
    reply = client.post("/v1/sessions", json={"model": "clinic", "budget": 60, "reference": "case 17", "seed": 7})
    session = reply.json()
    assert reply.status_code == 201
    assert reply.headers["location"] == f"/v1/sessions/{session['id']}"
    assert set(session) == {
        "id", "model", "status", "revision", "reference", "seed", "ask", "budget", "spent", "remaining",
        "aim", "confidence", "answers", "prediction", "created_at", "updated_at", "expires_at",
    }  # fmt: skip
    assert session["model"] == {"name": "clinic", "version": 1}
    assert (session["status"], session["revision"], session["reference"], session["seed"]) == ("open", 1, "case 17", 7)
    assert session["ask"] == {
        "feature": "fever",
        "cost": 1.0,
        "kind": "categorical",
        "categories": ["no", "yes"],
        "unit": None,
        "question": "Is there a fever?",
        "delayed": False,
        "why": {"trees_waiting": 1, "votes_undecided": 1.0, "price": 1.0},
    }
    assert (session["budget"], session["spent"], session["remaining"]) == (60.0, 0.0, 60.0)
    assert session["prediction"] == {
        "label": "well",
        "probabilities": {"well": 13 / 22, "ill": 5 / 22, "grave": 4 / 22},
        "votes": {"well": 13 / 22, "ill": 5 / 22, "grave": 4 / 22},
        "final": False,
        "reason": None,
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", session["created_at"])
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", session["id"])

    session = answer(client, session, ("fever", "yes")).json()
    assert (session["ask"]["feature"], session["ask"]["unit"], session["spent"]) == ("sugar", "mg/dl", 1.0)
    session = answer(client, session, ("sugar", 120)).json()
    assert (session["ask"]["feature"], session["ask"]["delayed"], session["remaining"]) == ("scan", True, 54.0)
    session = answer(client, session, ("scan", "dark")).json()
    assert (session["status"], session["ask"], session["spent"], session["revision"]) == ("done", None, 56.0, 4)
    assert session["prediction"] == {
        "label": "grave",
        "probabilities": {"well": 0.0, "ill": 0.0, "grave": 1.0},
        "votes": {"well": 0.0, "ill": 0.0, "grave": 1.0},
        "final": True,
        "reason": "leaf",
    }
    assert client.get(f"/v1/sessions/{session['id']}").json() == session


def test_a_repeated_answer_charges_nothing(client: httpx.Client, database_url: str) -> None:
    session = opened(client, budget=60)
    first = answer(client, session, ("fever", "yes"))
    assert "idempotent-replayed" not in first.headers
    again = answer(client, session, ("fever", "yes"))
    assert (again.status_code, again.headers["idempotent-replayed"]) == (200, "true")
    assert again.json() == first.json()
    numbers = answer(client, session, ("sugar", 120)).json()
    replay = answer(client, session, ("sugar", 120.0))
    assert (replay.headers["idempotent-replayed"], replay.json()) == ("true", numbers)
    assert rows(database_url, "SELECT count(*), sum(cost) FROM answers") == [(2, 6_000_000)]


def test_a_replay_gives_the_session_as_it_stands_now_also_when_done(client: httpx.Client) -> None:
    session = opened(client)
    answer(client, session, ("fever", "yes"))
    done = client.post(f"/v1/sessions/{session['id']}/finish").json()
    replay = answer(client, session, ("fever", "yes"))
    assert (replay.status_code, replay.headers["idempotent-replayed"], replay.json()) == (200, "true", done)


def test_another_value_is_a_conflict_and_changes_nothing(client: httpx.Client) -> None:
    session = opened(client)
    before = answer(client, session, ("fever", "yes")).json()
    assert problem(answer(client, session, ("fever", "no")), 409, "answer-conflict")["feature"] == "fever"
    problem(answer(client, session, fever="unavailable"), 409, "answer-conflict")
    problem(answer(client, session, fever="pending"), 409, "answer-conflict")
    assert client.get(f"/v1/sessions/{session['id']}").json() == before


def test_several_answers_are_one_step(client: httpx.Client) -> None:
    session = opened(client, budget=60)
    after = answer(client, session, ("fever", "yes"), ("iron", 12), ("sugar", 80)).json()
    assert charged(after) == {"fever": 1.0, "iron": 7.0, "sugar": 3.0}  # iron entered the group, so sugar costs less
    assert (after["revision"], after["spent"], after["status"], after["prediction"]["label"]) == (2, 11.0, "done", "ill")


def test_several_answers_are_all_or_nothing(client: httpx.Client, database_url: str) -> None:
    session = opened(client, budget=10)
    refused = problem(answer(client, session, ("fever", "yes"), ("sugar", 120), ("iron", 1), scan="pending"), 409, "over-budget")
    assert (refused["cost"], refused["remaining"]) == (60.0, 10.0)
    problem(answer(client, session, ("fever", "yes"), ("sugar", "high")), 422, "wrong-answer")
    assert client.get(f"/v1/sessions/{session['id']}").json() == session
    assert rows(database_url, "SELECT count(*) FROM answers") == [(0,)]


def test_a_feature_named_twice_is_refused(client: httpx.Client) -> None:
    session = opened(client)
    problem(answer(client, session, ("fever", "yes"), ("fever", "yes")), 422, "invalid-request")
    answer(client, session, ("fever", "yes"))
    problem(answer(client, session, ("fever", "yes"), ("fever", "yes")), 422, "invalid-request")


def test_of_several_those_stored_and_equal_are_skipped(client: httpx.Client) -> None:
    session = opened(client, budget=6)
    answer(client, session, ("fever", "yes"))
    after = answer(client, session, ("fever", "yes"), ("sugar", 120))
    assert "idempotent-replayed" not in after.headers
    assert (after.json()["spent"], charged(after.json())) == (6.0, {"fever": 1.0, "sugar": 5.0})
    problem(answer(client, session, ("fever", "no"), ("sugar", 120)), 409, "answer-conflict")


def test_unasked_answers_are_taken_and_charged(client: httpx.Client) -> None:
    session = opened(client, budget=60)
    after = answer(client, session, ("scan", "dark")).json()
    assert (after["spent"], after["ask"]["feature"], after["status"]) == (50.0, "fever", "open")


def test_an_answer_beyond_the_budget_is_refused_with_what_remains(client: httpx.Client) -> None:
    session = opened(client, budget=6.5)
    answer(client, session, ("fever", "yes"))
    refused = problem(answer(client, session, ("scan", "dark")), 409, "over-budget")
    assert (refused["cost"], refused["remaining"]) == (50.0, 5.5)
    assert client.get(f"/v1/sessions/{session['id']}").json()["spent"] == 1.0


def test_where_nothing_fits_the_budget_the_session_ends(client: httpx.Client) -> None:
    session = opened(client, budget=5)
    after = answer(client, session, ("fever", "yes")).json()
    assert (after["status"], after["prediction"]["reason"], after["prediction"]["label"]) == ("done", "budget", "ill")
    assert after["prediction"]["probabilities"] == {"well": 0.25, "ill": 5 / 12, "grave": 4 / 12}


def test_unavailable_costs_nothing_opens_no_group_and_is_final(client: httpx.Client) -> None:
    session = opened(client)
    answer(client, session, ("fever", "yes"))
    after = answer(client, session, sugar="unavailable").json()
    assert after["answers"][-1]["status"] == "unavailable"
    assert "value" not in after["answers"][-1]
    assert (after["spent"], charged(after)["sugar"]) == (1.0, 0.0)
    assert after["ask"]["feature"] == "scan"  # missing goes to the bigger child
    problem(answer(client, session, ("sugar", 90)), 409, "answer-conflict")
    assert answer(client, session, ("iron", 3)).json()["spent"] == 8.0  # 7, not 4: the group was not entered


def test_pending_is_charged_when_recorded_and_its_value_changes_no_cost(client: httpx.Client) -> None:
    session = opened(client, budget=60)
    answer(client, session, ("fever", "yes"), ("sugar", 120))
    waiting = answer(client, session, scan="pending").json()
    assert (waiting["status"], waiting["ask"], waiting["spent"]) == ("waiting", None, 56.0)
    assert waiting["prediction"]["final"] is False
    assert waiting["answers"][-1]["status"] == "pending"
    again = answer(client, session, scan="pending")
    assert (again.headers["idempotent-replayed"], again.json()) == ("true", waiting)
    done = answer(client, session, ("scan", "clear")).json()
    assert (done["status"], done["spent"], done["prediction"]["label"], done["revision"]) == ("done", 56.0, "ill", 4)
    assert [line["feature"] for line in done["answers"]] == ["fever", "sugar", "scan"]
    problem(answer(client, session, scan="pending"), 409, "answer-conflict")
    assert answer(client, session, ("scan", "clear")).headers["idempotent-replayed"] == "true"


def test_pending_opens_its_group_and_the_session_goes_on_around_it(client: httpx.Client) -> None:
    session = opened(client)
    after = answer(client, session, sugar="pending").json()
    assert (after["spent"], after["status"], after["ask"]["feature"]) == (5.0, "open", "fever")
    assert answer(client, session, ("iron", 12)).json()["spent"] == 9.0  # 4: the order of sugar entered the group


def test_an_order_that_came_to_nothing_stays_paid(client: httpx.Client) -> None:
    session = opened(client)
    answer(client, session, ("fever", "yes"))
    answer(client, session, sugar="pending")
    after = answer(client, session, sugar="unavailable").json()
    assert (after["spent"], charged(after)["sugar"], after["ask"]["feature"]) == (6.0, 5.0, "scan")
    assert answer(client, session, ("iron", 12)).json()["spent"] == 10.0


def test_known_is_free_and_opens_no_group(client: httpx.Client) -> None:
    session = opened(client, known={"fever": "yes", "sugar": 80, "shoe_size": "not even a number"}, budget=7)
    assert [(line["feature"], line["value"], line["cost"], line["source"]) for line in session["answers"]] == [
        ("fever", "yes", 0.0, "known"),
        ("sugar", 80.0, 0.0, "known"),
    ]
    assert (session["spent"], session["ask"]["feature"], session["ask"]["cost"]) == (0.0, "iron", 7.0)
    problem(answer(client, session, ("sugar", 81)), 409, "answer-conflict")
    assert answer(client, session, ("sugar", 80)).headers["idempotent-replayed"] == "true"


def test_known_may_be_unavailable(client: httpx.Client) -> None:
    session = opened(client, known={"fever": "yes", "sugar": None})
    assert session["answers"][1] | {"at": ""} == {"feature": "sugar", "status": "unavailable", "cost": 0.0, "source": "known", "at": ""}
    assert session["ask"]["feature"] == "scan"


def test_groups_are_remembered_across_steps(client: httpx.Client) -> None:
    session = opened(client)
    answer(client, session, ("fever", "yes"))
    after = answer(client, session, ("sugar", 80)).json()
    assert (after["ask"]["feature"], after["ask"]["cost"]) == ("iron", 4.0)
    assert answer(client, session, ("iron", 1)).json()["spent"] == 10.0


def test_features_that_are_unknown_unused_or_of_wrong_value_are_refused(client: httpx.Client) -> None:
    session = opened(client)
    for item in (("nose", 1), ("shoe_size", 42), ("fever", "maybe"), ("fever", True), ("sugar", "120"), ("sugar", True)):
        problem(answer(client, session, item), 422, "wrong-answer")
    problem(client.post("/v1/sessions", json={"model": "clinic", "known": {"nose": 1}}), 422, "wrong-answer")
    problem(client.post("/v1/sessions", json={"model": "clinic", "known": {"fever": 1}}), 422, "wrong-answer")
    assert client.get(f"/v1/sessions/{session['id']}").json() == session


def test_budget_null_is_unlimited(client: httpx.Client) -> None:
    session = opened(client, budget=None)
    assert (session["budget"], session["remaining"]) == (None, None)
    after = answer(client, session, ("scan", "dark")).json()
    assert (after["budget"], after["spent"], after["remaining"]) == (None, 50.0, None)


def test_budget_zero_predicts_from_nothing(client: httpx.Client) -> None:
    session = opened(client, budget=0)
    assert (session["status"], session["prediction"]["reason"], session["prediction"]["label"]) == ("done", "budget", "well")
    assert (session["budget"], session["spent"], session["remaining"]) == (0.0, 0.0, 0.0)


def test_a_session_may_be_done_at_its_opening(client: httpx.Client) -> None:
    session = opened(client, known={"fever": "no"})
    assert (session["status"], session["ask"], session["revision"]) == ("done", None, 1)
    assert session["prediction"] == {
        "label": "well", "probabilities": {"well": 1.0, "ill": 0.0, "grave": 0.0},
        "votes": {"well": 1.0, "ill": 0.0, "grave": 0.0}, "final": True, "reason": "leaf",
    }  # fmt: skip
    problem(answer(client, session, ("sugar", 80)), 409, "session-closed")


def test_confidence_stops_a_session(client: httpx.Client) -> None:
    assert opened(client, confidence=0.5)["prediction"]["reason"] == "confident"
    assert opened(client, confidence=0.6)["status"] == "open"


def test_finish_predicts_what_the_open_session_showed(client: httpx.Client) -> None:
    session = opened(client)
    shown = answer(client, session, ("fever", "yes")).json()
    reply = client.post(f"/v1/sessions/{session['id']}/finish")
    done = reply.json()
    assert (reply.status_code, done["status"], done["ask"], done["revision"]) == (200, "done", None, 3)
    assert done["prediction"] == shown["prediction"] | {"final": True, "reason": "stopped"}
    again = client.post(f"/v1/sessions/{session['id']}/finish", json={})
    assert (again.status_code, again.json()) == (200, done)
    problem(answer(client, session, ("sugar", 80)), 409, "session-closed")


def test_checks_come_in_the_order_of_the_contract(client: httpx.Client) -> None:
    """Shape, existence, replay, feature or value, conflict, closed, budget."""
    session = opened(client, budget=2)
    answer(client, session, ("fever", "yes"))  # nothing else fits: done
    assert client.get(f"/v1/sessions/{session['id']}").json()["status"] == "done"
    gone = {"id": "01890000-0000-7000-8000-000000000000"}
    problem(client.post(f"/v1/sessions/{gone['id']}/answers", json={"feature": "fever"}), 422, "invalid-request")
    problem(answer(client, gone, ("nose", 1)), 404, "session-not-found")
    problem(answer(client, session, ("fever", "yes"), ("nose", 1)), 422, "wrong-answer")
    problem(answer(client, session, ("fever", "no"), ("nose", 1)), 422, "wrong-answer")
    problem(answer(client, session, ("fever", "no"), ("scan", "dark")), 409, "answer-conflict")
    problem(answer(client, session, ("scan", "dark")), 409, "session-closed")
    assert answer(client, session, ("fever", "yes")).status_code == 200


def test_an_omitted_seed_is_zero(client: httpx.Client) -> None:
    assert opened(client)["seed"] == 0


def test_a_session_expires_and_is_swept(database_url: str) -> None:
    with serving(Settings(database=database_url, session_ttl=3600, sweep_every=0.05)) as client:
        publish(client, "clinic", clinic())
        session = opened(client)
        shown = answer(client, session, ("fever", "yes")).json()
        let_time_pass(client, 3600)
        eventually(lambda: rows(database_url, "SELECT status, revision FROM sessions"), lambda found: found == [("expired", 3)])
        expired = client.get(f"/v1/sessions/{session['id']}").json()
        assert (expired["status"], expired["ask"]) == ("expired", None)
        assert expired["prediction"] == shown["prediction"] | {"final": True, "reason": "expired"}
        problem(answer(client, session, ("sugar", 80)), 409, "session-closed")
        replay = answer(client, session, ("fever", "yes"))
        assert (replay.headers["idempotent-replayed"], replay.json()) == ("true", expired)
        assert client.post(f"/v1/sessions/{session['id']}/finish").json() == expired


def test_a_session_past_its_time_is_expired_before_any_sweep(database_url: str) -> None:
    with serving(Settings(database=database_url, session_ttl=3600, sweep_every=3600)) as client:
        publish(client, "clinic", clinic())
        session = opened(client)
        let_time_pass(client, 3600)
        assert problem(answer(client, session, ("fever", "yes")), 409, "session-closed")["session_status"] == "expired"
        assert client.get(f"/v1/sessions/{session['id']}").json()["prediction"]["reason"] == "expired"
        assert rows(database_url, "SELECT status, spent FROM sessions") == [("expired", 0)]


def test_a_deleted_session_is_gone(client: httpx.Client, database_url: str) -> None:
    session = opened(client)
    answer(client, session, ("fever", "yes"))
    url = f"/v1/sessions/{session['id']}"
    reply = client.delete(url)
    assert (reply.status_code, reply.content) == (204, b"")
    for again in (client.get(url), client.delete(url), client.post(f"{url}/finish"), answer(client, session, ("fever", "yes"))):
        problem(again, 404, "session-not-found")
    assert rows(database_url, "SELECT count(*) FROM answers") == [(0,)]


@pytest.mark.parametrize(
    "id", ["x", "01890000", "01890000-0000-7000-8000-00000000000g", "{0189000000007000800000000000000000}", "%00", "é"]
)
def test_a_malformed_id_is_as_unknown_as_any(client: httpx.Client, id: str) -> None:
    unknown = client.get("/v1/sessions/01890000-0000-7000-8000-000000000000").json()
    assert problem(client.get(f"/v1/sessions/{id}"), 404, "session-not-found")["detail"] == unknown["detail"]


def test_own_sessions_are_listed_newest_first(client: httpx.Client) -> None:
    made = [opened(client, reference=str(i))["id"] for i in range(5)]
    time.sleep(0.01)
    page = client.get("/v1/sessions", params={"limit": 2}).json()
    seen = list(page["items"])
    while page["next"]:
        page = client.get("/v1/sessions", params={"limit": 2, "cursor": page["next"]}).json()
        seen += page["items"]
    assert sorted(item["id"] for item in seen) == sorted(made)
    assert [item["id"] for item in seen] == sorted(made, reverse=True)
    assert seen[0] == client.get(f"/v1/sessions/{seen[0]['id']}").json()
    client.post(f"/v1/sessions/{made[0]}/finish")
    assert [item["id"] for item in client.get("/v1/sessions?status=done").json()["items"]] == made[:1]
    problem(client.get("/v1/sessions?cursor=nonsense"), 422, "invalid-request")
    problem(client.get("/v1/sessions?limit=0"), 422, "invalid-request")


def test_an_idempotency_key_opens_one_session(client: httpx.Client, database_url: str) -> None:
    key = {"Idempotency-Key": "order-1"}
    body = {"model": "clinic", "budget": 60, "known": {"fever": "yes"}}
    first = client.post("/v1/sessions", json=body, headers=key)
    answer(client, first.json(), ("sugar", 80))
    again = client.post("/v1/sessions", content=json.dumps(body, indent=3), headers=key | {"Content-Type": "application/json"})
    assert (again.status_code, again.json(), again.headers["location"]) == (201, first.json(), first.headers["location"])
    assert again.headers["idempotent-replayed"] == "true"
    problem(client.post("/v1/sessions", json=body | {"budget": 61}, headers=key), 422, "idempotency-key-reused")
    other = client.post("/v1/sessions", json=body, headers={"Idempotency-Key": "order-2"})
    assert other.json()["id"] != first.json()["id"]
    assert rows(database_url, "SELECT count(*) FROM sessions") == [(2,)]
    problem(client.post("/v1/sessions", json=body, headers={"Idempotency-Key": "x" * 256}), 422, "invalid-request")


def test_deleting_a_session_frees_its_idempotency_key(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "order-1"}
    first = client.post("/v1/sessions", json={"model": "clinic"}, headers=key).json()
    client.delete(f"/v1/sessions/{first['id']}")
    assert client.post("/v1/sessions", json={"model": "clinic"}, headers=key).json()["id"] != first["id"]


def test_a_session_stays_on_its_version(client: httpx.Client) -> None:
    session = opened(client)
    publish(client, "clinic", wide(3))
    assert opened(client)["model"]["version"] == 2
    after = answer(client, session, ("fever", "yes")).json()
    assert (after["model"], after["ask"]["feature"]) == ({"name": "clinic", "version": 1}, "sugar")


def test_many_features_by_name_and_unicode(client: httpx.Client) -> None:
    session = opened(client, reference="дело № 17 🩺")
    assert client.get(f"/v1/sessions/{session['id']}").json()["reference"] == "дело № 17 🩺"


@pytest.mark.parametrize("value", [0.1 + 0.2, 1e300, -1e-300, 1, 2**53 + 1, 123456789.12345679, 0])
def test_numbers_come_back_as_they_went_in(client: httpx.Client, value: float) -> None:
    session = opened(client)
    after = answer(client, session, ("sugar", value)).json()
    assert after["answers"][0]["value"] == float(value)
    assert client.get(f"/v1/sessions/{session['id']}").json() == after
    assert answer(client, session, ("sugar", value)).headers["idempotent-replayed"] == "true"
