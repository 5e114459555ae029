"""What is refused before any rule: wrong JSON, wrong types, unknown routes; always as problem+json, never with the input in it."""

import json
import time

import httpx
import pytest

from tests.serving import problem

JSON = {"Content-Type": "application/json"}
BODIES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"1",
    b'"x"',
    b'{"model": "clinic", "budget": NaN}',
    b'{"model": "clinic", "budget": Infinity}',
    b'{"model": "clinic", "budget": 1e400}',
    b'{"model": "clinic", "budget": "60"}',
    b'{"model": "clinic", "budget": true}',
    b'{"model": "clinic", "budget": -1}',
    b'{"model": "clinic", "budget": 1e10}',
    b'{"model": "clinic", "budget": 0.1234567}',
    b'{"model": "clinic", "seed": -1}',
    b'{"model": "clinic", "seed": 1.5}',
    b'{"model": "clinic", "seed": 9223372036854775808}',
    b'{"model": "clinic", "confidence": 0}',
    b'{"model": "clinic", "confidence": 1.5}',
    b'{"model": "clinic", "known": []}',
    b'{"model": "clinic", "known": {"sugar": [1]}}',
    b'{"model": "clinic", "known": {"sugar": 1e400}}',
    b'{"model": "clinic", "reference": 5}',
    b'{"model": "clinic", "reference": "a\\u0000b"}',
    b'{"model": "clinic", "reference": "\\ud800"}',
    b'{"model": "clinic", "model": "clinic"}',
    b'{"model": "clinic", "spent": 0}',
    b'{"model": "clinic", "owner": "me"}',
    b'{"budget": 1}',
    b'{"model": null}',
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"model": "clinic", "seed": ' + b"9" * 5000 + b"}",
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:40]))
def test_an_opening_of_the_wrong_shape_is_refused(shared_client: httpx.Client, body: bytes) -> None:
    told = problem(shared_client.post("/v1/sessions", content=body, headers=JSON), 422, "invalid-request")
    assert "9999" not in json.dumps(told | {"request_id": ""})
    assert shared_client.get("/v1/sessions").json()["items"] == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"feature": "fever"},
        {"value": "yes"},
        {"feature": "fever", "value": None},
        {"feature": "fever", "value": "yes", "status": "pending"},
        {"feature": "fever", "status": "done"},
        {"feature": "fever", "value": "yes", "cost": 0},
        {"feature": "fever", "value": {"a": 1}},
        {"feature": 5, "value": "yes"},
        {"feature": "", "value": "yes"},
        {"answers": []},
        {"answers": {}},
        {"answers": [{"feature": "fever"}]},
        {"answers": [{"feature": "fever", "value": "yes"}], "spent": 0},
        {"answers": [[]]},
    ],
)
def test_an_answer_of_the_wrong_shape_is_refused(shared_client: httpx.Client, body: dict) -> None:
    problem(shared_client.post("/v1/sessions/01890000-0000-7000-8000-000000000000/answers", json=body), 422, "invalid-request")


def test_a_body_that_is_not_json_by_its_header_is_refused(shared_client: httpx.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""):
        reply = shared_client.post("/v1/sessions", content=b'{"model": "clinic"}', headers={"Content-Type": kind})
        problem(reply, 415, "unsupported-media-type")
    reply = shared_client.post("/v1/next", content=b'{"model": "clinic"}', headers={"Content-Type": "Application/JSON; charset=utf-8"})
    assert reply.status_code == 200


def test_a_body_over_the_limit_is_refused(shared_client: httpx.Client) -> None:
    reply = shared_client.post("/v1/sessions", content=b" " * 1_100_000, headers=JSON)
    assert problem(reply, 413, "too-large")["limit"] == 1_048_576


def test_depth_and_fields_have_limits(shared_client: httpx.Client) -> None:
    deep: object = 1
    for _ in range(20):
        deep = [deep]
    assert problem(shared_client.post("/v1/next", json={"model": "clinic", "known": deep}), 422, "invalid-request")["limit"] == 20
    wide = {"model": "clinic", "known": {f"f{i}": 1 for i in range(10_001)}}
    assert problem(shared_client.post("/v1/next", json=wide), 422, "invalid-request")["limit"] == 10_000


def test_arrays_have_a_length(shared_client: httpx.Client) -> None:
    many = {"answers": [1] * 10_001}
    reply = shared_client.post("/v1/sessions/01890000-0000-7000-8000-000000000000/answers", json=many)
    assert problem(reply, 422, "invalid-request")["limit"] == 10_000
    begun = time.monotonic()
    reply = shared_client.post("/v1/predict", content=b'{"model": "clinic", "rows": [' + b"1," * 7_000_000 + b"1]}", headers=JSON)
    assert problem(reply, 422, "invalid-request")["limit"] == 100_000
    assert time.monotonic() - begun < 10


def test_messages_about_answers_name_the_place(shared_client: httpx.Client) -> None:
    reply = shared_client.post("/v1/sessions/01890000-0000-7000-8000-000000000000/answers", json={"answers": [{"feature": "fever"}]})
    assert [fault["where"] for fault in problem(reply, 422, "invalid-request")["errors"]] == ["answers.0"]


def test_values_are_not_repeated(shared_client: httpx.Client) -> None:
    id = shared_client.post("/v1/sessions", json={"model": "clinic"}).json()["id"]
    for reply in (
        shared_client.post(f"/v1/sessions/{id}/answers", json={"feature": "fever", "value": "s3cret"}),
        shared_client.post("/v1/sessions", json={"model": "clinic", "known": {"sugar": "s3cret"}}),
        shared_client.post("/v1/predict", json={"model": "clinic", "rows": [{"sugar": "s3cret"}]}),
        shared_client.post("/v1/next", json={"model": "clinic", "answers": {"fever": "s3cret"}}),
    ):
        assert "expected" in problem(reply, 422, "wrong-answer")["detail"]
        assert "s3cret" not in reply.text
    shared_client.delete(f"/v1/sessions/{id}")


def test_wrong_routes_and_methods_are_problems_too(shared_client: httpx.Client) -> None:
    problem(shared_client.get("/v2/sessions"), 404, "not-found")
    problem(shared_client.get("/v1/sessions/a/b/c"), 404, "not-found")
    refused = shared_client.patch("/v1/sessions")
    problem(refused, 405, "method-not-allowed")
    assert "POST" in refused.headers["allow"]


def test_messages_say_where_and_what(shared_client: httpx.Client) -> None:
    told = problem(shared_client.post("/v1/sessions", json={"model": "clinic", "budget": "60", "nose": 1}), 422, "invalid-request")
    assert told["errors"] == [
        {"where": "budget", "what": "Input should be a valid number"},
        {"where": "#3", "what": "there is no such field"},
    ]
    told = problem(shared_client.post("/v1/sessions", json={"model": "clinic", "budget": 0.1234567}), 422, "invalid-request")
    assert told["detail"] == "budget: money has at most 6 decimals"


@pytest.mark.parametrize(
    ("method", "address", "takes"),
    [
        ("GET", "/v1/sessions?statsu=open", "limit, cursor, status"),
        ("POST", "/v1/sessions?model=clinic", "none"),
        ("POST", "/v1/sessions/0/answers?x=1", "none"),
        ("GET", "/v1/models?limits=3", "limit, cursor"),
        ("POST", "/v1/admin/datasets?name=x&dorp=ssn", "name"),
    ],
)
def test_a_parameter_that_a_route_does_not_know_is_refused(shared_client: httpx.Client, method: str, address: str, takes: str) -> None:
    told = problem(shared_client.request(method, address), 422, "invalid-request")
    assert f"it takes {takes}" in told["detail"]
    assert not any(word in told["detail"] for word in ("statsu", "dorp", "limits"))


def test_health_is_told_to_who_asks_for_the_head_alone(shared_client: httpx.Client) -> None:
    for path in ("/livez", "/readyz"):
        reply = shared_client.head(path)
        assert (reply.status_code, reply.content) == (200, b"")


def test_shapes_are_told_in_words_of_json(shared_client: httpx.Client) -> None:
    told = [
        problem(shared_client.post("/v1/sessions", json=body), 422, "invalid-request")["detail"]
        for body in ([], {"model": "clinic", "known": 3}, {"model": "clinic", "reference": "x" * 201})
    ]
    assert told == ["expected an object", "known: expected an object", "reference: expected at most 200 characters"]


def test_a_request_id_is_echoed_or_made(shared_client: httpx.Client) -> None:
    assert shared_client.get("/livez", headers={"X-Request-ID": "abc-1.2_3"}).headers["x-request-id"] == "abc-1.2_3"
    made = shared_client.get("/livez", headers={"X-Request-ID": "no good"}).headers["x-request-id"]
    assert len(made) == 32


def test_an_unexpected_error_is_a_problem_that_tells_nothing(shared_client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(shared_client.app.state.steps, "read", broken)  # type: ignore[attr-defined]
    reply = shared_client.get("/v1/sessions/01890000-0000-7000-8000-000000000000")
    assert "secret" not in str(problem(reply, 500, "internal"))


def test_the_openapi_page_lists_the_routes_of_the_contract(shared_client: httpx.Client) -> None:
    paths = shared_client.get("/openapi.json").json()["paths"]
    assert {(method, path) for path, methods in paths.items() for method in methods} >= {
        ("post", "/v1/sessions"),
        ("get", "/v1/sessions"),
        ("get", "/v1/sessions/{id}"),
        ("delete", "/v1/sessions/{id}"),
        ("post", "/v1/sessions/{id}/answers"),
        ("post", "/v1/sessions/{id}/finish"),
        ("post", "/v1/next"),
        ("post", "/v1/predict"),
        ("get", "/v1/models"),
        ("get", "/v1/models/{name}"),
        ("get", "/v1/models/{name}/versions/{version}"),
        ("post", "/v1/admin/models"),
        ("put", "/v1/admin/models/{name}/aliases/{alias}"),
        ("get", "/livez"),
        ("get", "/readyz"),
    }
