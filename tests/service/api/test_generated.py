"""A client that openapi-python-client makes from our page holds a session: what people do who write no client by hand."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from frugal.models import load
from frugal.service.app import create
from frugal.service.config import Settings
from frugal.service.example import example_archive
from frugal.service.keyform import new_key
from tests.databases import fresh_sqlite
from tests.service.conftest import publish
from tests.serving import serving

PAGE = create(Settings()).openapi()
OPERATIONS = [operation for methods in PAGE["paths"].values() for operation in methods.values()]
SCRIPT = """
import json, sys
from frugal_client import AuthenticatedClient
from frugal_client.api.decisions import next_question
from frugal_client.api.sessions import answer_session, open_session, read_session
from frugal_client.models import Item, OpenSession, OpenSessionKnownType0, Problem, SessionShown

url, key = sys.argv[1:]
with AuthenticatedClient(url, token=key) as client:
    known = OpenSessionKnownType0.from_dict({"age": 63})
    session = open_session.sync(client=client, body=OpenSession(model="heart", budget=60, known=known))
    asked = []
    while session.ask is not None:
        asked.append(session.ask.feature)
        value = session.ask.categories[0] if session.ask.categories else 140.0
        session = answer_session.sync(id=session.id, client=client, body=Item(feature=session.ask.feature, value=value))
        assert isinstance(session, SessionShown), session
    again = read_session.sync(id=session.id, client=client)
    unknown = open_session.sync(client=client, body=OpenSession(model="nonsense"))
    assert isinstance(unknown, Problem)
    said = {"asked": asked, "final": again.prediction.final, "reason": again.prediction.reason, "spent": again.spent}
    print(json.dumps(said | {"year": again.created_at.year, "unknown": unknown.type_}))
"""


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[httpx.Client]:
    key = new_key()
    with fresh_sqlite(tmp_path) as url, serving(Settings(database=url, admin_key=key)) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        publish(client, "heart", load(example_archive()))
        yield client


def test_a_generated_client_holds_a_session(keyed: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "page.json").write_text(json.dumps(keyed.get("/openapi.json").json()))
    generate = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "page.json", "--output-path", "made", "--meta", "none"]
    (tmp_path / "config.yml").write_text("post_hooks: []\n")
    subprocess.run([*generate, "--config", "config.yml"], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "made").rename(tmp_path / "frugal_client")
    key = keyed.headers["Authorization"].removeprefix("Bearer ")
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(keyed.base_url), key], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["asked"]
    assert "age" not in said["asked"]
    assert said["final"]
    assert said["reason"] in ("leaf", "decided", "confident", "budget", "exhausted")
    assert 0 < said["spent"] <= 60
    assert said["year"] >= 2026
    assert said["unknown"] == "urn:frugal:problem:model-not-found"


def test_operations_have_short_names_of_their_own() -> None:
    names = [operation["operationId"] for operation in OPERATIONS]
    assert len(set(names)) == len(names) == 33
    assert all(len(name) <= 20 and name.replace("_", "").isalpha() for name in names)


def test_every_problem_is_the_one_shared_schema() -> None:
    told = [content["schema"] for operation in OPERATIONS for reply in operation["responses"].values()
            for kind, content in reply.get("content", {}).items() if kind == "application/problem+json"]  # fmt: skip
    assert len(told) > 100
    assert all(schema == {"$ref": "#/components/schemas/Problem"} for schema in told)


def test_all_but_the_pages_of_health_want_a_key() -> None:
    free = {operation["operationId"] for operation in OPERATIONS if not operation["security"]}
    assert free == {"livez", "readyz", "prometheus"}
    assert PAGE["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_times_and_words_are_told_as_such() -> None:
    shown = PAGE["components"]["schemas"]
    session, prediction = shown["SessionShown"]["properties"], shown["ShownPrediction"]["properties"]
    assert session["created_at"]["format"] == session["expires_at"]["format"] == "date-time"
    assert set(session["status"]["enum"]) == {"open", "waiting", "done", "expired"}
    assert "decided" in prediction["reason"]["anyOf"][0]["enum"]
