"""/livez and /readyz: alive is not ready."""

import httpx
from sqlalchemy import text

from tests.serving import problem


def test_a_server_that_can_serve_is_ready(client: httpx.Client) -> None:
    assert client.get("/livez").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready", "checks": {"database": "ok", "migrations": "ok", "kernels": "ok"}}


def test_a_database_that_is_not_at_head_is_not_ready(client: httpx.Client) -> None:
    database = client.app.state.database  # type: ignore[attr-defined]
    database.write(lambda db: db.execute(text("UPDATE alembic_version SET version_num = 'other'")))
    told = problem(client.get("/readyz"), 503, "not-ready")
    assert told["checks"] == {"database": "ok", "migrations": "not at head: run frugal migrate", "kernels": "ok"}
    assert client.get("/livez").status_code == 200


def test_kernels_that_are_not_compiled_are_not_ready(client: httpx.Client) -> None:
    client.app.state.warm = False  # type: ignore[attr-defined]
    assert problem(client.get("/readyz"), 503, "not-ready")["checks"]["kernels"] == "compiling"
