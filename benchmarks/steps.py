"""An answer step beside a bare FastAPI endpoint that runs one UPDATE ... INSERT on the same database; real processes on loopback.

    python benchmarks/steps.py [--only postgres sqlite many workers predict memory] [--rounds 5] [--quick]
    python benchmarks/steps.py --before CHECKOUT [--command frugal.service.commands.main] [--rounds 15]

Bars, with 16 clients and one worker process: on PostgreSQL and on SQLite at least 0.6 of the bare endpoint's requests per second, and p50
within 1.8 times; 200,000 open sessions change that by less than 10 %; from one worker to two at least 0.95 of the bare endpoint's own gain;
/v1/predict of 10,000 rows at least 0.5 of the speed of json.loads, acquire and json.dumps in a loop; memory flat over 50,000 sessions.
With --before the processor time of a step beside another commit's: at most 1.03 of it. Medians of interleaved rounds; after each the tables
are counted. PostgreSQL and SQLite as durable as they come. The last line is JSON.
"""

import argparse
import gc
import http.client
import itertools
import json
import random
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.steps_parts.loading import load
from benchmarks.steps_parts.place import BARE, OURS, ROOT, Place, opened, patients, place, processor_seconds, serving, settled, tally
from frugal.models import Ensemble, acquire
from frugal.service.example import NAME

ENGINES = ("postgres", "sqlite")
CLIENTS = 16


@dataclass
class Sizes:
    """How much is measured."""

    rounds: int = 5
    sessions: int = 600  # answered to their end in a round
    open_sessions: int = 200_000
    memory_step: int = 10_000
    rows: int = 10_000

    @property
    def needed(self) -> int:
        """Sessions for one server's rounds, the warming one included."""
        return (self.rounds + 1) * self.sessions


@dataclass
class Target:
    """One server under load, the sessions that wait for it, and what was measured."""

    name: str
    port: int
    process: int
    url: str
    waiting: list[str]  # shared by the servers of one database
    rps: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)  # microseconds of processor time per request


def interleaved(targets: list[Target], answers: list[dict[str, Any]], sizes: Sizes) -> None:
    for target in targets:
        one_round(target, answers, sizes.sessions)  # connections, prepared statements and the loaded version are there now
    for url in {target.url for target in targets}:
        settled(url)
    for _ in range(sizes.rounds):
        for target in targets:
            used = processor_seconds(target.process)
            found = one_round(target, answers, sizes.sessions)
            target.work.append(1e6 * (processor_seconds(target.process) - used) / found["requests"])
            target.rps.append(found["requests"] / found["seconds"])
            target.p50.append(found["p50"])
            target.p99.append(found["p99"])
    for target in targets:
        spread = f"{min(target.rps):,.0f} to {max(target.rps):,.0f}"
        print(
            f"{target.name:32} {median(target.rps):7,.0f} requests/s ({spread:>14}), "
            f"p50 {median(target.p50):6.2f} ms, p99 {median(target.p99):6.2f} ms, processor {median(target.work):4.0f} us each"
        )


def one_round(target: Target, answers: list[dict[str, Any]], count: int) -> dict[str, float]:
    """Answer so many sessions to their end, and count that each answer is there once and that charges and sums agree."""
    ids = [target.waiting.pop() for _ in range(count)]
    before = tally(target.url)
    found = load(target.port, CLIENTS, answers, ids=ids)
    after = tally(target.url)
    asked = count * len(answers)
    assert found["requests"] == after[0] - before[0] == asked, (target.name, found, before, after)
    assert after[1] == after[2], (target.name, after)
    assert after[3] - before[3] == (count if target.name.startswith("ours") else 0), (target.name, before, after)
    return found


def sides(stack: ExitStack, place: Place, engine: str, sizes: Sizes, open_sessions: int = 0, workers: int = 1) -> list[Target]:
    """Ours and the bare endpoint, running: on one PostgreSQL database, or on an SQLite file each, which has one process."""
    found = []
    count = max(open_sessions, 2 * sizes.needed)
    label = f"{engine}, {workers} workers" if workers > 1 else f"{engine}, {count:,} open" if open_sessions else engine
    for name, command in (("ours", OURS), ("bare", BARE)):
        if engine == "sqlite" or not found:
            url = stack.enter_context(place.database(engine))
            waiting = opened(url, count)
        port, process = stack.enter_context(serving(command, url, workers))
        found.append(Target(f"{name}  {label}", port, process, url, waiting))
    return found


def ratio(ours: Target, theirs: Target, what: str = "rps") -> float:
    return median(getattr(ours, what)) / median(getattr(theirs, what))


def beside_bare(engine: str, place: Place, sizes: Sizes, report: dict[str, float]) -> None:
    with ExitStack() as stack:
        ours, bare = sides(stack, place, engine, sizes)
        interleaved([ours, bare], place.longest, sizes)
    report[f"{engine}_rps_ratio"] = round(ratio(ours, bare), 3)
    report[f"{engine}_p50_ratio"] = round(ratio(ours, bare, "p50"), 3)
    print(f"{engine}: {report[f'{engine}_rps_ratio']} of the requests per second, {report[f'{engine}_p50_ratio']} times the p50")


def beside_before(place: Place, sizes: Sizes, checkout: Path, command: str, report: dict[str, float]) -> None:
    """The processor time of a step here and in another checkout."""
    theirs = [sys.executable, "-m", command, "serve"]
    for engine in ENGINES:
        with ExitStack() as stack:
            targets = []
            for name, run, folder in (("ours  now", OURS, ROOT), ("ours  before", theirs, checkout)):
                url = stack.enter_context(place.database(engine))
                waiting = opened(url, sizes.needed)
                port, process = stack.enter_context(serving(run, url, checkout=folder))
                targets.append(Target(f"{name}, {engine}", port, process, url, waiting))
            interleaved(targets, place.longest, sizes)
        report[f"{engine}_work_ratio"] = round(ratio(*targets, "work"), 3)
        print(f"{engine}: {report[f'{engine}_work_ratio']} times the processor time of a step before")


def many(place: Place, sizes: Sizes, report: dict[str, float]) -> None:
    """The same with few sessions in the table and with very many, of which some at random are answered."""
    for engine in ENGINES:
        with ExitStack() as stack:
            few = sides(stack, place, engine, sizes)
            full = sides(stack, place, engine, sizes, open_sessions=sizes.open_sessions)
            interleaved([few[0], full[0], few[1], full[1]], place.longest, sizes)
        report[f"{engine}_many_sessions_change"] = round(ratio(full[0], few[0]) - 1, 3)
        report[f"{engine}_many_sessions_change_bare"] = round(ratio(full[1], few[1]) - 1, 3)
        report[f"{engine}_many_sessions_rps_ratio"] = round(ratio(*full), 3)
        changes = [100 * report[f"{engine}_many_sessions_change{whose}"] for whose in ("", "_bare")]
        print(
            f"{sizes.open_sessions:,} open sessions on {engine}: {changes[0]:+.1f} % requests per second; the bare one {changes[1]:+.1f} %"
        )
    report["many_sessions_change"] = min(report[f"{engine}_many_sessions_change"] for engine in ENGINES)


def workers(place: Place, sizes: Sizes, report: dict[str, float]) -> None:
    with ExitStack() as stack:
        one, two = (sides(stack, place, "postgres", sizes, workers=count) for count in (1, 2))
        interleaved([one[0], two[0], one[1], two[1]], place.longest, sizes)
    gains = ratio(two[0], one[0]), ratio(two[1], one[1])
    report["workers_gain"], report["workers_gain_bare"] = round(gains[0], 3), round(gains[1], 3)
    report["workers_gain_ratio"] = round(gains[0] / gains[1], 3)
    print(f"two workers: {gains[0]:.2f} times one; the bare endpoint {gains[1]:.2f}; {report['workers_gain_ratio']} of its gain")


def predicting(place: Place, sizes: Sizes, report: dict[str, float]) -> None:
    """Real rows over and over, through the server and in a loop that only reads, acquires and writes."""
    some = random.Random(0).choices(patients(), k=sizes.rows)
    body = json.dumps({"model": NAME, "rows": some}).encode()
    gc.collect()
    gc.freeze()  # the loop's collections are spared what this script has loaded, as the server's are
    with place.database("sqlite") as url, serving(OURS, url) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        served, looped = [], []
        for _ in range(1 + 3 * sizes.rounds):
            start = time.perf_counter()
            connection.request("POST", "/v1/predict", body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            said = reply.read()
            served.append(time.perf_counter() - start)
            assert reply.status == 200, said
            start = time.perf_counter()
            written = in_a_loop(place.ensemble, body)
            looped.append(time.perf_counter() - start)
            assert json.loads(said) == json.loads(written)
        connection.close()
    report["predict_ratio"] = round(median(looped[1:]) / median(served[1:]), 3)
    print(
        f"predict of {sizes.rows:,} rows, {len(body):,} bytes: {1000 * median(served[1:]):.0f} ms over HTTP, "
        f"{1000 * median(looped[1:]):.0f} ms in a loop: {report['predict_ratio']} of its speed"
    )


def in_a_loop(ensemble: Ensemble, body: bytes) -> str:
    asked = json.loads(body)
    found = acquire(ensemble, ensemble.schema.encode_rows(asked["rows"], ensemble.used))
    names, labels = ensemble.schema.names, [str(label) for label in ensemble.classes]
    columns = (array.tolist() for array in (found.labels, found.probabilities, found.votes, found.cost, found.acquired))
    shown = [
        {
            "label": str(label),
            "probabilities": dict(zip(labels, chances, strict=True)),
            "votes": dict(zip(labels, votes, strict=True)),
            "cost": cost,
            "features": list(itertools.compress(names, bought)),
        }
        for label, chances, votes, cost, bought in zip(*columns, strict=True)
    ]
    return json.dumps({"model": {"name": NAME, "version": 1}, "rows": shown})


def memory(place: Place, sizes: Sizes, report: dict[str, float]) -> None:
    """A worker's resident memory while sessions are opened and answered to their end over HTTP."""
    held = []
    with place.database("postgres") as url, serving(OURS, url) as (port, process):
        for step in range(1, 7):
            load(port, CLIENTS, place.shortest, opening={"model": NAME}, sessions=sizes.memory_step)
            done = step * sizes.memory_step
            assert tally(url)[::3] == [done * len(place.shortest), done], tally(url)
            held.append(resident(process))
            print(f"memory after {done:7,} sessions: {held[-1]:.1f} MB")
    grown = held[-1] - held[0]
    report["memory_mb"], report["memory_growth_mb"] = round(held[0], 1), round(grown, 2)
    print(f"{grown:+.2f} MB, {100 * grown / held[0]:+.1f} %, over {5 * sizes.memory_step:,} sessions")


def resident(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


PARTS = {
    "postgres": partial(beside_bare, "postgres"),
    "sqlite": partial(beside_bare, "sqlite"),
    "many": many,
    "workers": workers,
    "predict": predicting,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short round of each: does it run?")
    parser.add_argument("--before", type=Path, help="another checkout, to compare the processor time of a step with")
    parser.add_argument("--command", default="frugal.service.commands.main", help="the module of its command line")
    options = parser.parse_args()
    sizes = Sizes(1, 50, 5000, 500, 1000) if options.quick else Sizes(options.rounds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers end with it
    report: dict[str, float] = {}
    postgres = bool(set(options.only) - {"sqlite", "predict"})
    with tempfile.TemporaryDirectory(prefix="frugal-steps-") as folder, place(Path(folder), postgres) as here:
        print(f"{CLIENTS} clients; a session is {len(here.longest)} answers, a round {sizes.sessions:,} sessions")
        if options.before:
            beside_before(here, sizes, options.before, options.command, report)
        for part, measure in PARTS.items() if not options.before else ():
            if part in options.only:
                measure(here, sizes, report)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
