"""Versions over HTTP: immutable, numbered per name, found by name, number and alias; on both databases."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from frugal.models import dump, load
from frugal.service.config import Settings
from frugal.service.errors import BadArchiveSent
from frugal.service.registry.measures import check_metrics
from frugal.service.registry.versions import read_ensemble
from tests.databases import rows
from tests.examples import clinic, wide
from tests.service.conftest import publish
from tests.serving import problem, serving


def version_of(client: httpx.Client, model: str) -> int:
    reply = client.post("/v1/sessions", json={"model": model})
    assert reply.status_code == 201, reply.text
    return reply.json()["model"]["version"]


def test_an_upload_becomes_the_next_version(client: httpx.Client, database_url: str) -> None:
    data = dump(wide(3))
    reply = client.post("/v1/admin/models?name=wide", content=data)
    first = reply.json()
    assert (reply.status_code, reply.headers["location"]) == (201, "/v1/models/wide/versions/1")
    assert (first["name"], first["version"], first["sha256"], first["size"]) == ("wide", 1, hashlib.sha256(data).hexdigest(), len(data))
    assert publish(client, "wide", wide(4))["version"] == 2
    assert publish(client, "wide", wide(3))["version"] == 3
    database = client.app.state.database  # type: ignore[attr-defined]
    assert dump(read_ensemble(database, "wide", 1)) == data
    assert rows(database_url, "SELECT name, number FROM versions ORDER BY 1, 2") == [("clinic", 1), ("wide", 1), ("wide", 2), ("wide", 3)]


def test_a_version_tells_its_schema_costs_metrics_and_curve(client: httpx.Client) -> None:
    curve = [{"by": "trees", "error": 0.25, "mean_cost": 3.0, "max_cost": 9.0, "trees": 1, "budget": None}]
    publish(client, "told", clinic(metrics={"error": 0.25, "curve": curve}, learner="greedy-tree", parameters={"alpha": 2}))
    told = client.get("/v1/models/told/versions/1").json()
    assert told["schema"][1] == {"feature": "sugar", "kind": "numeric", "categories": None, "unit": "mg/dl", "question": None, "used": True}
    assert told["schema"][4]["used"] is False
    assert told["costs"][1] == {"feature": "sugar", "cost": 5.0, "group": "blood", "cost_in_group": 3.0, "delayed": False}
    assert (told["metrics"], told["curve"]) == ({"error": 0.25}, curve)
    assert (told["learner"], told["parameters"], told["classes"], told["trees"]) == (
        "greedy-tree",
        {"alpha": 2},
        ["well", "ill", "grave"],
        1,
    )
    assert (told["vote"], told["order"], told["stop"], told["retired_at"]) == ("counts", "votes", "decided", None)


def test_models_are_listed_by_name_in_pages(client: httpx.Client) -> None:
    for name in ("b", "a", "c.1-x_y"):
        publish(client, name, wide(2))
    publish(client, "a", wide(2), alias="live")
    first = client.get("/v1/models?limit=3").json()
    assert [item["name"] for item in first["items"]] == ["a", "b", "c.1-x_y"]
    second = client.get("/v1/models", params={"limit": 3, "cursor": first["next"]}).json()
    assert ([item["name"] for item in second["items"]], second["next"]) == (["clinic"], None)
    one = client.get("/v1/models/a").json()
    assert one == first["items"][0]
    assert ([version["version"] for version in one["versions"]], one["aliases"]) == ([1, 2], {"live": 2})
    assert [version["aliases"] for version in one["versions"]] == [[], ["live"]]


def test_a_name_means_its_newest_version_that_is_not_retired(client: httpx.Client) -> None:
    publish(client, "clinic", wide(2))
    assert version_of(client, "clinic") == 2
    retired = client.post("/v1/admin/models/clinic/versions/2/retire").json()
    assert retired["retired_at"] is not None
    assert version_of(client, "clinic") == 1
    assert version_of(client, "clinic:2") == 2
    again = client.post("/v1/admin/models/clinic/versions/2/retire").json()
    assert again["retired_at"] == retired["retired_at"]
    client.post("/v1/admin/models/clinic/versions/1/retire")
    problem(client.post("/v1/sessions", json={"model": "clinic"}), 404, "model-not-found")
    assert publish(client, "clinic", wide(2))["version"] == 3


def test_an_alias_moves_and_goes(client: httpx.Client) -> None:
    publish(client, "clinic", wide(2))
    url = "/v1/admin/models/clinic/aliases/live"
    assert client.put(url, json={"version": 1}).json()["aliases"] == {"live": 1}
    assert (version_of(client, "clinic@live"), version_of(client, "clinic")) == (1, 2)
    assert client.put(url, json={"version": 2}).json()["aliases"] == {"live": 2}
    assert version_of(client, "clinic@live") == 2
    assert client.delete(url).status_code == 204
    problem(client.delete(url), 404, "model-not-found")
    problem(client.post("/v1/sessions", json={"model": "clinic@live"}), 404, "model-not-found")


def test_what_is_not_there_is_not_found(client: httpx.Client) -> None:
    problem(client.get("/v1/models/nobody"), 404, "model-not-found")
    problem(client.get("/v1/models/clinic/versions/9"), 404, "model-not-found")
    problem(client.post("/v1/admin/models/clinic/versions/9/retire"), 404, "model-not-found")
    problem(client.put("/v1/admin/models/clinic/aliases/live", json={"version": 9}), 404, "model-not-found")
    problem(client.put("/v1/admin/models/nobody/aliases/live", json={"version": 1}), 404, "model-not-found")
    for odd in ("%00", "a%2Fb", "A", "x" * 300, "%F0%9F%A9%BA"):
        problem(client.get(f"/v1/models/{odd}"), 404, "not-found" if "%2F" in odd else "model-not-found")
        problem(client.get(f"/v1/models/{odd}/versions/1"), 404, "not-found" if "%2F" in odd else "model-not-found")
    problem(client.get("/v1/models?cursor=%00"), 422, "invalid-request")
    for model in ("nobody", "clinic@nobody", "clinic:9"):
        problem(client.post("/v1/sessions", json={"model": model}), 404, "model-not-found")


def test_names_follow_the_pattern(client: httpx.Client) -> None:
    for name in ("", "-a", ".a", "A", "a b", "a/b", "ä", "a" * 65, "heart\x00"):
        problem(client.post("/v1/admin/models", params={"name": name}, content=dump(wide(2))), 422, "invalid-request")
    for model in ("", "A", "a@", "a:0", "a:x", "a:1:2", "a@b:1", "a" * 65):
        problem(client.post("/v1/sessions", json={"model": model}), 422, "invalid-request")
    problem(client.put("/v1/admin/models/clinic/aliases/L%20", json={"version": 1}), 422, "invalid-request")


def test_bytes_that_are_no_model_are_refused(client: httpx.Client, database_url: str) -> None:
    data = dump(clinic())
    damaged = data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]
    for wrong in (b"", b"hello", data[:-1], damaged):
        problem(client.post("/v1/admin/models?name=x", content=wrong), 422, "bad-archive")
    problem(client.post("/v1/admin/models?name=x", json={}), 415, "unsupported-media-type")
    assert rows(database_url, "SELECT count(*) FROM versions") == [(1,)]


def test_an_archive_over_the_limit_is_refused(database_url: str) -> None:
    with serving(Settings(database=database_url, max_upload=1024)) as client:
        problem(client.post("/v1/admin/models?name=x", content=b"x" * 1025), 413, "too-large")
        problem(client.post("/v1/admin/models?name=x", content=iter([b"x" * 600, b"x" * 600])), 413, "too-large")


def test_large_archives_are_stored_in_chunks(client: httpx.Client, database_url: str) -> None:
    big = clinic(parameters={"notes": ["x" * 1000] * 2500})
    about = publish(client, "big", big)
    sizes = rows(database_url, "SELECT length(bytes) FROM archive_chunks ORDER BY archive_id, position")
    assert max(size for (size,) in sizes) <= 1 << 20
    assert about["size"] > 2_500_000
    assert dump(read_ensemble(client.app.state.database, "big", 1)) == dump(load(dump(big)))  # type: ignore[attr-defined]


def test_versions_published_at_once_get_numbers_of_their_own(client: httpx.Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: publish(client, "race", wide(2))["version"], range(16)))
    assert sorted(numbers) == list(range(1, 17))


def test_the_cache_holds_no_more_than_its_bound(database_url: str) -> None:
    with serving(Settings(database=database_url, loaded_versions=2)) as client:
        sessions = []
        for n in range(1, 6):
            publish(client, "many", wide(n + 1))
            sessions.append(client.post("/v1/sessions", json={"model": f"many:{n}"}).json()["id"])
        assert len(client.app.state.versions) == 2  # type: ignore[attr-defined]
        for id in sessions:
            assert client.post(f"/v1/sessions/{id}/answers", json={"feature": "f0", "value": 1}).status_code == 200
        assert len(client.app.state.versions) == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("classes", [[1, "1"], [True, "True"]])
def test_classes_that_are_one_word_on_the_wire_are_refused(client: httpx.Client, classes: list) -> None:
    ensemble = wide(1)
    clash = type(ensemble)(ensemble.flat, ensemble.schema, ensemble.costs, classes=classes, vote="counts")
    problem(client.post("/v1/admin/models?name=x", content=dump(clash)), 422, "bad-archive")


@pytest.mark.parametrize(
    "metrics",
    [
        {"rows": 10**400},
        {"mean_cost": 10**400},
        {"own": 10**400},
        {f"m{i}": 1 for i in range(1001)},
        {"own": {f"m{i}": 1 for i in range(1001)}},
    ],
    ids=["rows", "cost", "own", "names", "names inside"],
)
def test_metrics_have_bounds(metrics: dict) -> None:
    with pytest.raises(BadArchiveSent, match="metrics do not have the documented shape"):
        check_metrics(metrics)
