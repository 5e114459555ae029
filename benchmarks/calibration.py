"""Whether told probabilities come true: the expected calibration error on every table of 2,000 rows and more.

    python benchmarks/calibration.py --data ../shared/data [--only magic,krk] [--rows 20000]

Each table is cut in fifths; a model grown on four is judged on the other, in turn on each where the table has fewer than --rows rows, so
that small tables are judged on all of theirs (fifteen bins of a few rows each would show little but chance). Larger tables are drawn down
to --rows. Prices are whole numbers from 1 to 10, drawn once per table. Per table, for budget-forest and greedy-tree, without points and
with, and for frontier: the error at the end, and cut short by budgets of 10, 25 and 50 % of the cost of everything. Beside them what
scikit-learn's forest of as many trees has, all features bought. Bars: at most .10 for forests without points, .05 for all with. The last
line is JSON.
"""

import argparse
import json
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.sweep import is_categorical, name_of
from frugal.models import BudgetForestClassifier, FrontierClassifier, GreedyTreeClassifier
from frugal.models.calibrate import calibration_error

FEWEST, FOLDS, THREADS = 2000, 5, 2
SHARES = (None, 0.1, 0.25, 0.5)  # of the cost of everything
KINDS = [(kind, points) for kind in (BudgetForestClassifier, GreedyTreeClassifier) for points in (False, True)]
KINDS.append((FrontierClassifier, True))
BARS = {"budget-forest": 0.10, "budget-forest points": 0.05, "greedy-tree points": 0.05, "frontier points": 0.05}


def judged(frame: pd.DataFrame, labels: np.ndarray, prices: list[int], folds: int) -> dict[str, list[float]]:
    """By learner: the error at the end and under each budget, then the share of wrong labels."""
    names = [name for name in frame if is_categorical(frame[name])]
    settings = {"costs": dict(zip(frame.columns, prices, strict=True)), "categorical": names, "n_jobs": THREADS, "random_state": 0}
    part = np.random.default_rng(0).permutation(len(frame)) % FOLDS
    told: dict[tuple[str, object], list] = {}
    for fold in range(folds):
        held = part == fold
        for kind, points in KINDS:
            learner = kind(points=points, **settings).fit(frame[~held], labels[~held])
            for share in SHARES:
                found = learner.acquire(frame[held], None if share is None else round(share * sum(prices), 6))
                told.setdefault((kind.name + " points" * points, share), []).append(
                    (found.probabilities.max(axis=1), found.labels == labels[held])
                )
        codes = pd.get_dummies(frame, columns=names).fillna(-1).to_numpy(float)
        forest = RandomForestClassifier(40, n_jobs=THREADS, random_state=0).fit(codes[~held], labels[~held])
        chances = forest.predict_proba(codes[held])
        right = forest.classes_[chances.argmax(axis=1)] == labels[held]
        told.setdefault(("scikit-learn", None), []).append((chances.max(axis=1), right))
    joined = {key: tuple(np.concatenate(column) for column in zip(*parts, strict=True)) for key, parts in told.items()}
    return {
        name: [round(calibration_error(*joined[name, share]), 3) for share in SHARES if (name, share) in joined]
        for name in dict.fromkeys(name for name, _ in joined)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    report: dict[str, dict[str, list[float]]] = {}
    for path in sorted(options.data.glob("*.csv.gz"), key=lambda path: path.stat().st_size):
        if options.only and name_of(path) not in options.only.split(","):
            continue
        frame = pd.read_csv(path, low_memory=False)
        if len(frame) < FEWEST:
            continue
        folds = FOLDS if len(frame) < options.rows else 1
        frame = frame.sample(min(len(frame), options.rows), random_state=0).reset_index(drop=True)
        labels = frame.pop("label").to_numpy().astype(str)
        prices = np.random.default_rng(zlib.crc32(name_of(path).encode())).integers(1, 11, frame.shape[1]).tolist()
        report[name_of(path)] = found = judged(frame, labels, prices, folds)
        shown = "   ".join(f"{name} {' '.join(f'{error:.3f}' for error in errors)}" for name, errors in found.items())
        print(f"{name_of(path):18} {len(frame):6,} rows   {shown}", flush=True)
    missed = {name: {table: max(found[name]) for table, found in report.items() if max(found[name]) > bar} for name, bar in BARS.items()}
    worst = {name: max(max(found[name]) for found in report.values()) for name in BARS}
    print(json.dumps({"tables": len(report), "worst": worst, "missed": missed}))


if __name__ == "__main__":
    main()
