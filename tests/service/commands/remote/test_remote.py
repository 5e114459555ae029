"""`frugal keys`, `frugal models` and `frugal ask --url`, as they are typed, against real servers and databases."""

import io
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from frugal.client import Client
from frugal.models import dump, load
from frugal.service.commands.main import _parser, main
from frugal.service.commands.remote.keys import PAGE, DatabaseKeys, expiry
from frugal.service.config import Settings
from frugal.service.example import _patient, example_archive
from frugal.service.keyform import new_key, well_formed
from frugal.service.store.migrating import prepared
from tests.databases import fresh_sqlite
from tests.examples import aimed, clinic
from tests.serving import serving

ADMIN = new_key()
ROOT = Path(__file__).parents[4]


@pytest.fixture
def url(shared_client: httpx.Client) -> str:
    """The address of a server without keys, with the clinic."""
    return str(shared_client.base_url)


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[str]:
    """The address of a server that wants keys."""
    with fresh_sqlite(tmp_path) as database, serving(Settings(database=database, admin_key=ADMIN)) as server:
        yield str(server.base_url)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    dump(clinic(), tmp_path / "clinic.safetensors")
    return tmp_path / "clinic.safetensors"


# Keys


def test_the_first_key_is_made_on_the_database(tmp_path, frugal, refused):
    database = ("--database", f"sqlite:///{tmp_path / 'new.db'}")
    assert "no keys yet" in frugal("keys", "list", *database)
    assert "must be an admin key (--role admin):" in refused("keys", "create", "--owner", "ward", *database)
    said = frugal("keys", "create", "--owner", "chief", "--role", "admin", *database)
    key = said.split("\n")[0]
    assert well_formed(key)
    assert "This is the key of chief (admin, until it is revoked). It is shown this once: keep it now." in said
    id = re.search(r"frugal keys revoke (\S+)", said)[1]
    listed = frugal("keys", "list", *database)
    assert re.search(rf"{id}  chief  admin  \d{{4}}-\d\d-\d\d \d\d:\d\d", listed)
    assert key not in listed
    assert f"revoked {id}" in frugal("keys", "revoke", id, *database)
    assert json.loads(frugal("keys", "list", "--json", *database))["items"][0]["revoked_at"]
    for wrong in (UUID(int=7), "seven"):
        assert "There is no key with this id: frugal keys list shows them." in refused("keys", "revoke", wrong, *database)


def test_keys_are_listed_beyond_a_page(tmp_path):
    with fresh_sqlite(tmp_path) as url, prepared(Settings(database=url)) as database:
        keys = DatabaseKeys(database)
        made = [keys.create_key(f"owner-{i}", "admin", None)["id"] for i in range(PAGE + 1)]
        assert [key["id"] for key in keys.keys()] == sorted(made)  # noqa: SIM118 - no dict


def test_keys_over_http(keyed, frugal, refused, monkeypatch):
    server = ("--url", keyed, "--key", ADMIN)
    made = json.loads(frugal("keys", "create", "--owner", "ward", "--role", "admin", "--expires", "90d", "--json", *server))
    assert (datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)).days in (89, 90)
    assert "ward   admin" in frugal("keys", "list", *server)
    assert refused("keys", "list", "--url", keyed) == "frugal: this server wants a key: give it with --key or FRUGAL_KEY\n"
    assert "unknown to the server, revoked or expired" in refused("keys", "list", "--url", keyed, "--key", new_key())
    client = json.loads(frugal("keys", "create", "--owner", "nurse", "--json", *server))
    assert "a client's key: give an admin's" in refused("keys", "list", "--url", keyed, "--key", client["key"])
    monkeypatch.setenv("FRUGAL_URL", keyed)
    monkeypatch.setenv("FRUGAL_KEY", made["key"])
    assert json.loads(frugal("keys", "revoke", client["id"], "--json")) == {"id": client["id"], "revoked": True}
    assert len(json.loads(frugal("keys", "list", "--json"))["items"]) == 2
    assert "owner: " in refused("keys", "create", "--owner", "Ward 7")


def test_the_database_of_a_running_server_is_left_to_it(tmp_path, refused):
    with fresh_sqlite(tmp_path) as database, serving(Settings(database=database)):
        assert "is in use by a running server: talk to that one with --url" in refused("keys", "list", "--database", database)


def test_keys_new_prints_a_key_and_stores_nothing(tmp_path, frugal, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = frugal("keys", "new").strip(), json.loads(frugal("keys", "new", "--json"))["key"]
    assert well_formed(first)
    assert well_formed(second)
    assert first != second
    assert list(tmp_path.iterdir()) == []


def test_keys_are_the_servers_or_the_databases(refused):
    assert "not both" in refused("keys", "list", "--url", "http://localhost:1", "--database", "sqlite:///x.db")
    assert "say which with --url" in refused("keys", "list", "--key", new_key())


def test_when_a_key_ends():
    at = datetime(2026, 11, 16, tzinfo=UTC)
    for text, ends in [
        ("90d", datetime(2027, 2, 14, tzinfo=UTC)),
        ("12h", datetime(2026, 11, 16, 12, tzinfo=UTC)),
        ("2030-01-31T12:00:00Z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
        ("2030-01-31T12:00:00+02:00", datetime(2030, 1, 31, 10, tzinfo=UTC)),
    ]:
        assert expiry(text, lambda: at) == ends
    assert expiry(None) is None
    for wrong in ("", "90", "d", "-1d", "2030-01-31", "2030-01-31T12:00:00", "9" * 30 + "d", "soon"):
        with pytest.raises(ValueError, match="expected days \\(90d\\), hours"):
            expiry(wrong)


# Models


def test_models_from_publishing_to_retiring(keyed, file, frugal, refused):
    server = ("--url", keyed, "--key", ADMIN)
    assert "no models yet: publish one with frugal models push NAME FILE" in frugal("models", "list", *server)
    assert frugal("models", "push", "ward", file, *server) == "published ward:1, which new sessions for ward take from now on\n"
    assert "ward@live is this version now" in frugal("models", "push", "ward", file, "--alias", "live", *server)
    assert "ward@live is ward:1 now" in frugal("models", "alias", "ward", "live", 1, *server)
    assert "ward:2 is retired" in frugal("models", "retire", "ward", 2, *server)
    heads, first, second = frugal("models", "list", *server).splitlines()
    assert heads.split() == ["name", "version", "aliases", "bytes", "published", "retired"]
    assert first.split()[:3] == ["ward", "1", "live"]
    assert len(second.split()) == len(first.split()) + 1  # no alias, but two times of two words
    listed = json.loads(frugal("models", "list", "--json", *server))["items"]
    assert [(model["name"], model["aliases"]) for model in listed] == [("ward", {"live": 1})]
    assert json.loads(frugal("models", "push", "ward", file, "--json", *server))["version"] == 3
    assert json.loads(frugal("models", "alias", "ward", "live", 3, "--json", *server))["aliases"] == {"live": 3}
    assert json.loads(frugal("models", "retire", "ward", 3, "--json", *server))["retired_at"]


def test_what_is_wrong_with_a_model_is_one_line(url, tmp_path, refused, monkeypatch):
    monkeypatch.setenv("FRUGAL_URL", url)
    (tmp_path / "noise").write_bytes(b"hello")
    no_model = f"frugal: {tmp_path / 'noise'} is not a model file, or it is cut off\n"
    assert refused("models", "push", "clinic", tmp_path / "noise") == no_model
    assert "none: No such file or directory" in refused("models", "push", "clinic", tmp_path / "none")
    assert "There is no such model, alias or version: frugal models list shows what there is." in refused("models", "retire", "ward", 7)
    assert "There is no such model" in refused("ask", "--model", "ward", "--url", url)


def test_no_server_says_how_to_start_one(refused):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        said = refused("models", "list", "--url", nobody)
    assert f"no server at {nobody} (" in said
    assert "start one with frugal serve, or say where it is with --url" in said
    assert "expected http://HOST:PORT" in refused("models", "list", "--url", "localhost:8000")


# The interview


def replies(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    given = iter(lines)

    def hear(prompt: str = "") -> str:
        print(prompt, end="")
        return next(given)

    monkeypatch.setattr("builtins.input", hear)


@pytest.mark.parametrize("lines", [("YES", "many", "120", "dark"), ("yes", "?", "?", "?"), ("yes", "!"), ("yes", "90", "12.5")])
def test_the_interview_over_http_is_that_with_a_file(url, file, frugal, monkeypatch, lines):
    replies(monkeypatch, *lines)
    with_file = frugal("ask", "--model", file, "--budget", 60)
    replies(monkeypatch, *lines)
    assert frugal("ask", "--url", url, "--model", "clinic", "--budget", 60) == with_file
    assert "Is there a fever?  [costs 1.00]" in with_file
    assert "spent 1.00 of 60.00" in with_file


@pytest.mark.parametrize(
    ("options", "lines", "said"),
    [
        (("--aim", 5), ("yes", "120"), "(aim; "),
        (("--aim", 5, "--budget", 5), ("yes",), "(budget; "),
        (("--aim", 20), ("yes", "80"), "(confident; "),
        (("--confidence", 0.55), (), "(confident; "),
        (("--confidence", 1), ("yes", "120", "dark"), "(leaf; "),
        ((), ("yes", "120"), "(aim; "),  # the default point
        (("--budget", 60), ("yes", "120", "dark"), "(leaf; "),
    ],
)
def test_an_aim_stops_the_interview_with_a_file_as_over_http(url, file, frugal, monkeypatch, options, lines, said):
    dump(aimed(), file)
    with Client(url) as client:
        client.publish("aimed", file)
    replies(monkeypatch, *lines)
    with_file = frugal("ask", "--model", file, *options)
    assert said in with_file.splitlines()[-1]
    replies(monkeypatch, *lines)
    assert frugal("ask", "--url", url, "--model", "aimed", *options) == with_file
    asked = dict(zip(options[::2], options[1::2], strict=True))
    for where in (("--model", file), ("--url", url, "--model", "aimed")):
        replies(monkeypatch, *lines)
        monkeypatch.setattr("sys.stderr", io.StringIO())
        session = json.loads(frugal("ask", "--json", *where, *options))
        assert (session["aim"], session["confidence"]) == (asked.get("--aim"), asked.get("--confidence"))


def test_what_cannot_be_aimed_at_is_one_line(url, file, refused, capsys):
    assert refused("ask", "--model", file, "--aim", 5) == (
        f"frugal: --aim: {file} has no operating points; give --budget or --confidence, or train it again with the learner frontier, "
        "or with --set points=true\n"
    )
    assert "frugal: aim: this version has no operating points" in refused("ask", "--url", url, "--model", "clinic", "--aim", 5)
    for wrong in (["--aim", "5", "--confidence", "0.9"], ["--aim", "-1"], ["--aim", "nan"], ["--confidence", "0"], ["--confidence", "2"]):
        with pytest.raises(SystemExit):
            main(["ask", "--model", str(file), *wrong])
        assert re.search(r"^frugal: argument --(aim|confidence): .*; see frugal ask --help\n$", capsys.readouterr().err)


def test_the_end_of_input_finishes_the_session(url, frugal, monkeypatch):
    def hear(prompt: str = "") -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", hear)
    assert "(stopped; " in frugal("ask", "--url", url, "--model", "clinic")
    with Client(url) as client:
        assert next(client.sessions())["prediction"]["reason"] == "stopped"


@pytest.mark.parametrize("where", ["server", "file"])
def test_a_program_gets_the_session_and_nothing_else(url, file, capsys, monkeypatch, where):
    given = iter(["yes", "?", "?"])
    monkeypatch.setattr("builtins.input", lambda: next(given))
    options = ["--model", str(file)] if where == "file" else ["--url", url, "--model", "clinic"]
    assert main(["ask", "--budget", "60", "--json", *options]) == 0
    out, err = capsys.readouterr()
    session = json.loads(out)
    assert (session["status"], session["spent"], session["budget"], session["prediction"]["final"]) == ("done", 1.0, 60.0, True)
    fever = next(answer for answer in session["answers"] if answer["feature"] == "fever")
    assert (fever["value"], fever["cost"]) == ("yes", 1.0)
    assert "Is there a fever?" in err


def test_a_file_that_is_not_there_may_be_a_model_on_a_server(refused):
    assert "none: No such file or directory (a model on a server? say where with --url)" in refused("ask", "--model", "none")
    assert "--key is for a server" in refused("ask", "--model", "none", "--key", new_key())


def test_a_name_that_is_no_file_is_asked_of_the_server_in_the_environment(url, file, frugal, refused, monkeypatch):
    monkeypatch.setenv("FRUGAL_URL", url)
    replies(monkeypatch, "!")
    assert "(stopped; " in frugal("ask", "--model", "clinic")
    monkeypatch.setenv("FRUGAL_URL", "http://127.0.0.1:9")
    assert "no server at http://127.0.0.1:9" in refused("ask", "--model", "clinic")
    replies(monkeypatch, "!")
    assert "(stopped; " in frugal("ask", "--model", file)


def test_commands_without_a_server_load_no_server(file):
    check = f"import sys; from frugal.service.commands.main import main; main(['show', {str(file)!r}]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not set(done.stdout.split()) & {"httpx", "fastapi", "sqlalchemy", "uvicorn"}


# What is written down


@pytest.fixture(scope="module")
def heart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the heart example."""
    with fresh_sqlite(tmp_path_factory.mktemp("heart")) as database, serving(Settings(database=database)) as server:
        with Client(str(server.base_url)) as client:
            client.publish("heart", example_archive())
        yield str(server.base_url)


def test_the_example_holds_a_session(heart):
    environment = {**os.environ, "FRUGAL_URL": heart}
    command = [sys.executable, "-m", "examples.client"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "What kind of chest pain does the patient report?" in done.stdout
    assert "(comes later)" in done.stdout
    assert "came in" in done.stdout
    assert re.search(r"(absent|present) \(\d+ %\), reason: \w+\nspent \d+\.\d\d of 60\.00; session ", done.stdout)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def run_blocks(page: str, url: str) -> dict[str, Any]:
    """Run the Python of a page against another server than its own; gives what it has defined."""
    names: dict[str, Any] = {}
    for block in blocks(page, "python"):
        exec(block.replace("http://127.0.0.1:8000", url), names)
    return names


def commands(page: str) -> list[list[str]]:
    """The lines of a page that call `frugal`, each of which the command line takes."""
    joined = [line for block in blocks(page, "sh") for line in block.replace("\\\n", " ").splitlines()]
    found = [words for words in (shlex.split(line, comments=True) for line in joined) if words and words[0] == "frugal"]
    for words in found:
        assert callable(_parser().parse_args(words[1:]).run)
    return found


def test_the_python_of_the_page_runs(heart, capsys):
    names = run_blocks("client.md", heart)
    assert names["session"]["status"] == "done"
    names["client"].close()
    assert "404 model-not-found" in capsys.readouterr().out


def test_the_python_of_the_readme_is_typed_to_and_prints_a_result(heart):
    section = (ROOT / "README.md").read_text().split("## In one minute\n")[1].split("\n## ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    command = [sys.executable, "-c", block.replace("http://127.0.0.1:8000", heart)]
    ensemble = load(example_archive())
    answers = _patient(ensemble)
    typed = "".join(f"{value}\n" for value in answers.values())
    done = subprocess.run(command, cwd=ROOT, input=typed, capture_output=True, text=True, check=True)
    first = ensemble.schema[next(iter(answers))]
    assert done.stdout.startswith(f"{first.question} {list(first.categories) or ''} costs {ensemble.costs[first.name].cost}: ")
    assert re.search(r": (absent|present) \d+\.\d+\n$", done.stdout), done.stdout


def test_the_session_of_the_readme_in_containers_comes_to_its_end(heart):
    section = (ROOT / "README.md").read_text().split("## In containers\n")[1].split("\n## ")[0]
    opening, answers = (json.loads(body) for body in re.findall(r"-d '(\{.*?\})'", section))
    session = httpx.post(f"{heart}/v1/sessions", json=opening).json()
    done = httpx.post(f"{heart}/v1/sessions/{session['id']}/answers", json=answers).json()
    assert done["status"] == "done"
    assert 0 < done["spent"] <= opening["budget"]


def test_the_commands_of_the_page_are_commands():
    assert len(commands("client.md")) > 10
