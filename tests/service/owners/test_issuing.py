"""Keys and owners: who may call, whose sessions, shown once and stored hashed; on both databases."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from frugal.service.api.bodies import AdminRoute, ClientRoute, OpenRoute
from frugal.service.config import Settings
from frugal.service.keyform import digest, new_key, well_formed
from tests.databases import rows
from tests.examples import clinic, wide
from tests.raw import Raw
from tests.service.conftest import publish
from tests.serving import problem, serving
from tests.waiting import eventually, let_time_pass

ADMIN = new_key()
OPEN_PAGES = {"/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json"}  # FastAPI's own


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def keyed(database_url: str) -> Iterator[httpx.Client]:
    """A server with an admin key in its settings; the client sends it unless told otherwise."""
    with serving(Settings(database=database_url, admin_key=ADMIN)) as client:
        client.headers.update(bearer(ADMIN))
        publish(client, "clinic", clinic())
        yield client


def made(client: httpx.Client, owner: str, role: str = "client", **more: str) -> dict:
    reply = client.post("/v1/admin/keys", json={"owner": owner, "role": role, **more})
    assert reply.status_code == 201, reply.text
    return reply.json()


def routes(client: httpx.Client) -> list:
    """Every route of the running app, whatever router it came from."""

    def walk(found: list) -> Iterator:
        for route in found:
            inner = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
            if inner:
                yield from walk(inner)
            else:
                yield route

    return list(walk(client.app.routes))  # type: ignore[attr-defined]


def test_every_route_has_a_rule(keyed: httpx.Client) -> None:
    """Without a key 401, with a client's key 403 on admin's routes; the few open ones are named here."""
    client_key = made(keyed, "shop")["key"]
    seen = set()
    for route in routes(keyed):
        if route.path in OPEN_PAGES:
            continue
        assert isinstance(route, ClientRoute | OpenRoute), f"{route.path} has no rule: give its router a route_class"
        path = re.sub(r"\{id\}", "01890000-0000-7000-8000-000000000000", route.path)
        path = re.sub(r"\{version\}", "1", re.sub(r"\{\w+\}", "x", path) if "{version}" not in path else path.replace("{name}", "x"))
        for method in route.methods:
            seen.add((method, route.path))
            bare = httpx.request(method, keyed.base_url.join(path))
            assert isinstance(route, AdminRoute) == route.path.startswith("/v1/admin")
            if isinstance(route, OpenRoute):
                assert route.path in ("/livez", "/readyz", "/metrics")
                assert bare.status_code == 200
                continue
            problem(bare, 401, "unauthorized")
            assert bare.headers["www-authenticate"].startswith("Bearer")
            known = httpx.request(method, keyed.base_url.join(path), headers=bearer(client_key))
            if isinstance(route, AdminRoute):
                problem(known, 403, "forbidden")
            else:
                assert known.status_code not in (401, 403)
    assert len(seen) >= 22


def test_the_body_is_not_read_before_the_caller_is_known(keyed: httpx.Client) -> None:
    for body in (b"{", b"x" * 2_000_000):
        reply = httpx.post(keyed.base_url.join("/v1/sessions"), content=body, headers={"Content-Type": "text/plain"})
        problem(reply, 401, "unauthorized")


NO_KEYS = ["", "Bearer", "Basic abc", "Bearer frgl_x", "Bearer " + new_key(), ADMIN, "Bearer \u00e9", "bearer x y"]


@pytest.mark.parametrize("header", NO_KEYS, ids=range(len(NO_KEYS)))
def test_what_is_no_key_is_refused(keyed: httpx.Client, header: str) -> None:
    problem(keyed.get("/v1/models", headers={b"Authorization": header.encode()}), 401, "unauthorized")


def test_a_key_is_shown_once_and_stored_hashed(keyed: httpx.Client, database_url: str) -> None:
    key = made(keyed, "shop")
    assert well_formed(key["key"])
    assert rows(database_url, "SELECT sha256, owner, role FROM keys") == [(digest(key["key"]), "shop", "client")]
    listed = keyed.get("/v1/admin/keys").json()["items"]
    assert listed == [{name: value for name, value in key.items() if name != "key"}]
    assert key["key"] not in keyed.get("/v1/admin/keys").text


def test_sessions_belong_to_owners_not_keys(keyed: httpx.Client) -> None:
    first, second, other = made(keyed, "shop")["key"], made(keyed, "shop")["key"], made(keyed, "other")["key"]
    session = keyed.post("/v1/sessions", json={"model": "clinic"}, headers=bearer(first)).json()
    url = f"/v1/sessions/{session['id']}"
    assert keyed.get(url, headers=bearer(second)).json() == session
    unknown = problem(keyed.get("/v1/sessions/01890000-0000-7000-8000-000000000000", headers=bearer(other)), 404, "session-not-found")
    for method, path in (("GET", url), ("DELETE", url), ("POST", f"{url}/finish")):
        told = problem(keyed.request(method, path, headers=bearer(other)), 404, "session-not-found")
        assert told | {"request_id": ""} == unknown | {"request_id": ""}
    answer = {"feature": "fever", "value": "yes"}
    problem(keyed.post(f"{url}/answers", json=answer, headers=bearer(other)), 404, "session-not-found")
    problem(keyed.get(url), 404, "session-not-found")  # to the admin too: it is not the owner
    assert keyed.get("/v1/sessions", headers=bearer(other)).json()["items"] == []
    assert keyed.post(f"{url}/answers", json=answer, headers=bearer(first)).status_code == 200


def test_idempotency_keys_belong_to_owners(keyed: httpx.Client) -> None:
    ids = set()
    for owner in ("a", "b"):
        headers = bearer(made(keyed, owner)["key"]) | {"Idempotency-Key": "same"}
        ids.add(keyed.post("/v1/sessions", json={"model": "clinic"}, headers=headers).json()["id"])
    assert len(ids) == 2


def test_a_revoked_key_counts_no_more(keyed: httpx.Client) -> None:
    key = made(keyed, "shop")
    assert keyed.get("/v1/models", headers=bearer(key["key"])).status_code == 200
    assert keyed.delete(f"/v1/admin/keys/{key['id']}").status_code == 204
    problem(keyed.get("/v1/models", headers=bearer(key["key"])), 401, "unauthorized")
    assert keyed.delete(f"/v1/admin/keys/{key['id']}").status_code == 204
    assert keyed.get("/v1/admin/keys").json()["items"][0]["revoked_at"] is not None
    for id in ("x", "01890000-0000-7000-8000-000000000000"):
        problem(keyed.delete(f"/v1/admin/keys/{id}"), 404, "key-not-found")


def test_the_last_admin_key_that_does_not_expire_is_kept(client: httpx.Client) -> None:
    own = client.post("/v1/admin/keys", json={"owner": "boss", "role": "admin"}).json()
    client.headers["Authorization"] = f"Bearer {own['key']}"
    soon = client.post("/v1/admin/keys", json={"owner": "boss", "role": "admin", "expires_at": "2099-01-01T00:00:00Z"}).json()
    told = problem(client.delete(f"/v1/admin/keys/{own['id']}"), 409, "conflict")
    assert "the last admin key that does not expire" in told["detail"]
    assert client.delete(f"/v1/admin/keys/{soon['id']}").status_code == 204


def test_the_last_admin_key_cannot_revoke_itself(client: httpx.Client) -> None:
    first = made(client, "boss", "admin")
    client.headers.update(bearer(first["key"]))
    problem(client.delete(f"/v1/admin/keys/{first['id']}"), 409, "conflict")
    second = made(client, "boss", "admin")
    client.headers.update(bearer(second["key"]))
    assert client.delete(f"/v1/admin/keys/{first['id']}").status_code == 204


def test_revoking_is_seen_by_another_process_within_five_seconds(postgres, database_url: str) -> None:
    if database_url.startswith("sqlite"):
        pytest.skip("an SQLite file has one process")
    settings = Settings(database=database_url, admin_key=ADMIN)
    with serving(settings) as here, serving(settings) as there:
        here.headers.update(bearer(ADMIN))
        key = made(here, "shop")
        assert there.get("/v1/models", headers=bearer(key["key"])).status_code == 200
        here.delete(f"/v1/admin/keys/{key['id']}")
        reply = eventually(lambda: there.get("/v1/models", headers=bearer(key["key"])), lambda reply: reply.status_code != 200)
        problem(reply, 401, "unauthorized")


def test_a_key_expires(keyed: httpx.Client) -> None:
    lasting = made(keyed, "shop", expires_at=(datetime.now(UTC) + timedelta(minutes=10)).isoformat())["key"]
    assert keyed.get("/v1/models", headers=bearer(lasting)).status_code == 200
    short = made(keyed, "shop", expires_at=(datetime.now(UTC) + timedelta(seconds=3)).isoformat())["key"]
    gone = eventually(lambda: keyed.get("/v1/models", headers=bearer(short)), lambda reply: reply.status_code != 200)
    problem(gone, 401, "unauthorized")
    assert keyed.get("/v1/models", headers=bearer(lasting)).status_code == 200
    past = {"owner": "shop", "expires_at": "2020-01-01T00:00:00Z"}
    problem(keyed.post("/v1/admin/keys", json=past), 422, "invalid-request")
    problem(keyed.post("/v1/admin/keys", json=past | {"expires_at": "tomorrow"}), 422, "invalid-request")
    problem(keyed.post("/v1/admin/keys", json=past | {"expires_at": "9999-12-31T23:59:59-23:59"}), 422, "invalid-request")
    problem(keyed.post("/v1/admin/keys", json=past | {"expires_at": "2099-01-01T00:00:00"}), 422, "invalid-request")


def test_owners_and_roles_are_checked(keyed: httpx.Client) -> None:
    for wrong in ({"owner": "A"}, {"owner": ""}, {"owner": "a/b"}, {}, {"owner": "a", "role": "king"}, {"owner": "a", "key": "mine"}):
        problem(keyed.post("/v1/admin/keys", json=wrong), 422, "invalid-request")


def test_loopback_is_open_until_the_first_key(client: httpx.Client) -> None:
    session = client.post("/v1/sessions", json={"model": "clinic"}).json()
    problem(client.post("/v1/admin/keys", json={"owner": "shop"}), 409, "conflict")  # an admin's first
    admin = made(client, "boss", "admin")
    problem(client.get("/v1/models"), 401, "unauthorized")
    problem(client.get(f"/v1/sessions/{session['id']}"), 401, "unauthorized")
    client.headers.update(bearer(admin["key"]))
    assert client.get("/v1/models").status_code == 200
    assert client.get(f"/v1/sessions/{session['id']}").status_code == 404  # of the owner "local", who is no more


FOREIGN = """evil.example evil.example:8000 192.168.1.5 localhost.evil.example [2001:db8::1]:80 me@localhost localhost:80@evil.example
localhost:8000:evil localhost. 127.0.0.1.evil.example localhost/evil.example localhost# localhost? localhost: localhost:0 localhost:65536
localhost:8e3 [::1].evil.example [::1 127.1 127.0.0.256 0127.0.0.1 evil.example\\localhost http://localhost localhost,evil.example"""


@pytest.mark.parametrize("host", ["", "localhost evil.example", *FOREIGN.split()])
def test_open_mode_refuses_foreign_host_names(shared_client: httpx.Client, host: str) -> None:
    problem(shared_client.get("/v1/models", headers={"Host": host}), 403, "foreign-request")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "127.0.0.1:8000", "127.5.5.5", "[::1]:8000", "[::1]"])
def test_open_mode_answers_to_this_machine_by_its_names(shared_client: httpx.Client, host: str) -> None:
    assert shared_client.get("/v1/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "hosts",
    [b"", b"Host: localhost\r\nHost: evil.example\r\n", b"Host: localhost\r\nHost: localhost\r\n"],
    ids=["none", "another", "twice"],
)
def test_open_mode_wants_one_host(shared_client: httpx.Client, hosts: bytes) -> None:
    with Raw(shared_client.base_url.port or 0) as raw:
        raw.send(b"GET /v1/models HTTP/1.1\r\n" + hosts + b"\r\n").reply().problem(403, "foreign-request")


OWN = "http://localhost:8000"  # the origin of our own page, where the Host is localhost:8000


OTHERS = """https://evil.example null http://localhost:8000.evil.example http://localhost:8000/ http://localhost:3000 http://localhost
http://127.0.0.1:8000 https://localhost:8000"""
SITES = ("cross-site", "same-site", "", "CROSS-SITE", "other", "none, same-origin")


@pytest.mark.parametrize(
    "headers",
    [
        *({"Origin": origin} for origin in ["", f"{OWN}, http://evil.example", *OTHERS.split()]),
        *({"Sec-Fetch-Site": site} for site in SITES),
        {"Origin": OWN, "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost:8001", "Sec-Fetch-Site": "same-origin"},
    ],
    ids=str,
)
def test_open_mode_takes_nothing_from_other_pages_or_other_ports(client: httpx.Client, headers: dict[str, str]) -> None:
    reply = client.post("/v1/admin/models/clinic/versions/1/retire", headers={"Host": "localhost:8000"} | headers)
    problem(reply, 403, "foreign-request")
    assert client.get("/v1/models/clinic").json()["versions"][0]["retired_at"] is None


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8000", OWN),
        ("LOCALHOST:8000", OWN),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("localhost", "http://localhost"),
        ("localhost:80", "http://localhost"),
    ],
)
@pytest.mark.parametrize("site", [{}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}], ids=str)
def test_open_mode_serves_its_own_page(shared_client: httpx.Client, host: str, origin: str, site: dict[str, str]) -> None:
    headers = {"Host": host, "Origin": origin} | site
    assert shared_client.post("/v1/next", json={"model": "clinic"}, headers=headers).status_code == 200


PASSED_ON = """Fly-Client-IP DO-Connecting-IP Ali-Cdn-Real-Ip
X-Sucuri-ClientIP X-Varnish X-Vercel-Id Tailscale-User-Login X-Amz-Cf-Id Max-Forwards
X-Forwarded-For Forwarded X-Real-IP Via X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Port X-Forwarded-Anything X-Forwarded
Forwarded-For X_Forwarded_For X-Real-Port X-Client-IP True-Client-IP CF-Connecting-IP CDN-Loop X-Original-Host X-Original-Forwarded-For
X-Envoy-External-Address X-Cluster-Client-IP Fastly-Client-IP X-Azure-ClientIP"""


@pytest.mark.parametrize("name", PASSED_ON.split())
def test_open_mode_refuses_forwarded_requests(shared_client: httpx.Client, name: str) -> None:
    problem(shared_client.get("/v1/models", headers={name: "127.0.0.1"}), 403, "foreign-request")


def test_a_key_has_a_rate(database_url: str) -> None:
    with serving(Settings(database=database_url, admin_key=ADMIN, max_rate=5)) as client:
        keys = [made_key["key"] for made_key in _keys(client)]
        replies = [client.get("/v1/models", headers=bearer(keys[0])) for _ in range(30)]
        refused = [reply for reply in replies if reply.status_code == 429]
        assert 10 <= len(refused) <= 20
        assert problem(refused[0], 429, "too-many-requests")
        assert refused[0].headers["retry-after"] == "1"
        assert client.get("/v1/models", headers=bearer(keys[1])).status_code == 200
        time.sleep(0.5)
        assert client.get("/v1/models", headers=bearer(keys[0])).status_code == 200


def _keys(client: httpx.Client) -> list[dict]:
    client.headers.update(bearer(ADMIN))
    return [made(client, "a"), made(client, "b")]


def test_an_owner_has_so_many_open_sessions(database_url: str) -> None:
    with serving(Settings(database=database_url, max_open_sessions=3)) as client:
        publish(client, "wide", wide(2))
        ids = [client.post("/v1/sessions", json={"model": "wide"}).json()["id"] for _ in range(3)]
        told = client.post("/v1/sessions", json={"model": "wide"})
        assert problem(told, 429, "too-many-sessions")["limit"] == 3
        assert told.headers["retry-after"] == "60"
        client.post(f"/v1/sessions/{ids[0]}/finish")
        assert client.post("/v1/sessions", json={"model": "wide"}).status_code == 201
        problem(client.post("/v1/sessions", json={"model": "wide"}), 429, "too-many-sessions")


def test_what_has_ended_or_was_deleted_makes_room_at_once(database_url: str) -> None:
    settings = Settings(database=database_url, max_open_sessions=3)
    with serving(settings) as client:
        publish(client, "wide", wide(2))
        for _ in range(6):  # nothing can be bought: over as soon as it is opened
            assert client.post("/v1/sessions", json={"model": "wide", "budget": 0}).json()["status"] == "done"
        for _ in range(4):
            ids = [client.post("/v1/sessions", json={"model": "wide"}).json()["id"] for _ in range(3)]
            problem(client.post("/v1/sessions", json={"model": "wide"}), 429, "too-many-sessions")
            for id in ids:
                assert client.delete(f"/v1/sessions/{id}").status_code == 204


def test_openings_at_the_same_moment_pass_the_limit_by_none(database_url: str) -> None:
    with serving(Settings(database=database_url, max_open_sessions=5)) as client, ThreadPoolExecutor(16) as pool:
        publish(client, "wide", wide(2))
        for _ in range(4):
            opened = list(pool.map(lambda _: client.post("/v1/sessions", json={"model": "wide"}), range(24)))
            assert sorted(reply.status_code for reply in opened) == [201] * 5 + [429] * 19
            for reply in opened:
                if reply.status_code == 201:
                    assert client.delete(f"/v1/sessions/{reply.json()['id']}").status_code == 204


def test_sessions_that_are_over_are_kept_no_longer_than_retention(database_url: str) -> None:
    with serving(Settings(database=database_url, session_ttl=3600, retention=600, sweep_every=0.05)) as client:
        publish(client, "wide", wide(2))
        id = client.post("/v1/sessions", json={"model": "wide"}).json()["id"]
        client.post(f"/v1/sessions/{id}/answers", json={"feature": "f0", "value": 1})
        let_time_pass(client, 3600)
        eventually(lambda: client.get(f"/v1/sessions/{id}").json()["status"] == "expired")
        let_time_pass(client, 600)
        gone = eventually(lambda: client.get(f"/v1/sessions/{id}"), lambda reply: reply.status_code != 200)
        problem(gone, 404, "session-not-found")
        assert rows(database_url, "SELECT count(*) FROM answers") == [(0,)]


def test_deeds_are_in_the_audit_log(keyed: httpx.Client) -> None:
    key = made(keyed, "boss", "admin")
    headers = bearer(key["key"]) | {"X-Request-ID": "req-1"}
    publish(keyed, "clinic", wide(2), alias="live")
    keyed.put("/v1/admin/models/clinic/aliases/live", json={"version": 1}, headers=headers)
    keyed.post("/v1/admin/models/clinic/versions/2/retire", headers=headers)
    keyed.delete("/v1/admin/models/clinic/aliases/live", headers=headers)
    id = keyed.post("/v1/sessions", json={"model": "clinic"}, headers=headers).json()["id"]
    keyed.delete(f"/v1/sessions/{id}", headers=headers)
    keyed.delete(f"/v1/admin/keys/{key['id']}")
    items = keyed.get("/v1/admin/audit?limit=100").json()["items"]
    assert [(item["owner"], item["action"], item["subject"], item["details"]) for item in reversed(items)] == [
        ("admin", "version.publish", "clinic:1", {}),
        ("admin", "key.create", key["id"], {"owner": "boss", "role": "admin"}),
        ("admin", "version.publish", "clinic:2", {"alias": "live"}),
        ("boss", "alias.set", "clinic@live", {"version": 1}),
        ("boss", "version.retire", "clinic:2", {}),
        ("boss", "alias.drop", "clinic@live", {}),
        ("boss", "session.delete", id, {}),
        ("admin", "key.revoke", key["id"], {}),
    ]
    assert (items[1]["key_id"], items[1]["request_id"]) == (key["id"], "req-1")
    page = keyed.get("/v1/admin/audit?limit=3").json()
    rest = keyed.get("/v1/admin/audit", params={"limit": 100, "cursor": page["next"]}).json()
    assert page["items"] + rest["items"] == items
