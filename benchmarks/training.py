"""Training as a service: an upload beside polars and pyarrow, a job beside its learner's own fit, steps beside a job that trains.

    python benchmarks/training.py [--data ../shared/data/covertype.csv.gz] [--only upload overhead beside watched] [--rounds 5] [--quick]

Bars. upload: sent, parsed, typed and stored at least 0.5 times as fast as the faster of polars and pyarrow reads the same file, the
server's peak memory rising by less than 6 times the columns' size. overhead: submit to published under 2 s over the learner's own fit
on heart, under 15 % on covertype. beside: while a job runs, /livez within 1 s and p99 of a step within 3 times its idle value.
watched: opening a session while 500 watch a job that trains takes at most 3 times as long as while nobody does. Real processes on
loopback, medians of interleaved rounds, on SQLite and on PostgreSQL. The last line is JSON.
"""

import argparse
import gzip
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

os.environ["POLARS_MAX_THREADS"] = "2"  # read when polars is imported
sys.path.insert(0, str(Path(__file__).parent.parent))

import polars
import pyarrow
import pyarrow.csv

from benchmarks.steps_parts.loading import load
from benchmarks.steps_parts.place import OURS, ROOT, Place, environment, opened, place, serving
from benchmarks.steps_parts.watchers import watching
from frugal.client import Client
from frugal.models.costs import CostModel
from frugal.service import warming
from frugal.service.tables import Columns, pack, read_file
from frugal.service.training.pricing import from_model
from frugal.service.training.run import make_learner, split
from frugal.service.training.spec import Spec

HEART = ROOT / "examples" / "heart"
ENGINES = ("sqlite", "postgres")
PARTS = ("upload", "overhead", "beside", "watched")
WATCHERS = (0, 250, 500)
OPENINGS = 50  # sessions opened per round and number of watchers


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def trained(where: Place, engine: str) -> Iterator[tuple[int, int, str]]:
    """A server whose jobs are trained: port, process and database."""
    with where.database(engine) as url, serving(OURS, url) as (port, process):
        if engine == "sqlite":
            yield port, process, url
            return
        command = [sys.executable, "-m", "frugal.service.commands.main", "worker"]
        with open(os.devnull, "wb") as nowhere:
            worker = subprocess.Popen(command, cwd=ROOT, env=environment(url), stdout=nowhere, stderr=nowhere)
        try:
            yield port, process, url
        finally:
            worker.terminate()
            worker.wait(30)


def client_of(port: int) -> Client:
    return Client(f"http://127.0.0.1:{port}", timeout=600)


def peak(process: int) -> int:
    """The most memory a process has had, in bytes."""
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[1])  # type: ignore[index]


def forget_peak(process: int) -> None:
    Path(f"/proc/{process}/clear_refs").write_text("5")


def upload(where: Place, file: Path, rounds: int) -> dict[str, Any]:
    pyarrow.set_cpu_count(2)
    small = b"a,b\n1,x\n2,y\n"
    table = read_file(file)
    binary, packed = sum(column.values.nbytes for column in table.by_name.values()), sum(map(len, pack(table)))
    found: dict[str, Any] = {"file": file.stat().st_size, "binary_bytes": binary, "packed_bytes": packed}
    del table
    for engine in ENGINES:
        with trained(where, engine) as (port, process, _), client_of(port) as client:
            client.push_dataset("small", small)
            times: dict[str, list[float]] = {"frugal": [], "polars": [], "pyarrow": []}
            extra = []
            for round in range(rounds + 1):
                before = peak(process) if not round else (forget_peak(process), peak(process))[1]
                took = {
                    "frugal": timed(lambda: client.push_dataset("covertype", file)),
                    "polars": timed(lambda: polars.read_csv(file)),
                    "pyarrow": timed(lambda: pyarrow.csv.read_csv(file)),
                }
                extra.append(peak(process) - before)
                client.delete_dataset("covertype")
                for name, seconds in took.items():
                    if round:  # the first one warms all three
                        times[name].append(seconds)
            medians = {name: median(seconds) for name, seconds in times.items()}
            ratio = min(medians["polars"], medians["pyarrow"]) / medians["frugal"]
            memory = max(extra)
            print(
                f"upload, {engine}: {medians['frugal']:.3f} s; polars {medians['polars']:.3f} s, pyarrow {medians['pyarrow']:.3f} s: "
                f"{ratio:.2f} times as fast as the faster; memory +{memory / 1e6:.0f} MB, {memory / binary:.1f} times the columns"
            )
            found[engine] = {"seconds": medians, "ratio": ratio, "memory": memory, "memory_over_binary": memory / binary}
    return found


def overhead(where: Place, file: Path, rounds: int) -> dict[str, Any]:
    heart = Spec("heart", "disease", "budget-forest", {"alpha": [0, 2, 4, 8]}, 60.0, from_model(CostModel.from_csv(HEART / "costs.csv")))
    large = Spec("covertype", "label", "budget-forest")
    warming.PARTS.warm_up()
    found: dict[str, Any] = {}
    for name, path, spec, times in (("heart", HEART / "heart.csv", heart, rounds), ("covertype", file, large, max(1, (rounds + 1) // 2))):
        table = read_file(path)
        for engine in ENGINES:
            with trained(where, engine) as (port, _, _), client_of(port) as client:
                client.push_dataset(name, path)
                time.sleep(5)  # a spare child is warm by then, as on a server that runs
                whole, fit = [], []
                for _ in range(times):
                    whole.append(timed(partial(published, client, spec)))
                    fit.append(timed_fit(table, spec))
                    time.sleep(3)
                extra, share = median(whole) - median(fit), median(whole) / median(fit) - 1
                print(
                    f"overhead, {name}, {engine}: {median(whole):.2f} s from submit to published, {median(fit):.2f} s the fit: "
                    f"{extra:.2f} s, {100 * share:.1f} % more"
                )
                found[f"{name} {engine}"] = {"whole": median(whole), "fit": median(fit), "extra": extra, "share": share}
    return found


def published(client: Client, spec: Spec) -> None:
    asked = {"learner": spec.learner, "params": dict(spec.params), "budget": spec.budget, "costs": dict(spec.costs)}
    done = client.wait(client.submit(spec.dataset, spec.label, **asked)["id"])
    assert done["status"] == "done", done["failure"]


def timed_fit(table: Columns, spec: Spec) -> float:
    """The learner's own fit on the same rows with the same threads."""
    labels, X = table.labels(spec.label), table.only([name for name in table.columns if name != spec.label])
    _, kept = split(len(X), spec.test_fraction, spec.seed)
    learner, rows, truth = make_learner(spec, X.columns, -1), X.rows(kept), labels[kept]
    return timed(lambda: learner.fit(rows, truth))


def beside(where: Place, file: Path, rounds: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    answers = where.longest
    for engine in ENGINES:
        with trained(where, engine) as (port, _, url), client_of(port) as client:
            client.push_dataset("covertype", file)
            sessions = opened(url, 2 * (rounds + 1) * 2 * 300) if engine == "postgres" else []

            def steps(clients: int, port: int = port, sessions: list[str] = sessions) -> dict[str, float]:
                if sessions:
                    return load(port, clients, answers, ids=[sessions.pop() for _ in range(300)])
                return load(port, clients, answers, opening={"model": "heart"}, sessions=300)

            for clients in (1, 16):
                steps(clients)
                idle, busy, lives = [], [], []
                for _ in range(rounds):
                    idle.append(steps(clients)["p99"])
                    job = client.submit("covertype", "label", params={"max_trees": 1000})["id"]
                    while (client.job(job)["progress"] or {}).get("phase") != "growing":
                        time.sleep(0.1)
                    with looking(port) as seen:
                        busy.append(steps(clients)["p99"])
                    lives.append(max(seen))
                    assert client.job(job)["status"] == "running"
                    client.cancel_job(job)
                    time.sleep(1)
                ratio = median(busy) / median(idle)
                print(
                    f"beside, {engine}, {clients} clients: p99 of a step {median(idle):.2f} ms idle, {median(busy):.2f} ms while a job "
                    f"trains: {ratio:.2f} times; /livez at most {1000 * max(lives):.0f} ms"
                )
                found[f"{engine} {clients}"] = {"idle": median(idle), "busy": median(busy), "ratio": ratio, "livez": max(lives)}
    return found


def watched(where: Place, file: Path, rounds: int) -> dict[str, Any]:
    """How long it takes to open a session, one after the other, while so many watch a job that trains."""
    found: dict[str, Any] = {}
    for engine in ENGINES:
        with trained(where, engine) as (port, _, _), client_of(port) as client:
            client.push_dataset("covertype", file)
            times: dict[int, list[float]] = {count: [] for count in WATCHERS}
            for _ in range(rounds):
                for count in WATCHERS:
                    job = client.submit("covertype", "label", params={"max_trees": 1000})["id"]
                    while (client.job(job)["progress"] or {}).get("phase") != "growing":
                        time.sleep(0.1)
                    with watching(port, job, count) as statuses:
                        times[count] += [timed(lambda: client.open("heart")) for _ in range(OPENINGS)]
                        assert client.job(job)["status"] == "running"
                    client.cancel_job(job)
                    assert statuses.get("200", 0) == count, statuses
            for count, seconds in times.items():
                slow = sorted(seconds)[len(seconds) * 99 // 100]
                shown = {"median": 1000 * median(seconds), "p99": 1000 * slow, "most": 1000 * max(seconds)}
                told = ", ".join(f"{name} {ms:.1f} ms" for name, ms in shown.items())
                print(f"watched, {engine}, {count} watchers: a session opens in {told}")
                found[f"{engine} {count}"] = shown
    return found


@contextmanager
def looking(port: int) -> Iterator[list[float]]:
    """How long /livez takes, asked ten times a second meanwhile."""
    seen, stop = [0.0], threading.Event()

    def look() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not stop.wait(0.1):
            seen.append(timed(lambda: (connection.request("GET", "/livez"), connection.getresponse().read())))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "covertype.csv.gz")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round each, to see that it runs")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    with tempfile.TemporaryDirectory() as folder, place(Path(folder), postgres=True) as where:
        file = Path(folder) / "covertype.csv"
        with gzip.open(options.data, "rb") as source, file.open("wb") as target:
            shutil.copyfileobj(source, target)
        found = {part: globals()[part](where, file, rounds) for part in options.only}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
