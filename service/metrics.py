"""What is counted, for Prometheus. With several worker processes each writes its numbers to files that any of them sums up."""

import os
import shutil
import tempfile
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client looks for this when it is imported

requests = Counter("frugal_requests", "Requests by route template and status", ["method", "route", "status"])
seconds = Histogram(
    "frugal_request_seconds",
    "Seconds from a request to the end of its reply, by route template",
    ["method", "route"],
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
)
opened = Counter("frugal_sessions_opened", "Sessions opened")
steps = Counter("frugal_steps", "Answers taken, each request one step")
charges = Counter("frugal_charges", "Features charged")
charged = Counter("frugal_charged_cost", "The cost of what was charged")
replays = Counter("frugal_replays", "Requests that were replays: nothing was done")
stops = Counter("frugal_stops", "Sessions that came to their end, by reason", ["reason"])
loaded = Gauge("frugal_loaded_versions", "Versions that are loaded, over all processes", multiprocess_mode="livesum")
pool = Gauge(
    "frugal_pool_connections", "Connections to PostgreSQL for sessions, over all processes", ["state"], multiprocess_mode="livesum"
)


def exposition() -> bytes:
    """All numbers as Prometheus reads them."""
    if FOLDER not in os.environ:
        return generate_latest()
    _forget_the_dead(os.environ[FOLDER])
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def share_between_processes() -> Path:
    """Called once, before worker processes start; gives the folder to remove after them."""
    folder = Path(tempfile.mkdtemp(prefix="frugal-metrics-"))
    os.environ[FOLDER] = str(folder)
    return folder


def _forget_the_dead(folder: str) -> None:
    """A process that ended keeps its counts and loses its gauges."""
    for pid in {int(path.stem.rsplit("_", 1)[1]) for path in Path(folder).glob("gauge_live*_*.db")}:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]


def stop_sharing(folder: Path) -> None:
    os.environ.pop(FOLDER, None)
    shutil.rmtree(folder, ignore_errors=True)
