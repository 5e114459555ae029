"""/v1/next and /v1/predict: the same decisions as sessions come to, with nothing kept."""

import httpx
import numpy as np

from frugal.models import acquire, load
from frugal.service.config import Settings
from frugal.service.example import example_archive
from frugal.service.tables import read_file
from tests.databases import rows
from tests.examples import clinic, wide
from tests.service.conftest import publish
from tests.serving import problem, serving

SHARED = ("model", "status", "seed", "ask", "budget", "spent", "remaining", "prediction")


def after(client: httpx.Client, **body) -> dict:
    reply = client.post("/v1/next", json={"model": "clinic", **body})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_next_is_what_a_session_would_say_at_every_step(client: httpx.Client, database_url: str) -> None:
    session = client.post("/v1/sessions", json={"model": "clinic", "budget": 60, "known": {"iron": 4}, "seed": 3}).json()
    given: list[dict] = []
    items = [{"feature": "sugar", "status": "pending"}, {"feature": "fever", "value": "yes"}, {"feature": "sugar", "value": 80}]
    for item in [None, *items]:
        if item:
            session = client.post(f"/v1/sessions/{session['id']}/answers", json=item).json()
            given = [g for g in given if g["feature"] != item["feature"]] + [item]
        found = after(client, budget=60, known={"iron": 4}, answers=given, seed=3)
        assert found == {name: session[name] for name in SHARED}
    assert session["status"] == "done"
    assert rows(database_url, "SELECT count(*) FROM sessions") == [(1,)]


def test_answers_may_be_a_mapping(client: httpx.Client) -> None:
    found = after(client, answers={"fever": "yes", "sugar": None})
    assert (found["ask"]["feature"], found["spent"]) == ("scan", 1.0)


def test_spent_is_taken_as_given(client: httpx.Client) -> None:
    assert after(client, answers={"fever": "yes"}, budget=10, spent=6)["prediction"]["reason"] == "budget"
    found = after(client, answers={"fever": "yes"}, budget=10, spent=2.5)
    assert (found["ask"]["feature"], found["spent"], found["remaining"]) == ("sugar", 2.5, 7.5)
    assert after(client, answers={"fever": "yes"}, budget=10, spent=11)["remaining"] == 0.0


def test_next_refuses_what_sessions_refuse(client: httpx.Client) -> None:
    for wrong in ({"answers": {"nose": 1}}, {"answers": {"shoe_size": 1}}, {"answers": {"fever": "x"}}, {"known": {"nose": 1}}):
        problem(client.post("/v1/next", json={"model": "clinic", **wrong}), 422, "wrong-answer")
    problem(
        client.post("/v1/next", json={"model": "clinic", "known": {"fever": "no"}, "answers": {"fever": "yes"}}), 409, "answer-conflict"
    )
    problem(client.post("/v1/next", json={"model": "nobody"}), 404, "model-not-found")
    for wrong in ({"budget": -1}, {"budget": 0.0000001}, {"spent": "1"}, {"answers": [{"feature": "fever"}]}, {"extra": 1}):
        problem(client.post("/v1/next", json={"model": "clinic", **wrong}), 422, "invalid-request")


def test_predict_gives_what_a_session_over_each_row_would(client: httpx.Client) -> None:
    table = [
        {"fever": "no"},
        {"fever": "yes", "sugar": 80, "iron": 20.5, "shoe_size": "anything"},
        {"fever": "yes", "sugar": 150, "scan": "dark"},
        {"fever": "yes", "sugar": None, "scan": None},
        {},
    ]
    body = client.post("/v1/predict", json={"model": "clinic", "rows": table, "budget": 60}).json()
    assert body["model"] == {"name": "clinic", "version": 1}
    assert [(row["label"], row["cost"], row["features"]) for row in body["rows"]] == [
        ("well", 1.0, ["fever"]),
        ("ill", 10.0, ["fever", "sugar", "iron"]),
        ("grave", 56.0, ["fever", "sugar", "scan"]),
        ("grave", 1.0, ["fever"]),
        ("grave", 0.0, []),  # what is missing goes the way of most
    ]
    assert body["rows"][0]["probabilities"] == {"well": 1.0, "ill": 0.0, "grave": 0.0}
    for given, row in zip(table, body["rows"], strict=True):
        session = client.post("/v1/sessions", json={"model": "clinic", "budget": 60}).json()
        while session["ask"]:
            name = session["ask"]["feature"]
            value = given.get(name)
            item = {"feature": name, "status": "unavailable"} if value is None else {"feature": name, "value": value}
            session = client.post(f"/v1/sessions/{session['id']}/answers", json=item).json()
        assert (session["prediction"]["label"], session["spent"]) == (row["label"], row["cost"])
        assert session["prediction"]["probabilities"] == row["probabilities"]
        assert session["prediction"]["votes"] == row["votes"]


def test_predict_refuses_rows_by_number_and_feature(client: httpx.Client) -> None:
    for wrong in (
        [{"fever": "no"}, {"nose": 1}],
        [{}, {"fever": "maybe"}],
        [{}, {"sugar": "80"}],
        [{}, {"sugar": [1]}],
        [{}, {"fever": {}}],
    ):
        told = problem(client.post("/v1/predict", json={"model": "clinic", "rows": wrong}), 422, "wrong-answer")
        assert "row 1" in told["detail"]
    for wrong in ({"rows": [1]}, {"rows": {}}, {}, {"rows": [], "budget": -1}, {"rows": [], "more": 1}):
        problem(client.post("/v1/predict", json={"model": "clinic", **wrong}), 422, "invalid-request")
    assert client.post("/v1/predict", json={"model": "clinic", "rows": []}).json()["rows"] == []


def test_predict_of_the_heart_example_equals_acquire(client: httpx.Client) -> None:
    ensemble = load(example_archive())
    publish(client, "heart", ensemble)
    table = read_file("examples/heart/heart.csv")
    names = [name for name in table.columns if name != "disease"]
    data = [{name: _plain(table[name][r]) for name in names} for r in range(len(table))]
    body = client.post("/v1/predict", json={"model": "heart", "rows": data, "budget": 20}).json()["rows"]
    found = acquire(ensemble, ensemble.schema.encode_rows(data, ensemble.used), 20)
    assert [row["label"] for row in body] == found.labels.tolist()
    assert [row["cost"] for row in body] == found.cost.tolist()
    assert [list(row["probabilities"].values()) for row in body] == found.probabilities.tolist()
    assert [list(row["votes"].values()) for row in body] == found.votes.tolist()
    assert [sorted(row["features"]) for row in body] == [
        sorted(np.array(ensemble.schema.names)[bought].tolist()) for bought in found.acquired
    ]


def test_predict_has_limits(database_url: str) -> None:
    with serving(Settings(database=database_url, max_rows=3, max_upload=2000, max_body=1024)) as client:
        publish(client, "wide", wide(2))
        assert client.post("/v1/predict", json={"model": "wide", "rows": [{}] * 3}).status_code == 200
        problem(client.post("/v1/predict", json={"model": "wide", "rows": [{}] * 4}), 422, "invalid-request")
        problem(client.post("/v1/predict", json={"model": "wide", "rows": [{"f0": 1}] * 500}), 413, "too-large")
        problem(client.post("/v1/next", json={"model": "wide", "known": {"f0": "x" * 1500}}), 413, "too-large")


def test_labels_are_strings_whatever_the_classes_are(client: httpx.Client) -> None:
    ensemble = clinic()
    numbered = type(ensemble)(ensemble.flat, ensemble.schema, ensemble.costs, classes=[0, 1, 2.5], vote="counts", smoothing=0)
    publish(client, "numbered", numbered)
    assert client.post("/v1/predict", json={"model": "numbered", "rows": [{"fever": "no"}]}).json()["rows"][0] == {
        "label": "0",
        "probabilities": {"0": 1.0, "1": 0.0, "2.5": 0.0},
        "votes": {"0": 1.0, "1": 0.0, "2.5": 0.0},
        "cost": 1.0,
        "features": ["fever"],
    }


def _plain(value):
    return None if value is None or value != value else value
