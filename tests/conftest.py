"""Hypothesis runs the same examples every time; `make test-slow` looks further."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numba
import pytest
from hypothesis import HealthCheck, settings

from tests.databases import PostgresServer, fresh_sqlite

settings.register_profile("quick", max_examples=200, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_configure(config: pytest.Config) -> None:
    if numba.config.DISABLE_JIT:  # random words wrap around by design; numpy warns of it, in every thread, compiled code does not
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered in scalar:RuntimeWarning")


@pytest.fixture(autouse=True)
def _one_name() -> Iterator[None]:
    """A module under two names is loaded twice: what one half knows, the other does not."""
    yield
    bare = {"models", "service", "migrations"} & sys.modules.keys()
    assert not bare, f"imported without frugal before its name: {', '.join(sorted(bare))}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with TemporaryDirectory() as folder:
        server = PostgresServer(Path(folder) / "data")
        yield server
        server.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A migrated, empty database: every test that takes this runs on both."""
    fresh = fresh_sqlite(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgres").fresh()
    with fresh as url:
        yield url
