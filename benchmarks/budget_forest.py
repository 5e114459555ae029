"""BudgetRF on real data, beside scikit-learn's random forests: the paper's tables on covertype, Figure 5, Turney's sets, speed and memory.

    python benchmarks/budget_forest.py --data ../shared/data [--only table alpha figure5 turney speed] [--plots docs/results]

The last line is JSON.
"""

import argparse
import csv
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

sys.path.insert(0, str(Path(__file__).parent.parent))

from frugal.models import BudgetForestClassifier, CostModel, Feature, GreedyTreeClassifier, Price, Schema, acquire
from frugal.models.curves import Point, by_trees, frontier, plot
from frugal.models.growing.binning import Binning
from frugal.models.growing.grower import Grower
from frugal.models.growing.rules import impurity, minimax
from frugal.models.growing.targets import constant, counts
from tests.converting import from_sklearn

TRAIN, VALID = 36_603, 15_688
SIZES = (1, 10, 20, 40)
ALPHAS = (0, 2, 4, 6, 8, 10, 15, 25, 35, 45)


def read(folder: Path, name: str) -> tuple[list[str], list[list[str]]]:
    with gzip.open(folder / f"{name}.csv.gz", "rt", newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def covertype(folder: Path, rows: int = 110_392) -> tuple[np.ndarray, np.ndarray]:
    table = np.loadtxt(folder / "covertype.csv.gz", delimiter=",", skiprows=1, max_rows=rows, dtype=np.float32)
    return table[:, :-1].astype(np.float64), table[:, -1].astype(int)


def parts(X: np.ndarray, y: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    order = np.random.default_rng(seed).permutation(len(X))
    cuts = np.split(order, [TRAIN, TRAIN + VALID])
    return [(X[rows], y[rows]) for rows in cuts]


def table_one(X: np.ndarray, y: np.ndarray, report: dict) -> None:
    """% of features and test error at 1, 10, 20, 40 trees, mean and spread over 3 seeds."""
    found: dict[str, list[list[Point]]] = {}
    for seed in range(3):
        (train_X, train_y), _, (test_X, test_y) = parts(X, y, seed)
        for name in ("gini", "entropy"):
            forest = RandomForestClassifier(max(SIZES), criterion=name, max_features=8, n_jobs=2, random_state=seed).fit(train_X, train_y)
            converted = from_sklearn(forest, stop="leaf")
            found.setdefault(f"RF({name})", []).append(by_trees(converted, test_X.astype(np.float32), test_y, SIZES, n_jobs=2))
        ours = BudgetForestClassifier(max_trees=max(SIZES), n_jobs=2, random_state=seed).fit(train_X, train_y).ensemble_
        for name, settings in (("BudgetRF", {"stop": "leaf"}), ("BudgetRF votes/decided", {"stop": "decided"})):
            found.setdefault(name, []).append(by_trees(ours.with_settings(**settings), test_X, test_y, SIZES, n_jobs=2))
    print(f"\n{'':24}" + "".join(f"{size:>26} trees" for size in SIZES))
    for name, runs in found.items():
        cells = []
        for k, size in enumerate(SIZES):
            share = [100 * run[k].mean_cost / X.shape[1] for run in runs]
            error = [run[k].error for run in runs]
            cells.append(f"{np.mean(share):6.2f} % {np.mean(error):.4f} +- {np.std(error):.4f}")
            report[f"{name} {size}"] = {"features_percent": round(float(np.mean(share)), 2), "error": round(float(np.mean(error)), 4)}
        print(f"{name:24}" + "".join(f"{cell:>32}" for cell in cells))
    for size in (10, 40):
        rf = min((report[f"RF({name}) {size}"] for name in ("gini", "entropy")), key=lambda r: r["error"])
        ours_at = report[f"BudgetRF {size}"]
        report[f"cost_ratio {size}"] = round(ours_at["features_percent"] / rf["features_percent"], 3)
        print(f"{size} trees: cost {report[f'cost_ratio {size}']} of the better RF's, error {ours_at['error']} against {rf['error']}")
    saved = 1 - report["BudgetRF votes/decided 40"]["features_percent"] / report["BudgetRF 40"]["features_percent"]
    report["decided_saves"] = round(saved, 3)
    print(f"votes/decided: the same labels for {100 * saved:.0f} % less at 40 trees")


def alpha_curve(X: np.ndarray, y: np.ndarray, report: dict, plots: Path | None) -> None:
    """Error against cost over the paper's grid; alpha and the number of trees chosen on validation for each budget."""
    (train_X, train_y), (valid_X, valid_y), (test_X, test_y) = parts(X, y, 0)
    sizes = (1, 2, 3, 5, 8, 12, 20, 30, 40)
    valid, test = {}, {}
    for alpha in ALPHAS:
        forest = BudgetForestClassifier(alpha=float(alpha), stop="leaf", n_jobs=2, random_state=0).fit(train_X, train_y).ensemble_
        valid[alpha] = by_trees(forest, valid_X, valid_y, sizes, n_jobs=2)
        test[alpha] = by_trees(forest, test_X, test_y, sizes, n_jobs=2)
    chosen = []
    print("\nbudget  alpha  trees  test error  mean cost (features of 54)")
    for budget in (4, 5, 6, 7, 8, 9, 10, 11, 12, 14):
        within = [
            (point.error, point.mean_cost, alpha, k)
            for alpha in ALPHAS
            for k, point in enumerate(valid[alpha])
            if point.mean_cost <= budget
        ]
        if not within:
            continue
        _, _, alpha, k = min(within)
        chosen.append(test[alpha][k])
        print(f"{budget:6}  {alpha:5}  {sizes[k]:5}  {test[alpha][k].error:10.4f}  {test[alpha][k].mean_cost:9.2f}")
    report["alpha_curve"] = [{"cost": round(p.mean_cost, 2), "error": round(p.error, 4)} for p in chosen]
    if plots is not None:
        curves = {f"alpha {alpha}": frontier(test[alpha]) for alpha in (0, 4, 10, 25, 45)}
        plot(
            curves | {"chosen on validation": frontier(chosen)},
            plots / "covertype.png",
            "Covertype: error against features bought",
            "features per case",
        )


def levels(column: list[str], many: int = 10) -> np.ndarray:
    numbers = np.array([float(cell) if cell else np.nan for cell in column])
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    return np.minimum(np.floor((numbers - low) / (high - low or 1) * many), many - 1)


def figure_five(folder: Path, report: dict, plots: Path | None) -> None:
    """Powers against threshold-pairs: training error against max-cost of one tree, ten levels, equal rows made one."""
    for name in ("pima", "wbcd", "mammographic_masses"):
        header, rows = read(folder, name)
        columns = [levels([row[i] for row in rows]) for i in range(len(header) - 1)]
        table = np.column_stack(columns)
        table = np.where(np.isnan(table), -1, table)
        distinct, where = np.unique(table, axis=0, return_inverse=True)
        labels, y = np.unique([row[-1] for row in rows], return_inverse=True)
        votes = np.zeros((len(distinct), len(labels)))
        np.add.at(votes, (where.ravel(), y), 1)
        truth = votes.argmax(axis=1)
        curves = {}
        settings = {f"powers {power}": {"impurity": "powers", "power": power} for power in (2, 3, 4, 5)} | {"threshold-pairs": {}}
        for label, setting in settings.items():
            points = []
            if label == "threshold-pairs":
                for alpha in (0, 0.5, 1, 2, 3, 4, 6, 8, 12, 20, 40):
                    tree = GreedyTreeClassifier(alpha=alpha, stop="leaf").fit(distinct, truth).ensemble_
                    found = acquire(tree, distinct)
                    points.append(Point(float(np.mean(found.labels != truth)), float(found.cost.max()), float(found.cost.max()), 1))
            else:
                tree = GreedyTreeClassifier(stop="leaf", order="sequential", **setting).fit(distinct, truth).ensemble_
                for budget in range(1, distinct.shape[1] + 1):
                    found = acquire(tree, distinct, budget)
                    points.append(Point(float(np.mean(found.labels != truth)), float(found.cost.max()), float(found.cost.max()), 1, budget))
            curves[label] = frontier(points)
        print(f"\nfigure 5, {name}: {len(distinct)} distinct rows; error at max-cost")
        for label, points in curves.items():
            print(f"  {label:16}" + "  ".join(f"{p.mean_cost:.0f}: {p.error:.3f}" for p in points))
        report[f"figure5 {name}"] = {label: [[p.mean_cost, round(p.error, 4)] for p in points] for label, points in curves.items()}
        if plots is not None:
            plot(curves, plots / f"figure5-{name}.png", f"{name}: error against max-cost of one tree", "max cost (features)")


def price_of(feature: str, line: dict[str, str]) -> Price:
    inside = float(line["cost_in_group"]) if line["group"] and line["cost_in_group"] else None
    return Price(feature, float(line["cost"]), line["group"] or None, inside)


def turney(folder: Path, report: dict, plots: Path | None) -> None:
    """Turney's five sets with his costs: what alpha and prices on the path do."""
    with open(folder / "turney_costs.csv", newline="") as file:
        listed = list(csv.DictReader(file))
    print("\nTurney's sets: error and mean cost on held-out thirds, mean of 5 shuffles; 40 trees")
    for name, files in {"heart_cleveland": 1, "hepatitis": 1, "pima": 1, "bupa": 1, "thyroid": 2}.items():
        sets = [read(folder, name if files == 1 else f"{name}_{part}") for part in ("train", "test")[:files]]
        header = sets[0][0]
        rows = [row for _, more in sets for row in more]
        priced = {line["feature"]: line for line in listed if line["dataset"] == name}
        kept = [i for i, column in enumerate(header[:-1]) if column in priced and column != "FTI"]
        costs = CostModel(price_of(f"x{k}", priced[header[i]]) for k, i in enumerate(kept))
        X = np.array([[float(row[i]) if row[i] else np.nan for i in kept] for row in rows])
        y = np.array([row[-1] for row in rows])
        for alpha in (0.0, 2.0, 8.0):
            for price in ("constant", "path"):
                results = []
                for seed in range(5):
                    order = np.random.default_rng(seed).permutation(len(X))
                    held, train = order[: len(X) // 3], order[len(X) // 3 :]
                    forest = BudgetForestClassifier(
                        alpha=alpha, price=price, costs=list(costs.prices) and None, n_jobs=2, random_state=seed
                    )
                    forest.set_params(
                        costs=CostModel([Price(f"x{k}", p.cost, p.group, p.cost_in_group) for k, p in enumerate(costs.prices)])
                    )
                    found = forest.fit(X[train], y[train]).acquire(X[held])
                    results.append((np.mean(found.labels != y[held]), found.cost.mean()))
                error, cost = np.mean(results, axis=0)
                commonest = 1 - max(np.mean(y == label) for label in set(y))
                report[f"turney {name} alpha {alpha:g} {price}"] = {"error": round(float(error), 4), "cost": round(float(cost), 2)}
                print(
                    f"  {name:16} alpha {alpha:2g} price {price:9} error {error:.4f} "
                    f"(commonest class {commonest:.4f}), cost {cost:7.2f} of {costs.total(costs.features):.2f}"
                )


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def speed(folder: Path, report: dict, rounds: int = 3) -> None:
    """Growing, against RandomForestClassifier(max_features=None), same trees and threads, interleaved; and peak memory."""
    X, y = covertype(folder, 581_012)
    order = np.random.default_rng(0).permutation(len(X))
    for rows, trees in ((TRAIN, 20), (500_000, 8)):
        part_X, part_y = X[order[:rows]], y[order[:rows]]
        times: dict[tuple[str, int], list[float]] = {}
        for _ in range(rounds if rows == TRAIN else 1):
            for threads in (1, 2):
                theirs = RandomForestClassifier(trees, max_features=None, n_jobs=threads, random_state=0)
                ours = BudgetForestClassifier(max_trees=trees, n_jobs=threads, random_state=0)
                times.setdefault(("theirs", threads), []).append(seconds(partial(theirs.fit, part_X, part_y)))
                times.setdefault(("ours", threads), []).append(seconds(partial(ours.fit, part_X, part_y)))
        median = {key: statistics.median(value) for key, value in times.items()}
        for threads in (1, 2):
            ratio = median["theirs", threads] / median["ours", threads]
            report[f"grow_speed {rows} {threads}t"] = round(ratio, 2)
            print(
                f"{rows:,} x 54, {trees} trees, {threads} threads: {median['ours', threads]:.2f} s, "
                f"scikit-learn {median['theirs', threads]:.2f} s: {ratio:.2f} times as fast"
            )
        report[f"two_threads {rows}"] = round(median["ours", 1] / median["ours", 2], 2)
        print(f"  two threads {report[f'two_threads {rows}']} times one")
        report[f"two_threads growing {rows}"] = growing_only(part_X, part_y, trees)
        print(f"  growing alone, without reading, binning and measuring: {report[f'two_threads growing {rows}']}")
        memory(X[order], y[order], rows, trees, report)


def growing_only(X: np.ndarray, y: np.ndarray, trees: int) -> float:
    """How much faster two threads grow than one."""
    schema = Schema(Feature(f"x{i}") for i in range(X.shape[1]))
    binning = Binning.of(X, schema)
    labels = np.unique(y, return_inverse=True)[1].astype(np.int32)
    classes = int(labels.max()) + 1
    alone = Grower(
        bins=binning.apply(X, schema),
        binning=binning,
        target=counts(labels, classes),
        rule=minimax(impurity("threshold-pairs", classes)),
        context=constant(CostModel.of(None, schema.names)),
        weights=np.ones(len(X)),
        seed=0,
    )
    together = replace(alone, threads=2)
    ratios = []
    for _ in range(3):
        one = seconds(lambda: list(alone.trees(trees)))
        ratios.append(one / seconds(lambda: list(together.trees(trees))))
    return round(statistics.median(ratios), 2)


MEMORY = """
import sys
import numpy as np
sys.path.insert(0, ".")
from frugal.models import CostModel, Feature, Schema
from frugal.models.growing.binning import Binning
from frugal.models.growing.grower import Grower
from frugal.models.growing.rules import impurity, minimax
from frugal.models.growing.targets import constant, counts

def peak():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

rows, trees, threads = map(int, sys.argv[2:])
codes = np.load(sys.argv[1], mmap_mode="r")
schema = Schema(Feature(f"x{i}") for i in range(codes.shape[1] - 1))
table = np.array(codes[:rows, :-1], np.float64)
classes = np.unique(codes[:rows, -1], return_inverse=True)[1].astype(np.int32)
binning = Binning.of(table, schema)
rule, context = minimax(impurity("threshold-pairs", 7)), constant(CostModel.of(None, schema.names))

def made(some, threads):
    return Grower(binning.apply(table[:some], schema), binning, counts(classes[:some], 7), rule, context, np.ones(some), 0, threads=threads)

list(made(500, 1).trees(2))  # compiled code in memory before counting
grower = made(rows, threads)
bins = grower.bins
del table, codes
open("/proc/self/clear_refs", "w").write("5")
before = peak()
grown = list(grower.trees(trees))
used = peak() - before
print(used + bins.codes.nbytes, bins.codes.nbytes, sum(array.nbytes for tree in grown for array in tree))
"""


def memory(X: np.ndarray, y: np.ndarray, rows: int, trees: int, report: dict) -> None:
    """Peak memory of a process that grows trees, the binned matrix included, against that matrix."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npy"
        np.save(path, np.column_stack([X[:rows], y[:rows]]))
        command = [sys.executable, "-c", MEMORY, str(path), str(rows), str(trees), "2"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    peak, binned, grown = map(int, done.stdout.split())
    ratio = (peak - grown) / binned
    report[f"memory {rows}"] = round(ratio, 2)
    print(
        f"  peak {peak / 1e6:.1f} MB less {grown / 1e6:.1f} MB of trees: {ratio:.2f} times the binned matrix "
        f"({binned / 1e6:.1f} MB), 2 threads"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=["table", "alpha", "figure5", "turney", "speed"])
    parser.add_argument("--plots", type=Path)
    options = parser.parse_args()
    report: dict = {}
    if {"table", "alpha"} & set(options.only):
        X, y = covertype(options.data)
        if "table" in options.only:
            table_one(X, y, report)
        if "alpha" in options.only:
            alpha_curve(X, y, report, options.plots)
    if "figure5" in options.only:
        figure_five(options.data, report, options.plots)
    if "turney" in options.only:
        turney(options.data, report, options.plots)
    if "speed" in options.only:
        speed(options.data, report)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
