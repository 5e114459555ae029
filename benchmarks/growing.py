"""The engine that grows trees: beside scikit-learn's forest, beside an earlier commit, and how long it takes to compile.

    python benchmarks/growing.py --data ../shared/data [--before FOLDER] [--only tables large compiling before]

tables      fits of 10 trees on adult and bank_marketing, categories declared, and on 36,603 rows of covertype, beside
            RandomForestClassifier(max_features=None): medians of interleaved rounds, on one thread and on two
large       the same on 500,000 rows of covertype
before      the processor time of trees alone, beside the engine of a clone in FOLDER, in turns, on the same tables
compiling   processor seconds that a cold machine needs to compile what training needs, and what sessions need

The last line is JSON.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent))

TREES, ROUNDS = 10, 5
TABLES = (("adult_train", None), ("bank_marketing", None), ("covertype", 36_603))
PARTS = ("tables", "large", "before", "compiling")
ALONE = ("krk", "nursery", "magic", "adult_train", "bank_marketing", "covertype")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--before", type=Path, help="a clone of another commit")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)  # trees for another process
    asked = parser.parse_args()
    if asked.serve:
        answer(asked.data)
        return
    report: dict = {}
    if "tables" in asked.only:
        for name, rows in TABLES:
            beside_scikit_learn(asked.data, name, rows, report)
    if "large" in asked.only:
        beside_scikit_learn(asked.data, "covertype", 500_000, report, rounds=2)
    if "before" in asked.only and asked.before:
        beside_another_commit(asked.data, asked.before, report)
    if "compiling" in asked.only:
        compiling(report)
    print(json.dumps(report))


def read(folder: Path, name: str, rows: int | None) -> tuple:
    """(frame, labels, categorical columns, prices)."""
    import numpy as np
    import pandas as pd

    frame = pd.read_csv(folder / f"{name}.csv.gz", low_memory=False)
    if rows is not None:
        frame = frame.sample(min(rows, len(frame)), random_state=0)
    labels = frame.pop("label").to_numpy().astype(str)
    words = [column for column in frame if frame[column].dtype.kind not in "iuf"]
    prices = np.random.default_rng(zlib.crc32(name.encode())).integers(1, 11, frame.shape[1]).tolist()
    return frame, labels, words, prices


def beside_scikit_learn(folder: Path, name: str, rows: int | None, report: dict, rounds: int = ROUNDS) -> None:
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier

    from frugal.models import BudgetForestClassifier

    frame, labels, words, prices = read(folder, name, rows)
    codes = frame.assign(**{column: pd.Categorical(frame[column]).codes for column in words}).to_numpy(float)
    for threads in (1, 2):
        taken: dict[str, list[float]] = {"ours": [], "theirs": []}
        ours = BudgetForestClassifier(max_trees=TREES, costs=prices, categorical=words, n_jobs=threads, random_state=0)
        theirs = RandomForestClassifier(TREES, max_features=None, n_jobs=threads, random_state=0)
        for _ in range(rounds):
            taken["ours"].append(seconds(lambda: ours.fit(frame, labels)))  # noqa: B023 - called at once
            taken["theirs"].append(seconds(lambda: theirs.fit(codes, labels)))  # noqa: B023
        mine, other = (statistics.median(taken[side]) for side in ("ours", "theirs"))
        report[f"{name} {len(frame)} {threads}t"] = round(other / mine, 2)
        print(
            f"{name} {len(frame):,} x {frame.shape[1]} ({len(words)} categorical), {threads} threads: {mine:.2f} s, "
            f"scikit-learn {other:.2f} s: {other / mine:.2f} times as fast",
            flush=True,
        )


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def beside_another_commit(folder: Path, before: Path, report: dict) -> None:
    sides = {"before": started(folder, before), "now": started(folder, HERE.parent.parent)}
    for name in ALONE:
        for side in sides.values():
            grow_in(side, name)  # loaded, compiled
        ratios = [grow_in(sides["now"], name) / grow_in(sides["before"], name) for _ in range(2 * ROUNDS)]
        report[f"before {name}"] = round(statistics.median(ratios), 3)
        print(f"{name}: growing takes {statistics.median(ratios):.3f} of the time that it took before", flush=True)
    for side in sides.values():
        side.stdin.close()
        side.wait()


def started(folder: Path, clone: Path) -> subprocess.Popen:
    command = [sys.executable, str(HERE), "--data", str(folder.resolve()), "--serve"]
    return subprocess.Popen(
        command, cwd=clone, env=os.environ | {"GROWING_CLONE": str(clone)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def grow_in(side: subprocess.Popen, name: str) -> float:
    side.stdin.write(name + "\n")
    side.stdin.flush()
    return float(side.stdout.readline())


def answer(folder: Path) -> None:
    """In a process of its own, with the frugal of the clone it is told."""
    sys.path.insert(0, os.environ["GROWING_CLONE"])
    from frugal.models import BudgetForestClassifier

    growers: dict = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in growers:
            frame, labels, words, prices = read(folder, name, 36_603)
            learner = BudgetForestClassifier(costs=prices, categorical=words, random_state=0)
            prepared = learner._prepare(frame, labels, None)
            growers[name] = learner._growers(prepared, prepared.rows, learner._alphas(), bootstrap=True)[0]
        start = time.process_time()
        for i in range(3):
            growers[name].tree(i)
        print(time.process_time() - start, flush=True)


COLD = """
import sys
import time
from frugal.models.warm import PARTS
start = time.process_time()
for part in sys.argv[1:]:
    PARTS.work[part]()
print(time.process_time() - start)
"""


def compiling(report: dict) -> None:
    for what, parts in (("training", ("growing", "predicting")), ("sessions", ("deciding",))):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            command = [sys.executable, "-c", COLD, *parts]
            done = subprocess.run(command, cwd=HERE.parent.parent, env=environment, capture_output=True, text=True, check=True)
        report[f"compiling for {what}"] = round(float(done.stdout), 1)
        print(f"compiling what {what} need{'s' if what == 'training' else ''}: {float(done.stdout):.1f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
