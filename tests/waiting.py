"""Waiting for what must come, however busy the machine is; and time that passes at once."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import select, update

from frugal.service.store.tables import sessions

PATIENCE = 60.0  # seconds


def eventually(ask: Callable[[], Any], enough: Callable[[Any], bool] = bool) -> Any:
    """What is asked for, again and again, once it is enough."""
    end = time.monotonic() + PATIENCE
    while not enough(found := ask()):
        assert time.monotonic() < end, f"it did not come: {found}"
        time.sleep(0.02)
    return found


def let_time_pass(client: httpx.Client, seconds: float) -> None:
    """For the sessions of a served app: each of them expires so much earlier."""
    state = client.app.state  # type: ignore[attr-defined]

    def age(db: Any) -> None:
        for id, expires_at in db.execute(select(sessions.c.id, sessions.c.expires_at)).all():
            db.execute(update(sessions).where(sessions.c.id == id).values(expires_at=expires_at - timedelta(seconds=seconds)))

    state.database.write(age)
    state.steps._recent.clear()
