"""Every learner on every table, categories declared: seconds to fit beside scikit-learn's forest of as many trees, on the same threads.

    python benchmarks/sweep.py --data ../shared/data [--out sweep.jsonl] [--limit 600] [--only nursery,adult_train] [--learners greedy-tree]

Each fit runs in a process of its own that is killed after --limit seconds, so that one that never ends is a line in the report. One JSON
line per fit; with --out a run that was cut off goes on where it stopped. Columns of words are categories, and so are columns of at most 12
different whole numbers; both sides start from the same data frame, and scikit-learn's gets codes, made within its time. Prices are whole
numbers from 1 to 10, drawn once per table. A fifth of the rows is held out for the errors. The last line is JSON: how many fits ended, and
the tables of 1,000 rows and more where ours is the slower.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import zlib
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent))

THREADS, TREES, ROUNDS = 2, 10, 3
FEW = 12  # different whole numbers that are taken for codes of categories
ENOUGH = 5.0  # seconds of a first round after which there is no other


def main() -> None:
    from frugal.models.learners import LEARNERS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--only", default="")
    parser.add_argument("--learners", default=",".join(LEARNERS))
    asked = parser.parse_args()
    tables = sorted(path for path in asked.data.glob("*.csv.gz"))
    if asked.only:
        tables = [path for path in tables if name_of(path) in asked.only.split(",")]
    done = {} if asked.out is None or not asked.out.exists() else read_lines(asked.out)
    for path in tables:
        for learner in asked.learners.split(","):
            if (name_of(path), learner) not in done:
                line = one_fit(path, learner, asked.limit)
                done[line["table"], line["learner"]] = line
                show(line)
                if asked.out is not None:
                    with asked.out.open("a") as file:
                        file.write(json.dumps(line) + "\n")
    print(json.dumps(summary(list(done.values()))))


def name_of(path: Path) -> str:
    return path.name.removesuffix(".csv.gz")


def read_lines(path: Path) -> dict:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(line["table"], line["learner"]): line for line in lines}


def one_fit(path: Path, learner: str, limit: float) -> dict:
    """One line of the report, whatever the fit does."""
    line = {"table": name_of(path), "learner": learner}
    try:
        command = [sys.executable, str(HERE), "--fit", str(path), learner]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return line | {"failed": f"not done after {limit:g} s"}
    if ended.returncode:
        return line | {"failed": ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else f"exit status {ended.returncode}"}
    return line | json.loads(ended.stdout.splitlines()[-1])


def show(line: dict) -> None:
    if "failed" in line:
        print(f"{line['table']:24} {line['learner']:14} FAILED: {line['failed']}", flush=True)
        return
    print(
        f"{line['table']:24} {line['learner']:14} {line['rows']:7,} x {line['features']:3} ({line['categorical']:3} categorical) "
        f"{line['seconds']:8.3f} s, scikit-learn {line['theirs']:8.3f} s: {line['times_as_fast']:6.2f} times as fast; "
        f"error {line['error']:.3f} for {line['cost_share']:.0%} of the cost, {line['their_error']:.3f} for all",
        flush=True,
    )


def summary(lines: list[dict]) -> dict:
    ended = [line for line in lines if "failed" not in line]
    large = [line for line in ended if line["rows"] >= 1000]
    slower = sorted(f"{line['table']} {line['learner']} {line['times_as_fast']}" for line in large if line["times_as_fast"] < 1)
    median = round(statistics.median(line["times_as_fast"] for line in large), 2) if large else None
    failed = sorted(f"{line['table']} {line['learner']}" for line in lines if "failed" in line)
    return {"fits": len(lines), "ended": len(ended), "failed": failed, "median_times_as_fast": median, "slower": slower}


def fit(path: Path, learner: str) -> None:
    """In a process of its own: fit both in turn and print one JSON object."""
    import numpy as np
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier

    from frugal.models.learners import LEARNERS

    frame = pd.read_csv(path, low_memory=False)
    labels = frame.pop("label").to_numpy().astype(str)
    names = [name for name in frame if is_categorical(frame[name])]
    prices = np.random.default_rng(zlib.crc32(name_of(path).encode())).integers(1, 11, frame.shape[1]).tolist()
    held = np.random.default_rng(0).permutation(len(frame)) < len(frame) // 5
    settings = {"costs": dict(zip(frame.columns, prices, strict=True)), "categorical": names, "n_jobs": THREADS, "random_state": 0}
    forest = "max_trees" in LEARNERS[learner]().get_params()
    ours = LEARNERS[learner](**settings, **({"max_trees": TREES} if forest else {}))
    theirs = RandomForestClassifier(TREES if forest else 1, max_features=None, bootstrap=forest, n_jobs=THREADS, random_state=0)

    def numbers(rows):
        return rows.assign(**{name: pd.Categorical(rows[name], categories=words[name]).codes for name in names}).to_numpy(float)

    words = {name: frame[name].dropna().unique() for name in names}
    LEARNERS[learner](**settings).fit(frame[:50], labels[:50])  # compiled before it is timed
    took = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        took["ours"].append(seconds(lambda: ours.fit(frame[~held], labels[~held])))
        took["theirs"].append(seconds(lambda: theirs.fit(numbers(frame[~held]), labels[~held])))
        if max(took["ours"][0], took["theirs"][0]) > ENOUGH:
            break
    found = ours.acquire(frame[held])
    mine, other = statistics.median(took["ours"]), statistics.median(took["theirs"])
    report = {"rows": len(frame), "features": frame.shape[1], "categorical": len(names), "classes": len(set(labels.tolist()))}
    report |= {"nodes": len(ours.ensemble_.flat.feature), "seconds": round(mine, 4), "theirs": round(other, 4)}
    report |= {"times_as_fast": round(other / mine, 2), "error": round(float(np.mean(found.labels != labels[held])), 4)}
    report |= {"their_error": round(float(np.mean(theirs.predict(numbers(frame[held])) != labels[held])), 4)}
    print(json.dumps(report | {"cost_share": round(float(found.cost.mean()) / sum(prices), 4)}))


def is_categorical(column) -> bool:
    """Words, or a few different whole numbers."""
    if column.dtype.kind not in "iuf":
        return True
    present = column.dropna()
    return bool(present.nunique() <= FEW and (present % 1 == 0).all())


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
        fit(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
