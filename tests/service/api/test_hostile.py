"""Hostile input on every route: 4xx, never 5xx, nothing echoed, nothing changed; on both databases."""

import json
from collections.abc import Iterator

import httpx
import pytest

from models import dump
from service.config import Settings
from service.keyform import new_key
from tests.databases import rows
from tests.examples import clinic
from tests.service.conftest import publish
from tests.serving import serving

TABLES = ("sessions", "answers", "versions", "aliases", "keys", "idempotency_keys", "audit_log")
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
            assert SECRET not in reply.text.replace(f'"where": "{SECRET}"', "").replace(f'"{SECRET}: ', '"')
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


def test_damaged_archives_are_refused(attacked: httpx.Client) -> None:
    data = dump(clinic())
    before = state(attacked)
    for wrong in (data[:100], data[:-8], data + b"x", b"\xff" * 8 + data[8:], data[:8] + b"[" * 1000 + data[1008:]):
        reply = attacked.post("/v1/admin/models?name=clinic", content=wrong)
        assert reply.status_code == 422, reply.text
    assert state(attacked) == before
