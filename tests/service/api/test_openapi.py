"""The OpenAPI page, tried from outside: what it allows is understood, what it forbids refused, its statuses are all, its examples run."""

import copy
import os
import warnings
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from frugal.models import load
from frugal.service.app import create
from frugal.service.config import Settings
from frugal.service.example import FOLDERS, example_archive
from frugal.service.keyform import new_key
from tests.databases import fresh_sqlite
from tests.service.conftest import publish
from tests.serving import serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        negative_data_rejection,
        response_schema_conformance,
        status_code_conformance,
    )

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance, negative_data_rejection]
PAGE = create(Settings()).openapi()
KEYLESS = copy.deepcopy(PAGE)  # a key is always sent here; requests without one are tried in tests/service/owners
for operations in KEYLESS["paths"].values():
    for operation in operations.values():
        operation["security"] = []
OPERATIONS = [(method, path) for path, methods in PAGE["paths"].items() for method in methods]
EXAMPLES = 500 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 15
EMPTY = {("post", "/v1/sessions/{id}/finish"), ("post", "/v1/admin/training-jobs/{id}/cancel")}  # bodies that hold nothing
TRIED = {"max_examples": EXAMPLES, "deadline": None, "derandomize": True, "database": None, "suppress_health_check": list(HealthCheck)}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with the heart example, its table and an admin key, which the client sends."""
    key = new_key()
    with fresh_sqlite(tmp_path_factory.mktemp("openapi")) as url, serving(Settings(database=url, admin_key=key)) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        publish(client, "heart", load(example_archive()))
        client.post("/v1/admin/datasets", params={"name": "heart"}, content=(FOLDERS[0] / "heart.csv").read_bytes())
        yield client


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_operation_keeps_to_its_description(keyed: httpx.Client, method: str, path: str, mode: str) -> None:
    described = PAGE["paths"][path][method]
    if mode == "negative" and "requestBody" not in described and all(p["in"] == "path" for p in described.get("parameters", [])):
        pytest.skip("nothing can be wrong with it but an id that is not there")
    operation = schemathesis.openapi.from_dict(KEYLESS)[path][method]

    @settings(**TRIED)
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def tried(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=str(keyed.base_url), headers=dict(keyed.headers), checks=CHECKS)

    tried()


def examples() -> Iterator[tuple[str, str, object]]:
    for method, path in OPERATIONS:
        body = PAGE["paths"][path][method].get("requestBody", {}).get("content", {}).get("application/json")
        for example in (body or {}).get("schema", {}).get("examples", []):
            yield method, path, example
        for name in _referenced(body):
            for example in PAGE["components"]["schemas"][name].get("examples", []):
                yield method, path, example


def _referenced(schema: object) -> set[str]:
    """The component schemas that a body may be, itself: not what they hold."""
    if not isinstance(schema, dict):
        return set()
    found = {schema["$ref"].rsplit("/", 1)[1]} if "$ref" in schema else set()
    for part in [schema.get("schema"), *schema.get("oneOf", []), *schema.get("anyOf", [])]:
        found |= _referenced(part)
    return found


@pytest.mark.parametrize(("method", "path", "example"), list(examples()))
def test_every_example_runs(keyed: httpx.Client, method: str, path: str, example: object) -> None:
    session = keyed.post("/v1/sessions", json={"model": "heart"}).json()
    url = path.replace("{id}", session["id"]).replace("{name}", "heart").replace("{alias}", "live").replace("{version}", "1")
    reply = keyed.request(method, url, json=example)
    assert reply.is_success, reply.text


def test_every_json_body_has_an_example() -> None:
    with_body = {(m, p) for m, p in OPERATIONS if "application/json" in PAGE["paths"][p][m].get("requestBody", {}).get("content", {})}
    assert {(method, path) for method, path, _ in examples()} == with_body - EMPTY
