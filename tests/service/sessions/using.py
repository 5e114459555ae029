"""Use cases of sessions on a database, without a server."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import text

from frugal.models import Ensemble, dump
from frugal.service.config import Settings
from frugal.service.registry.cache import Versions
from frugal.service.registry.versions import publish
from frugal.service.sessions.opening import open_ledger
from frugal.service.sessions.steps import Steps
from frugal.service.store.audit import Actor
from frugal.service.store.db import open_database

ME = Actor("me")


def with_steps(url: str, work: Callable[[Steps], Awaitable[Any]], models: dict[str, Ensemble], **given: Any) -> None:
    """Run work on the use cases of a database in which these models are published."""

    async def main() -> None:
        settings = Settings(database=url, pool=32)
        database = open_database(settings)
        for name, ensemble in models.items():
            publish(database, name, dump(ensemble), ME)
        ledger = await open_ledger(database, settings)
        try:
            await work(Steps(ledger, Versions(database, 4), database, **({"ttl": 3600} | given)))
        finally:
            await ledger.close()
            database.close()

    asyncio.run(main())


def change(steps: Steps, sql: str, **values: Any) -> None:
    """Change the tables behind the service's back."""

    steps.database.write(lambda db: db.execute(text(sql), values))
