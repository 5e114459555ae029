"""What a session aims at: its operating point is found when it opens, and holds to its end; over HTTP, on both databases."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import update

from frugal.models import Ask, Ensemble, Stop, acquire, decide, load
from frugal.models.frontier import stop_at
from frugal.service.api.replaying import fingerprint
from frugal.service.api.sessions import OpenSession
from frugal.service.config import Settings
from frugal.service.example import FOLDERS, example_archive
from frugal.service.registry.versions import version
from frugal.service.sessions.state import Given
from frugal.service.sessions.steps import Opening, Steps
from frugal.service.store.tables import versions
from frugal.service.tables import read_file
from tests.databases import rows
from tests.examples import POINTS, aimed, clinic
from tests.service.conftest import publish
from tests.service.sessions.using import change, with_steps
from tests.serving import problem, serving
from tests.waiting import let_time_pass

GRAVE = {"fever": "yes", "sugar": 120, "scan": "dark"}
ILL = {"fever": "yes", "sugar": 80, "iron": 12}
STOPS = "SELECT aim, confidence, stop_confidence, stop_cap FROM sessions ORDER BY id"
WAYS: list[dict[str, Any]] = [
    {},
    {"aim": 0},
    {"aim": 5},
    {"aim": 19.999999},
    {"aim": 1e6},
    {"budget": 60},
    {"budget": 7},
    {"confidence": 0.55},
    {"confidence": 1},
    {"aim": 5, "budget": 8},
    {"aim": 5, "budget": 60},
    {"confidence": 0.55, "budget": 8},
]


@pytest.fixture
def client(database_url: str) -> Iterator[httpx.Client]:
    """A server with the clinic, and with the clinic that has operating points."""
    with serving(Settings(database=database_url)) as client:
        publish(client, "clinic", clinic())
        publish(client, "aimed", aimed(), alias="live")
        yield client


def opened(client: httpx.Client, **body: Any) -> dict[str, Any]:
    reply = client.post("/v1/sessions", json={"model": "aimed"} | body)
    assert reply.status_code == 201, reply.text
    return reply.json()


def item_for(session: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """What is asked, or that it cannot be had."""
    name = session["ask"]["feature"]
    return {"feature": name, "status": "unavailable"} if case.get(name) is None else {"feature": name, "value": case[name]}


def answered(client: httpx.Client, session: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    reply = client.post(f"/v1/sessions/{session['id']}/answers", json=item_for(session, case))
    assert reply.status_code == 200, reply.text
    return reply.json()


def driven(client: httpx.Client, session: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    while session["ask"]:
        session = answered(client, session, case)
    return session


def ending(session: dict[str, Any]) -> tuple[str, float, str]:
    return session["prediction"]["reason"], session["spent"], session["prediction"]["label"]


# Which stop holds


@pytest.mark.parametrize(
    ("case", "body", "expected"),
    [
        (GRAVE, {"aim": 5}, ("aim", 6.0, "grave")),  # the scan would bring it above 10
        (ILL, {"aim": 5}, ("leaf", 10.0, "ill")),  # up to the cap, not beyond
        (GRAVE, {"aim": 0}, ("aim", 0.0, "well")),
        (GRAVE, {"aim": 4.499999}, ("aim", 0.0, "well")),  # the dearest point not above it
        (GRAVE, {"aim": 4.5}, ("aim", 6.0, "grave")),
        (GRAVE, {"aim": 20}, ("leaf", 56.0, "grave")),
        (ILL, {"aim": 20}, ("confident", 6.0, "well")),
        (GRAVE, {}, ("aim", 6.0, "grave")),  # the default point
        (ILL, {"budget": 60}, ("confident", 6.0, "well")),  # of a budget alone: the point of least error, and no cap
        (GRAVE, {"budget": 60}, ("leaf", 56.0, "grave")),
        (GRAVE, {"budget": 20}, ("budget", 6.0, "grave")),
        (ILL, {"confidence": 0.55}, ("confident", 0.0, "well")),
        (ILL, {"confidence": 1}, ("leaf", 10.0, "ill")),  # 1 goes to the end
        (GRAVE, {"aim": 5, "budget": 5}, ("budget", 1.0, "ill")),  # whichever comes first
        (ILL, {"aim": 5, "budget": 8}, ("budget", 6.0, "well")),
        (GRAVE, {"aim": 5, "budget": 60}, ("aim", 6.0, "grave")),
        (ILL, {"aim": 20, "budget": 8}, ("confident", 6.0, "well")),
    ],
)
def test_which_stop_holds(client: httpx.Client, case: dict[str, Any], body: dict[str, Any], expected: tuple[str, float, str]) -> None:
    session = opened(client, **body)
    assert (session["aim"], session["confidence"]) == (body.get("aim"), body.get("confidence"))
    done = driven(client, session, case)
    assert ending(done) == expected
    assert (done["aim"], done["confidence"]) == (body.get("aim"), body.get("confidence"))
    assert client.get(f"/v1/sessions/{session['id']}").json() == done


def test_a_cap_leaves_what_is_free_to_be_asked_and_what_is_answered_unasked_to_be_charged(client: httpx.Client) -> None:
    session = opened(client, aim=0, known={"fever": "yes", "sugar": 120, "scan": "dark"})
    assert ending(session) == ("leaf", 0.0, "grave")
    session = opened(client, aim=5)
    reply = client.post(f"/v1/sessions/{session['id']}/answers", json={"feature": "scan", "value": "dark"})
    assert ending(reply.json()) == ("aim", 50.0, "well")  # it came unasked; nothing more is asked that costs anything


def test_a_model_without_operating_points_stops_as_before(client: httpx.Client) -> None:
    for body in ({}, {"budget": 60}, {"confidence": 0.95}):
        assert ending(driven(client, opened(client, model="clinic", **body), GRAVE)) == ("leaf", 56.0, "grave")


# Pinned


def test_a_new_version_and_a_moved_alias_change_no_session_that_runs(client: httpx.Client, database_url: str) -> None:
    sessions = [opened(client, model=model, aim=5) for model in ("aimed", "aimed@live", "aimed:1")]
    assert rows(database_url, STOPS) == [(5_000_000, None, 1.0, 10_000_000)] * 3
    to_the_end = ((0.0, 0.4, 1.0, None), (3.0, 0.2, 1.0, None), (4.0, 0.1, 1.0, None))
    publish(client, "aimed", aimed(to_the_end, default=2), alias="live")
    for session in sessions:
        done = driven(client, session, GRAVE)
        assert (done["model"]["version"], ending(done)) == (1, ("aim", 6.0, "grave"))
    for model in ("aimed", "aimed@live"):
        done = driven(client, opened(client, model=model, aim=5), GRAVE)
        assert (done["model"]["version"], ending(done)) == (2, ("leaf", 56.0, "grave"))
    assert rows(database_url, STOPS)[:3] == [(5_000_000, None, 1.0, 10_000_000)] * 3


def test_the_stop_is_the_one_that_is_stored_not_the_one_that_would_be_found_now(database_url: str) -> None:
    async def run(steps: Steps) -> None:
        session = (await steps.open("me", Opening("aimed", aim=20_000_000))).session
        await steps.answer("me", session.id, [Given("fever", "value", "yes"), Given("sugar", "value", 120)])
        for cap, asks in ((10_000_000, False), (55_999_999, False), (56_000_000, True), (None, True)):
            change(steps, "UPDATE sessions SET stop_cap = :cap", cap=cap)
            standing = (await steps.read("me", session.id)).standing
            assert standing is not None
            assert isinstance(standing.decision, Ask) == asks
        change(steps, "UPDATE sessions SET stop_confidence = 0.5")
        standing = (await steps.read("me", session.id)).standing
        assert standing is not None
        assert isinstance(standing.decision, Stop)
        assert standing.decision.reason == "confident"

    with_steps(database_url, run, {"aimed": aimed()})


def test_an_opening_is_replayed_with_its_aim(client: httpx.Client) -> None:
    key, body = {"Idempotency-Key": "case-17"}, {"model": "aimed", "aim": 5, "known": {"fever": "yes"}}
    first = client.post("/v1/sessions", json=body, headers=key)
    assert first.json()["aim"] == 5
    done = driven(client, first.json(), GRAVE)
    assert ending(done) == ("aim", 5.0, "grave")
    publish(client, "aimed", aimed(((0.0, 0.4, 1.0, 0.0),), default=0), alias="live")  # on it nothing would be asked
    again = client.post("/v1/sessions", json=body, headers=key)
    assert (again.status_code, again.headers["idempotent-replayed"], again.json()) == (201, "true", first.json())
    for other in ({"aim": 6}, {"aim": None}, {"aim": None, "confidence": 0.9}):
        problem(client.post("/v1/sessions", json=body | other, headers=key), 422, "idempotency-key-reused")
    assert client.get(f"/v1/sessions/{done['id']}").json() == done


def test_a_key_that_an_earlier_release_stored_still_counts() -> None:
    """Its hash was taken of a body that could not have an aim."""
    said = {"model": "clinic", "budget": 60.0, "known": None, "seed": 0, "confidence": None, "reference": None}
    before = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    assert fingerprint(OpenSession.model_validate({"model": "clinic", "budget": 60})) == before
    assert fingerprint(OpenSession.model_validate({"model": "clinic", "budget": 60, "aim": 0})) != before


def test_what_ends_by_hand_or_by_the_clock_shows_what_it_aimed_at(database_url: str) -> None:
    with serving(Settings(database=database_url, session_ttl=3600, sweep_every=3600)) as client:
        publish(client, "aimed", aimed())
        late, stopped = opened(client, aim=5), opened(client, confidence=0.9)
        done = client.post(f"/v1/sessions/{stopped['id']}/finish").json()
        assert (done["aim"], done["confidence"], done["prediction"]["reason"]) == (None, 0.9, "stopped")
        let_time_pass(client, 3600)
        over = client.get(f"/v1/sessions/{late['id']}").json()
        assert (over["aim"], over["confidence"], over["prediction"]["reason"]) == (5.0, None, "expired")
        listed = {item["id"]: (item["aim"], item["confidence"]) for item in client.get("/v1/sessions").json()["items"]}
        assert listed == {late["id"]: (5.0, None), stopped["id"]: (None, 0.9)}


# The same everywhere


@pytest.mark.parametrize("way", WAYS)
def test_next_agrees_with_a_session_at_every_step(client: httpx.Client, way: dict[str, Any]) -> None:
    for case in (GRAVE, ILL, {"fever": "yes"}, {}):
        session, given = opened(client, **way), []
        while True:
            found = client.post("/v1/next", json={"model": "aimed", "answers": given} | way).json()
            assert found == {name: session[name] for name in found}
            if session["ask"] is None:
                break
            given.append(item_for(session, case))
            session = answered(client, session, case)


def some_rows(ensemble: Ensemble, many: int) -> list[dict[str, Any]]:
    """Cases of the heart example; or of the clinic, some of them with gaps."""
    if "thal" in ensemble.schema.names:
        table = read_file(FOLDERS[0] / "heart.csv")
        drawn = np.random.default_rng(0).permutation(len(table))[:many].tolist()
        found = [{name: table[name][row] for name in ensemble.schema.names} for row in drawn]
        return [{name: None if value is None or value != value else value for name, value in row.items()} for row in found]
    random = np.random.default_rng(0)
    draw = {"fever": ["no", "yes", "yes", "yes", None], "sugar": [80.0, 120.0, 120.0, None], "iron": [4.0, 12.0, None],
            "scan": ["clear", "dark", None]}  # fmt: skip
    return [{name: values[random.integers(len(values))] for name, values in draw.items()} for _ in range(many)]


@pytest.mark.parametrize("model", ["aimed", "heart"])
def test_acquire_says_what_sessions_say_and_pay_row_by_row(client: httpx.Client, model: str) -> None:
    ensemble = aimed() if model == "aimed" else load(example_archive())
    publish(client, model, ensemble)
    assert ensemble.frontier is not None
    everything = ensemble.costs.total(ensemble.used)
    ways: list[dict[str, Any]] = [{}, {"budget": 0.3 * everything}, {"aim": 0.05 * everything, "budget": 0.1 * everything}]
    ways += [{"aim": aim} for aim in sorted({ensemble.frontier.points[i].cost for i in (0, 1, len(ensemble.frontier.points) // 2, -1)})]
    cases = some_rows(ensemble, 12)
    codes = ensemble.schema.encode_rows(cases, ensemble.used)
    for way in ({name: round(amount, 6) for name, amount in way.items()} for way in ways):
        found = acquire(ensemble, codes, way.get("budget"), aim=way.get("aim"))
        predicted = client.post("/v1/predict", json={"model": model, "rows": cases} | way).json()["rows"]
        stop = stop_at(ensemble.frontier, way.get("budget"), way.get("aim"), None)
        for i, case in enumerate(cases):
            done = driven(client, opened(client, model=model, **way), case)
            assert (done["prediction"]["label"], done["spent"]) == (found.labels[i], found.cost[i])
            assert list(done["prediction"]["probabilities"].values()) == pytest.approx(found.probabilities[i].tolist())
            assert (predicted[i]["label"], predicted[i]["cost"]) == (found.labels[i], found.cost[i])
            assert predicted[i]["probabilities"] == done["prediction"]["probabilities"]
            known = {line["feature"]: line.get("value") for line in done["answers"]}
            last = decide(ensemble, known, way.get("budget"), done["spent"], confidence=stop.confidence, cap=stop.cap)
            assert isinstance(last, Stop)
            assert done["prediction"]["reason"] == last.reason


# What is refused

NO_POINTS = "aim: this version has no operating points, so it cannot aim at a mean cost. Give a budget or a confidence instead"
BOTH = "aim and confidence both say when to stop: leave one of them out"
ROUTES = [("/v1/sessions", {}), ("/v1/next", {}), ("/v1/predict", {"rows": [{"fever": "yes"}]})]


@pytest.mark.parametrize(("route", "body"), ROUTES)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": "aimed", "aim": 5, "confidence": 0.9}, BOTH),
        ({"model": "clinic", "aim": 5, "confidence": 0.9}, BOTH),
        ({"model": "clinic", "aim": 5}, NO_POINTS),
        ({"model": "clinic", "aim": 5, "budget": 60}, NO_POINTS),
        ({"model": "aimed", "aim": -1}, "aim: Input should be greater than or equal to 0"),
        ({"model": "aimed", "aim": 0.0000001}, "aim: money has at most 6 decimals"),
        ({"model": "aimed", "aim": "5"}, "aim: Input should be a valid number"),
        ({"model": "aimed", "aim": True}, "aim: Input should be a valid number"),
        ({"model": "aimed", "aim": [5]}, "aim: Input should be a valid number"),
        ({"model": "aimed", "aim": 1e300}, "aim: Input should be less than or equal to"),
    ],
)
def test_what_cannot_be_aimed_at_is_refused_with_what_to_do(
    client: httpx.Client, database_url: str, route: str, body: dict[str, Any], wrong: dict[str, Any], said: str
) -> None:
    assert said in problem(client.post(route, json=wrong | body), 422, "invalid-request")["detail"]
    assert rows(database_url, "SELECT count(*) FROM sessions") == [(0,)]


@pytest.mark.parametrize(("route", "body"), ROUTES)
@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-Infinity"])
def test_an_aim_is_a_number_of_json(client: httpx.Client, route: str, body: dict[str, Any], amount: str) -> None:
    raw = json.dumps({"model": "aimed", "aim": "?"} | body).replace('"?"', amount)
    reply = client.post(route, content=raw, headers={"Content-Type": "application/json"})
    assert "is not a number in JSON" in problem(reply, 422, "invalid-request")["detail"]


def test_a_model_that_is_not_there_comes_before_what_it_cannot_do(client: httpx.Client) -> None:
    for route, body in ROUTES:
        problem(client.post(route, json={"model": "nobody", "aim": 5} | body), 404, "model-not-found")


# What a version tells


def test_a_version_tells_its_operating_points(client: httpx.Client) -> None:
    told = client.get("/v1/models/aimed/versions/1").json()["frontier"]
    assert told["default"] == 1
    assert [(point["cost"], point["error"], point["confidence"], point["cap"]) for point in told["points"]] == list(POINTS)
    assert set(told["points"][0]) == {"cost", "error", "log_loss", "confidence", "cap", "early"}
    assert client.get("/v1/models/clinic/versions/1").json()["frontier"] is None


def test_a_version_that_an_earlier_release_published_has_none(database_url: str) -> None:
    async def run(steps: Steps) -> None:
        told = version(steps.database, "clinic", 1)
        kept = {name: value for name, value in told.items() if name != "frontier" and name in ("learner", "classes", "schema", "metrics")}
        steps.database.write(lambda db: db.execute(update(versions).values(description=kept)))
        assert version(steps.database, "clinic", 1)["frontier"] is None

    with_steps(database_url, run, {"clinic": clinic()})
