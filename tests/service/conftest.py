"""A served clinic, on both databases."""

from collections.abc import Iterator

import httpx
import pytest

from frugal.models import dump
from frugal.service.config import Settings
from tests.databases import fresh_sqlite
from tests.examples import clinic
from tests.serving import serving


@pytest.fixture
def client(database_url: str) -> Iterator[httpx.Client]:
    """A server with the clinic as its model."""
    with serving(Settings(database=database_url)) as client:
        publish(client, "clinic", clinic())
        yield client


def publish(client: httpx.Client, name: str, ensemble: object, **more: str) -> dict:
    reply = client.post("/v1/admin/models", params={"name": name, **more}, content=dump(ensemble))
    assert reply.status_code == 201, reply.text
    return reply.json()


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One server for a module whose tests leave nothing behind."""
    with fresh_sqlite(tmp_path_factory.mktemp("shared")) as url, serving(Settings(database=url)) as client:
        publish(client, "clinic", clinic())
        yield client
