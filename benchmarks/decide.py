"""One decision, and many: against the scikit-learn forest that the ensemble was converted from, in the same run on the same threads.

    python benchmarks/decide.py [--rows 50000] [--rounds 5] [--threads 1 2]

Bars: one `decide` call at most 50 us with all Python included; `acquire` on full rows at least as fast as the forest's `predict`; importing
models and deciding under 2 s with a warm cache. The last line is JSON.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

sys.path.insert(0, str(Path(__file__).parent.parent))

from frugal.models import Ask, Ensemble, acquire, decide, warm_up
from tests.converting import from_sklearn

CLASSES, FEATURES = 7, 54
START = """
import time
start = time.perf_counter()
from frugal.models import Ensemble, Feature, Leaf, Schema, Split, decide
tree = Split("size", [1, 1], threshold=1.0, children=[Leaf([1, 0]), Leaf([0, 1])])
decide(Ensemble.of([tree], Schema([Feature("size")]), classes=["a", "b"], vote="majority"), {})
print(time.perf_counter() - start)
"""


def grown_forest(train: int = 110_000) -> tuple[RandomForestClassifier, np.ndarray]:
    """A 40-tree forest of about 400,000 nodes, and rows it has not seen."""
    X, y = make_classification(
        train + 200_000,
        FEATURES,
        n_informative=12,
        n_redundant=6,
        n_classes=CLASSES,
        n_clusters_per_class=2,
        flip_y=0.02,
        random_state=0,
    )
    X = X.astype(np.float32)
    forest = RandomForestClassifier(40, max_leaf_nodes=5000, n_jobs=2, random_state=0).fit(X[:train], y[:train])
    return forest, X[train:]


def microseconds_per_decision(ensemble: Ensemble, rows: np.ndarray, cases: int = 200) -> list[float]:
    """Whole sessions, every call of `decide` timed by itself."""
    times = []
    for row in rows[:cases].astype(float).tolist():
        answers: dict[str, float] = {}
        while True:
            start = time.perf_counter()
            decision = decide(ensemble, answers)
            times.append((time.perf_counter() - start) * 1e6)
            if not isinstance(decision, Ask):
                break
            answers[decision.feature] = row[ensemble.schema.index[decision.feature]]
    return times


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    warm_up()
    forest, unseen = grown_forest()
    rows = unseen[: options.rows]
    wide = rows.astype(np.float64)
    settings = [(order, stop) for order in ("votes", "sequential") for stop in ("decided", "leaf")]
    ensembles = {setting: from_sklearn(forest, order=setting[0], stop=setting[1]) for setting in settings}
    some = ensembles[settings[0]]
    print(f"{len(some)} trees, {len(some.flat.feature):,} nodes, {FEATURES} features, {CLASSES} classes, {len(rows):,} rows")
    labels = forest.predict(rows)
    report: dict[str, object] = {"trees": len(some), "nodes": len(some.flat.feature)}

    for setting, ensemble in ensembles.items():
        times = microseconds_per_decision(ensemble, unseen)
        name, p99 = "/".join(setting), np.percentile(times, 99)
        report[f"decide_us {name}"] = round(statistics.median(times), 1)
        print(f"decide   {name:20} median {statistics.median(times):6.1f} us, p99 {p99:6.1f} us, {len(times):,} calls")

    for threads in options.threads:
        forest.set_params(n_jobs=threads)
        taken: dict[object, list[float]] = {setting: [] for setting in [*settings, "sklearn"]}
        for _ in range(options.rounds):
            taken["sklearn"].append(seconds(lambda: forest.predict(rows)))
            for setting, ensemble in ensembles.items():
                taken[setting].append(seconds(lambda e=ensemble, n=threads: acquire(e, wide, n_jobs=n)))
        theirs = statistics.median(taken["sklearn"])
        print(f"predict  scikit-learn, {threads} threads: {theirs:.3f} s")
        for setting, ensemble in ensembles.items():
            result = acquire(ensemble, wide, n_jobs=threads)
            assert (result.labels == labels).all(), setting
            ours = statistics.median(taken[setting])
            report[f"acquire_speed {'/'.join(setting)} {threads}t"] = round(theirs / ours, 2)
            print(
                f"acquire  {'/'.join(setting):20} {threads} threads: {ours:.3f} s, {theirs / ours:.2f} times as fast; "
                f"{result.acquired.sum(axis=1).mean():.1f} features a row"
            )

    starts = [float(subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    report["start_s"] = round(statistics.median(starts), 2)
    print(f"start    import and first decision with a warm cache: {report['start_s']} s")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
