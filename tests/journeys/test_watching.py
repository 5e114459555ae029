"""A training that is watched while its server is stopped, as people stop it: with SIGTERM, and with Ctrl-C."""

import signal
import time
from pathlib import Path

import pytest

from frugal.client import Client
from tests.journeys.processes import ROOT, Server

LONG = {"max_trees": 1000, "alpha": list(range(50))}  # a minute or more


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_watcher_does_not_hold_a_server_that_stops(tmp_path: Path, number: signal.Signals) -> None:
    server = Server(tmp_path, f"sqlite:///{tmp_path / 'frugal.db'}", FRUGAL_DRAIN="0.2").ready()
    try:
        with Client(server.url) as client:
            client.push_dataset("heart", ROOT / "examples" / "heart" / "heart.csv")
            job = client.submit("heart", "disease", learner="budget-forest", params=LONG)
            events = client.events(job["id"])
            while next(events)["event"] != "running":
                pass
            stopped = time.monotonic()
            server.process.send_signal(number)
            server.wait()
            assert time.monotonic() - stopped < 10
            events.close()
    finally:
        server.kill()
