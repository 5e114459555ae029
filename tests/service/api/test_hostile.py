"""Hostile input on every route: 4xx, never 5xx, nothing echoed, nothing changed; on both databases."""

import json
from collections.abc import Iterator

import httpx
import pytest

from frugal.models import dump
from frugal.service.config import Settings
from frugal.service.keyform import new_key
from tests.databases import rows
from tests.examples import clinic
from tests.forging import forged
from tests.service.conftest import publish
from tests.serving import serving

TABLES = ("sessions", "answers", "versions", "aliases", "keys", "idempotency_keys", "audit_log", "datasets", "jobs")
SECRET = "s3cr3t-marker"
DEEP = 100_000

RAW = {
    "nothing": b"",
    "half": b'{"model": ',
    "NaN": b'{"model": NaN, "budget": NaN, "version": NaN, "feature": "fever", "value": NaN}',
    "Infinity": b'{"model": "clinic", "budget": Infinity}',
    "-Infinity": b'{"feature": "sugar", "value": -Infinity}',
    "overflow": b'{"model": "clinic", "budget": 1e400, "feature": "sugar", "value": 1e400, "version": 1e400}',
    "surrogate": b'{"model": "\\ud800", "feature": "\\ud800", "value": "\\udfff", "owner": "\\ud800"}',
    "surrogate key": b'{"\\ud800": 1}',
    "deep array": b"[" * DEEP + b"]" * DEEP,
    "deep object": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "deep value": b'{"model": "clinic", "known": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "digits": b'{"model": "clinic", "seed": ' + b"9" * 5000 + b', "version": ' + b"9" * 5000 + b"}",
    "long fraction": b'{"feature": "sugar", "value": 0.' + b"1" * 5000 + b', "more": 1}',
    "duplicate": b'{"model": "clinic", "model": "clinic", "feature": "fever", "feature": "fever", "version": 1, "version": 1}',
    "unknown": json.dumps({"model": "clinic", "feature": "fever", "value": "yes", "version": 1, "owner": "a", SECRET: 1}).encode(),
    "NUL": b'{"model": "clinic\\u0000", "feature": "fe\\u0000ver", "value": "y\\u0000", "owner": "a\\u0000", "reference": "\\u0000"}',
    "raw NUL": b'{"model": "clinic\x00"}',
    "not UTF-8": b'{"model": "\xff\xfe"}',
    "UTF-16": '{"model": "clinic"}'.encode("utf-16"),
    "BOM": b'\xef\xbb\xbf{"model": "clinic"}',
    "text": SECRET.encode(),
    "number": b"1",
    "null": b"null",
    "list": b"[]",
    "sets money": b'{"feature": "fever", "value": "yes", "cost": 0, "spent": 0, "model": "clinic", "version": 1}',
    "sets state": b'{"feature": "fever", "value": "yes", "status": "done", "owner": "a", "revision": 9, "model": "clinic", "version": 1}',
    "long text": json.dumps({"feature": "x" * 100_000, "value": 1, "model": "m" * 100_000, "owner": "o" * 100_000, "version": 1}).encode(),
    "many fields": json.dumps({f"f{i}": i for i in range(20_000)}).encode(),
    "too long": b'{"model": "' + b"x" * 20_000_000 + b'"}',
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def attacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    from tests.databases import fresh_sqlite

    fresh = fresh_sqlite(tmp_path_factory.mktemp("hostile")) if request.param == "sqlite" else request.getfixturevalue("postgres").fresh()
    key = new_key()
    with fresh as url, serving(Settings(database=url, admin_key=key)) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        publish(client, "clinic", clinic())
        assert client.post("/v1/admin/datasets?name=small", content=b"a,b\n" + b"1,x\n2,y\n" * 5).status_code == 201
        client.url_of_database = url  # type: ignore[attr-defined]
        client.session = client.post("/v1/sessions", json={"model": "clinic"}).json()["id"]  # type: ignore[attr-defined]
        yield client


def routes_with_bodies(client: httpx.Client) -> list[tuple[str, str]]:
    found = []
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        url = path.replace("{id}", client.session).replace("{name}", "clinic").replace("{alias}", "live").replace("{version}", "1")  # type: ignore[attr-defined]
        found += [(method, url) for method in methods if method in ("post", "put")]
    return found


def state(client: httpx.Client) -> list:
    return [rows(client.url_of_database, f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", RAW)
def test_hostile_bodies_are_refused_on_every_route_and_change_nothing(attacked: httpx.Client, name: str) -> None:
    before = state(attacked)
    for method, url in routes_with_bodies(attacked):
        if url.endswith("/retire") or (url.endswith("/finish") and name in ("nothing", "null")):
            continue  # the one reads no body, the other needs none
        for kind in ("application/json", "application/octet-stream", "text/plain"):
            reply = send(attacked, method, url, RAW[name], kind)
            assert 400 <= reply.status_code < 500, (method, url, kind, reply.status_code, reply.text[:200])
            assert reply.headers["content-type"] == "application/problem+json"
            assert SECRET not in reply.text
    assert state(attacked) == before


def send(client: httpx.Client, method: str, url: str, body: bytes, kind: str) -> httpx.Response:
    if "/admin/models" in url and url.endswith("models"):
        url += "?name=clinic"
    return client.request(method, url, content=body, headers={"Content-Type": kind})


@pytest.mark.parametrize(
    "path",
    [
        "/v1/sessions/%00",
        "/v1/sessions/%ff%fe",
        "/v1/sessions/" + "x" * 5000,
        "/v1/models/%00",
        "/v1/models/..%2f..%2fetc",
        "/v1/models/clinic/versions/99999999999999999999",
        "/v1/models/clinic/versions/-1",
        "/v1/models/clinic/versions/1e3",
        "/v1/sessions?limit=99999999999999999999",
        "/v1/sessions?limit=NaN",
        "/v1/sessions?cursor=%00",
        "/v1/sessions?status=%ff",
        "/v1/models?cursor=%00",
        "/v1/admin/keys?cursor=x",
        "/v1/admin/audit?cursor=%ff",
    ],
)
def test_hostile_addresses_are_refused(attacked: httpx.Client, path: str) -> None:
    reply = attacked.get(path)
    assert 400 <= reply.status_code < 500, reply.text
    assert reply.headers["content-type"] == "application/problem+json"


LONG = "n" * 100_000
SPILLED = [
    ("POST", "/v1/sessions", {"model": SECRET}),
    ("POST", "/v1/sessions", {"model": "clinic@" + SECRET}),
    ("POST", "/v1/sessions", {"model": "clinic", SECRET: 1}),
    ("POST", "/v1/sessions", {"model": "clinic", "known": {SECRET: 1}}),
    ("POST", "/v1/sessions", {"model": "clinic", "known": {"fever": SECRET}}),
    ("POST", "/v1/sessions", {"model": "clinic", "known": {SECRET: [SECRET]}}),
    ("POST", "/v1/sessions", {"model": "clinic", "known": {SECRET + LONG: 1}}),
    ("POST", "/v1/sessions", {"model": "clinic", "seed": SECRET, "budget": SECRET, "confidence": SECRET, "reference": [SECRET]}),
    ("POST", "/v1/sessions/ID/answers", {"feature": SECRET, "value": 1}),
    ("POST", "/v1/sessions/ID/answers", {"feature": "fever", "value": SECRET}),
    ("POST", "/v1/sessions/ID/answers", {"feature": "fever", "status": SECRET}),
    ("POST", "/v1/sessions/ID/answers", {"feature": "fever", "value": "yes", SECRET: SECRET}),
    ("POST", "/v1/sessions/ID/answers", {"answers": [{"feature": "fever", "value": "no"}, {"feature": SECRET, "value": 1}]}),
    ("POST", "/v1/sessions/ID/answers", {"answers": [{"feature": "fever", "value": {SECRET: SECRET}}]}),
    ("POST", "/v1/sessions/ID/finish", {SECRET: 1}),
    ("POST", "/v1/next", {"model": "clinic", "known": {SECRET: 1}}),
    ("POST", "/v1/next", {"model": "clinic", "answers": {SECRET: 1}}),
    ("POST", "/v1/next", {"model": "clinic", "answers": {SECRET: [1]}}),
    ("POST", "/v1/predict", {"model": "clinic", "rows": [{"fever": "no"}, {SECRET: 1}]}),
    ("POST", "/v1/predict", {"model": "clinic", "rows": [{"sugar": SECRET}]}),
    ("POST", "/v1/predict", {"model": "clinic", "rows": [SECRET]}),
    ("POST", "/v1/admin/keys", {"owner": SECRET + "!", "role": SECRET, "expires_at": SECRET}),
    ("PUT", f"/v1/admin/models/clinic/aliases/{SECRET}", {"version": 999}),
    ("PUT", f"/v1/admin/models/{SECRET}/aliases/live", {"version": 1}),
    ("PUT", "/v1/admin/datasets/small/costs", {SECRET: 1}),
    ("PUT", "/v1/admin/datasets/small/costs", {SECRET: {"cost": -1}}),
    ("PUT", "/v1/admin/datasets/small/costs", {"a": {"cost": 1, SECRET: 1}}),
    ("PUT", f"/v1/admin/datasets/{SECRET}/costs", {"a": 1}),
    ("POST", "/v1/admin/training-jobs", {"dataset": SECRET, "label": "b"}),
    ("POST", "/v1/admin/training-jobs", {"dataset": "small", "label": SECRET}),
    ("POST", "/v1/admin/training-jobs", {"dataset": "small", "label": "b", "learner": SECRET}),
    ("POST", "/v1/admin/training-jobs", {"dataset": "small", "label": "b", "params": {SECRET: 1}}),
    ("POST", "/v1/admin/training-jobs", {"dataset": "small", "label": "b", "learner": "budget-forest", "params": {"impurity": SECRET}}),
    ("POST", "/v1/admin/training-jobs", {"dataset": "small", "label": "b", "params": {"categorical": [SECRET]}}),
    ("POST", "/v1/admin/training-jobs", {"dataset": "small", "label": "b", "costs": {SECRET: 1}}),
    ("POST", "/v1/admin/training-jobs", {"dataset": "small", "label": "b", "penalties": {SECRET: {"x": 1}}}),
    ("POST", "/v1/admin/training-jobs", {"dataset": "small", "label": "b", "publish": {"name": SECRET + "!"}}),
    ("GET", f"/v1/models/{SECRET}", None),
    ("GET", f"/v1/models/{SECRET}/versions/1", None),
    ("GET", f"/v1/models/clinic/versions/{SECRET}", None),
    ("GET", f"/v1/sessions/{SECRET}", None),
    ("GET", f"/v1/sessions?limit={SECRET}&cursor={SECRET}&status={SECRET}", None),
    ("GET", f"/{SECRET}", None),
    (SECRET.upper().replace("-", "").replace("3", "E"), "/livez", None),
    ("DELETE", f"/v1/sessions/{SECRET}", None),
    ("DELETE", f"/v1/admin/keys/{SECRET}", None),
    ("POST", f"/v1/admin/models?name={SECRET}!", None),
    ("POST", f"/v1/admin/datasets?name={SECRET}!", None),
    ("POST", f"/v1/admin/datasets?name=more&costs={SECRET}", None),
    ("POST", '/v1/admin/datasets?name=more&costs={"' + SECRET + '":-1}', None),
]


@pytest.mark.parametrize(("method", "path", "body"), SPILLED, ids=lambda part: str(part)[:60])
def test_no_problem_repeats_what_was_sent(attacked: httpx.Client, method: str, path: str, body: object) -> None:
    before = state(attacked)
    reply = attacked.request(method, path.replace("ID", attacked.session), json=body)  # type: ignore[attr-defined]
    assert 400 <= reply.status_code < 500, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert SECRET not in reply.text
    assert SECRET.upper().replace("-", "").replace("3", "E") not in reply.text
    assert state(attacked) == before


def test_a_name_that_the_client_chose_is_told_by_its_place(attacked: httpx.Client) -> None:
    def told(path: str, body: object) -> dict:
        return attacked.post(path, json=body).json()

    wrong = told("/v1/sessions", {"model": "clinic", "known": {"fever": "no", "sugar": 1, "nose": []}, "more": 1})
    assert [fault["where"] for fault in wrong["errors"]] == ["known.#3", "#3"]
    assert told("/v1/sessions", {"model": "clinic", "known": {"fever": "no", "nose": 1}})["detail"].startswith(
        "known.#2: There is no feature"
    )
    answers = [{"feature": "fever", "value": "no"}, {"feature": "nose", "value": 1}]
    wrong = told(f"/v1/sessions/{attacked.session}/answers", {"answers": answers})  # type: ignore[attr-defined]
    assert wrong["detail"].startswith("answers.1: There is no feature of this name: this version knows 'fever', ")
    wrong = told("/v1/predict", {"model": "clinic", "rows": [{}, {"nose": 1}]})
    assert (wrong["row"], wrong["detail"][:30]) == (1, "row 1: There is no feature of ")


@pytest.mark.parametrize("path", ["/livez/", "/v1/sessions/", "/v1/models/", "/v1/models/clinic/"])
def test_a_slash_too_many_leads_nowhere(attacked: httpx.Client, path: str) -> None:
    reply = attacked.get(path, headers={"Host": "evil.example"})
    assert (reply.status_code, "location" in reply.headers) == (404, False)
    assert reply.json()["type"].endswith("not-found")


def deep(levels: int) -> list:
    nested: list = []
    for _ in range(levels):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"p": deep(300)}},
        {"parameters": {"p": deep(21)}},
        {"parameters": {LONG: 1}},
        {"parameters": {"p": LONG}},
        {"parameters": {"p": "\ud800"}},
        {"parameters": {"p": "a\0b"}},
        {"metrics": {"m": deep(300)}},
        {"metrics": {"error": "low"}},
        {"metrics": {"error": 1.5}},
        {"metrics": {"error": [0.5]}},
        {"metrics": {"rows": 10}},
        {"metrics": {"curve": 5}},
        {"metrics": {"curve": [{}]}},
        {"metrics": {"curve": [{"by": "magic", "error": 0, "mean_cost": 0, "max_cost": 0, "trees": 1}]}},
        {"metrics": {"feature_use": {"fever": "often"}}},
        {"metrics": {"confusion": {"well": {"ill": 0.5}}}},
        {"metrics": {"mean_cost": -1}},
        {"metrics": {"remark": "text"}},
        {"learner": LONG},
        {"classes": ["well", "ill", LONG]},
    ],
    ids=lambda change: str(change)[:60],
)
def test_what_could_not_be_shown_is_not_published(attacked: httpx.Client, change: dict) -> None:
    archive = forged(dump(clinic()), lambda header, manifest, body: manifest.update(change))
    before = state(attacked)
    reply = attacked.post("/v1/admin/models?name=odd&alias=live", content=archive)
    assert (reply.status_code, reply.json()["type"]) == (422, "urn:frugal:problem:bad-archive")
    assert len(reply.text) < 2000
    assert state(attacked) == before


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("schema", {"name": LONG}),
        ("schema", {"categories": ["no", LONG]}),
        ("schema", {"unit": LONG}),
        ("schema", {"question": LONG}),
        ("costs", {"feature": LONG}),
        ("costs", {"group": LONG}),
        ("costs", {"question": LONG}),
    ],
)
def test_names_too_long_to_show_are_refused_in_archives(attacked: httpx.Client, part: str, change: dict) -> None:
    archive = forged(dump(clinic()), lambda header, manifest, body: manifest[part][0].update(change))
    reply = attacked.post("/v1/admin/models?name=odd", content=archive)
    assert (reply.status_code, reply.json()["type"]) == (422, "urn:frugal:problem:bad-archive")
    assert len(reply.text) < 2000


def test_names_too_long_to_show_are_refused_in_tables_and_prices(attacked: httpx.Client) -> None:
    for length in (201, 60_000):
        name = "n" * length
        reply = attacked.post("/v1/admin/datasets?name=long", content=f"{name},b\n1,2\n2,3\n".encode())
        assert (reply.status_code, reply.json()["type"]) == (422, "urn:frugal:problem:bad-table")
        for price in ({name: 1}, {"a": {"cost": 1, "group": name}}, {"a": {"cost": 1, "unit": name * 10}}):
            assert attacked.put("/v1/admin/datasets/small/costs", json=price).status_code == 422
        assert attacked.post("/v1/admin/training-jobs", json={"dataset": "small", "label": name}).status_code == 422
    name = "n" * 200
    assert attacked.post("/v1/admin/datasets?name=just", content=f"{name},b\n1,2\n2,3\n".encode()).status_code == 201
    assert attacked.put("/v1/admin/datasets/just/costs", json={name: {"cost": 1, "group": name}}).status_code == 200


def test_damaged_archives_are_refused(attacked: httpx.Client) -> None:
    data = dump(clinic())
    before = state(attacked)
    for wrong in (data[:100], data[:-8], data + b"x", b"\xff" * 8 + data[8:], data[:8] + b"[" * 1000 + data[1008:]):
        reply = attacked.post("/v1/admin/models?name=clinic", content=wrong)
        assert reply.status_code == 422, reply.text
    assert state(attacked) == before
