"""Boosting with prices beside LightGBM's: one path, one reader, how both grow with the rows; a decision; the size of a model file.

    python benchmarks/boosting.py --data ../shared/data [--only path reader rows decide size]

path      200 trees along 25 worths of money (8 leaves, then 32), binning included, beside LightGBM's plain `train`
          with as many rounds, leaves, bins and threads, on 36,603 rows of covertype and on adult; of several classes LightGBM grows a tree
          each per round, we one for all. Medians of interleaved rounds, one thread and two. Bar: at most 2.5 times as long
reader    100 trees of 31 leaves on the states that the path's sessions leave, beside LightGBM on the same states. Bar: at most 2 times
rows      the path on 30,000, 60,000, ... rows of covertype: seconds per row. Bar: linear
decide    one `decide` of a frontier model of two classes, 200 and 100 trees, all of Python included. Bar: 60 us at the median
size      the archive of 200 path trees of covertype. Bar: 20 MB

LightGBM comes with the extra `bench`. The last line is JSON.
"""

import argparse
import json
import statistics
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from frugal import Ask, FrontierClassifier, PricedBoostingClassifier, decide, dump
from frugal.models.costs import CostModel
from frugal.models.growing.binning import MOST_BINS, Binning
from frugal.models.kernels.marks import CUT, SOME_CATEGORIES
from frugal.models.learners import reading

ROUNDS = 5
TABLES = (("covertype", 36_603), ("adult_train", None))
PARTS = ("path", "reader", "rows", "decide", "size")
SIZES = ({"max_leaves": 8, "l2": 5.0, "min_rows": 20}, {"max_leaves": 32, "l2": 5.0, "min_rows": 15})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    asked = parser.parse_args()
    report: dict[str, float] = {}
    for name, rows in TABLES:
        table = read(asked.data, name, rows)
        for threads in (1, 2):
            if "path" in asked.only:
                for size in SIZES:
                    path(name, *table, size, threads, report)
            if "reader" in asked.only:
                reader(name, *table, threads, report)
    if "rows" in asked.only:
        by_rows(asked.data, report)
    if "decide" in asked.only:
        deciding(*read(asked.data, "adult_train", 4000), report)
    if "size" in asked.only:
        archive(*read(asked.data, "covertype", 36_603), report)
    print(json.dumps(report))


def read(folder: Path, name: str, rows: int | None) -> tuple[pd.DataFrame, np.ndarray, list[str], CostModel]:
    frame = pd.read_csv(folder / f"{name}.csv.gz", low_memory=False)
    if rows is not None:
        frame = frame.sample(min(rows, len(frame)), random_state=0)
    labels = frame.pop("label").to_numpy().astype(str)
    words = [column for column in frame if frame[column].dtype.kind not in "iuf"]
    prices = np.random.default_rng(zlib.crc32(name.encode())).integers(1, 11, frame.shape[1])
    return frame, labels, words, CostModel.of(dict(zip(frame.columns, map(float, prices), strict=True)), list(frame.columns))


def path(name, frame, labels, words, costs, size, threads, report) -> None:
    ours = PricedBoostingClassifier(costs=costs, categorical=words, n_jobs=threads, random_state=0, **size)
    prepared = ours._prepare(frame, labels, None)
    trees = len(ours._again(prepared, prepared.rows)) - 1
    settings = settings_of(ours, threads, size["max_leaves"], size["l2"], size["min_rows"])
    codes, classes = prepared.rows.codes, prepared.rows.classes
    mine, other = interleaved(
        lambda: ours._again(prepared, prepared.rows), lambda: light(codes, classes, places(frame, words), settings, trees)
    )
    tell(report, f"path {name} {size['max_leaves']} leaves {threads}t", mine, other, f"{trees} trees")


def reader(name, frame, labels, words, costs, threads, report) -> None:
    ours = PricedBoostingClassifier(costs=costs, categorical=words, n_jobs=threads, random_state=0, **SIZES[0])
    prepared = ours._prepare(frame, labels, None)
    asker, rows = ours._again(prepared, prepared.rows), prepared.rows
    size = reading.size_for(len(rows.codes), rows.count)
    binning = Binning.of(rows.codes, prepared.schema, MOST_BINS, threads, prepared.seed)
    bins = binning.apply(rows.codes, prepared.schema, threads, CUT, SOME_CATEGORIES)
    states = reading._states(asker, bins, rows, size, None, prepared.seed, threads)
    seen = np.where(states.sizes == states.codes.T, np.nan, states.codes.T)
    classes = np.tile(rows.classes, len(seen) // len(rows.codes))
    settings = settings_of(ours, threads, size.leaves, reading.L2, size.rows)
    mine, other = interleaved(
        lambda: reading.grow(asker, prepared, rows, threads), lambda: light(seen, classes, places(frame, words), settings, size.trees)
    )
    tell(report, f"reader {name} {threads}t", mine, other, f"{len(seen):,} states, playing the sessions included")


def settings_of(ours, threads, leaves, l2, rows) -> dict:
    many = len(ours.classes_)
    return {
        "objective": "binary" if many == 2 else "multiclass",
        **({} if many == 2 else {"num_class": many}),
        "num_leaves": leaves,
        "lambda_l2": l2,
        "min_data_in_leaf": rows,
        "learning_rate": 0.1,
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "max_bin": MOST_BINS,
        "num_threads": threads,
        "verbosity": -1,
    }


def light(codes, classes, categorical, settings, rounds):
    import lightgbm

    data = lightgbm.Dataset(codes, classes, categorical_feature=categorical, params={"verbosity": -1, "max_bin": MOST_BINS})
    return lightgbm.train(settings, data, rounds)


def places(frame, words) -> list[int]:
    return [frame.columns.get_loc(word) for word in words]


def interleaved(ours, theirs) -> tuple[float, float]:
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for side, work in zip(taken, (ours, theirs), strict=True):
            start = time.perf_counter()
            work()
            side.append(time.perf_counter() - start)
    return statistics.median(taken[0]), statistics.median(taken[1])


def tell(report, what, mine, other, note) -> None:
    report[what] = round(mine / other, 2)
    print(f"{what}: {mine:.2f} s, LightGBM {other:.2f} s: {mine / other:.2f} times as long ({note})", flush=True)


def by_rows(folder: Path, report) -> None:
    for rows in (30_000, 60_000, 120_000, 240_000):
        frame, labels, words, costs = read(folder, "covertype", rows)
        ours = PricedBoostingClassifier(costs=costs, categorical=words, random_state=0, n_jobs=2, **SIZES[0])
        prepared = ours._prepare(frame, labels, None)
        start = time.perf_counter()
        ours._again(prepared, prepared.rows)
        taken = time.perf_counter() - start
        report[f"us per row at {rows}"] = round(1e6 * taken / rows, 1)
        print(f"{rows:,} rows: {taken:.1f} s, {1e6 * taken / rows:.1f} us per row", flush=True)


def deciding(frame, labels, words, costs, report) -> None:
    ensemble = FrontierClassifier(costs=costs, categorical=words, random_state=0).fit(frame, labels).ensemble_
    taken = []
    for row in frame.to_dict("records")[:200]:
        answers: dict = {}
        while True:
            start = time.perf_counter()
            decision = decide(ensemble, answers, confidence=0.95)
            taken.append(time.perf_counter() - start)
            if not isinstance(decision, Ask):
                break
            value = row[decision.feature]
            answers[decision.feature] = None if value != value else value
    report["decide us"] = round(1e6 * statistics.median(taken), 1)
    trees = f"{len(ensemble)} + {len(ensemble.reader.roots)} trees"
    print(f"decide: {report['decide us']} us at the median of {len(taken):,} calls ({trees})", flush=True)


def archive(frame, labels, words, costs, report) -> None:
    for size in SIZES:
        model = PricedBoostingClassifier(costs=costs, categorical=words, random_state=0, **size).fit(frame, labels)
        megabytes = len(dump(model.ensemble_)) / 1e6
        report[f"MB of {size['max_leaves']} leaves"] = round(megabytes, 2)
        print(f"archive: {len(model.ensemble_)} trees of {size['max_leaves']} leaves, {megabytes:.2f} MB", flush=True)


if __name__ == "__main__":
    main()
