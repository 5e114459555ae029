"""What operators see: metrics and logs, with ids and numbers, without values and keys."""

import json
import logging
import time

import httpx
import pytest

from frugal.service.keyform import new_key
from frugal.service.logs import JsonLines


def value(text: str, name: str) -> float:
    return next((float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + " ")), 0.0)


def test_steps_charges_replays_and_stops_are_counted(client: httpx.Client) -> None:
    names = [
        "frugal_sessions_opened_total",
        "frugal_steps_total",
        "frugal_charges_total",
        "frugal_charged_cost_total",
        "frugal_replays_total",
        'frugal_stops_total{reason="leaf"}',
        'frugal_stops_total{reason="stopped"}',
        'frugal_requests_total{method="POST",route="/v1/sessions/{id}/answers",status="200"}',
        'frugal_request_seconds_count{method="POST",route="/v1/sessions/{id}/answers"}',
        'frugal_requests_total{method="GET",route="unmatched",status="404"}',
    ]
    before = client.get("/metrics").text
    session = client.post("/v1/sessions", json={"model": "clinic"}).json()
    answers = f"/v1/sessions/{session['id']}/answers"
    client.post(answers, json={"feature": "fever", "value": "yes"})
    client.post(answers, json={"feature": "fever", "value": "yes"})
    client.post(answers, json={"answers": [{"feature": "sugar", "status": "pending"}, {"feature": "iron", "status": "unavailable"}]})
    client.post(answers, json={"feature": "sugar", "value": 150})
    client.post(answers, json={"feature": "scan", "value": "dark"})
    other = client.post("/v1/sessions", json={"model": "clinic"}).json()
    client.post(f"/v1/sessions/{other['id']}/finish")
    client.post(f"/v1/sessions/{other['id']}/finish")
    client.get("/nowhere")
    after = client.get("/metrics")
    assert after.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert [value(after.text, name) - value(before, name) for name in names] == pytest.approx([2, 4, 3, 56, 1, 1, 1, 5, 5, 1])
    assert value(after.text, "frugal_loaded_versions") == 1


def test_pool_gauges_tell_the_connections(client: httpx.Client, database_url: str) -> None:
    text = client.get("/metrics").text
    if database_url.startswith("sqlite"):
        assert value(text, 'frugal_pool_connections{state="writing"}') == 1
    else:
        assert value(text, 'frugal_pool_connections{state="idle"}') >= 1


def test_a_request_is_one_line_of_json_without_values(client: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("frugal")
    logger.setLevel(logging.INFO)
    try:
        body = {"model": "clinic", "known": {"sugar": 123.456}, "reference": "Mr Smith"}
        id = client.post("/v1/sessions", json=body, headers={"X-Request-ID": "abc"}).json()["id"]
        client.get(f"/v1/sessions/{new_key()}")
        client.get(f"/v1/sessions/{id}?secret=frgl_x", headers={"Authorization": f"Bearer {new_key()}"})
        time.sleep(0.3)
    finally:
        logger.setLevel(logging.NOTSET)
    text = capsys.readouterr().err
    first, strange, second = (json.loads(line) for line in text.splitlines()[-3:])
    assert (strange["status"], "session" in strange) == (404, False)
    assert {name: first[name] for name in ("request_id", "method", "route", "status", "owner", "level", "message")} == {
        "request_id": "abc",
        "method": "POST",
        "route": "/v1/sessions",
        "status": 201,
        "owner": "local",
        "level": "info",
        "message": "request",
    }
    assert (second["status"], second["route"], second["session"]) == (401, "/v1/sessions/{id}", id)
    assert not any(word in text for word in ("123.456", "Smith", "frgl_"))


def test_an_exception_is_logged_by_kind_and_place_not_by_its_words() -> None:
    try:
        raise ValueError("'sugar' is 123.456")
    except ValueError:
        record = logging.getLogger("frugal").makeRecord("frugal", logging.ERROR, "f", 1, "request failed", (), __import__("sys").exc_info())
    line = json.loads(JsonLines().format(record))
    assert line["error"] == "builtins.ValueError"
    assert line["trace"][0].endswith("test_an_exception_is_logged_by_kind_and_place_not_by_its_words")
    assert "123.456" not in json.dumps(line)
