"""ASTC and CSTC on the yardstick's tables: error against mean cost, from cheap to dear.

    python benchmarks/peers/run.py --data ../shared/data [--only magic:rand,heart:turney] [--splits 3]

One JSON line per setting, learner and kind of columns ("linear": numbers as they are; "stumps": also whether they are above each of up to 7
quantiles). Costs are shares of what everything costs. `points` are (validation cost, validation error, test cost, test error) of every
trade-off and depth of the first split; the lower convex hull on validation picks those that are used, and neighbours are mixed between
them. `area` is the mean test error from 1 to 50 % of the cost of everything, `errors` those at 10, 25 and 50 %, both means over the splits.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.peers.astc import ASTC
from benchmarks.peers.cstc import CSTC
from benchmarks.peers.curve import curve
from benchmarks.peers.tables import load

SETTINGS = {
    "magic:rand": "magic",
    "spambase:rand": "spambase",
    "phoneme:rand": "phoneme",
    "heart:turney": "heart_cleveland",
    "adult:rand": "adult",
}
BUDGETS = (0, *np.geomspace(0.01, 1, 24))  # of one node, as a share of what everything costs
LAMBDAS = (0.05, 0.5, *np.geomspace(2, 80, 22), 300)  # at 300 next to nothing is bought
SLOPES = (4, 10)  # the plain sigmoid, 1, is worse: docs/results/peers.md


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(SETTINGS))
    parser.add_argument("--splits", type=int, help="how often rows are divided anew: 3, and 10 on tables below 1,000 rows")
    asked = parser.parse_args()
    for setting in asked.only.split(","):
        table, kind = SETTINGS[setting], setting.split(":")[1]
        splits = asked.splits or (10 if table == "heart_cleveland" else 3)
        for learner in (astc, cstc):
            for columns in ("linear", "stumps"):
                found = [one_split(learner, load(asked.data, table, kind, seed, columns == "stumps")) for seed in range(splits)]
                print(json.dumps({"setting": setting, "learner": learner.__name__, "columns": columns} | summary(found)), flush=True)


def astc(part, prices, owner):
    """A tree for every budget of a node."""
    return [ASTC(share * prices.everything, depth=4).fit(*part, prices.first, owner) for share in BUDGETS]


def cstc(part, prices, owner):
    """A tree for every lambda and every steepness of the routing."""
    return [CSTC(lam, slope=slope).fit(*part, prices.first, owner) for slope in SLOPES for lam in LAMBDAS]


def one_split(learner, loaded):
    parts, owner, prices = loaded
    start = time.perf_counter()
    trees = learner(parts[0], prices, owner)
    seconds = time.perf_counter() - start
    validation, test = ([measure(tree, depth, part, prices) for tree in trees for depth in range(tree.depth + 1)] for part in parts[1:])
    points = [here + there for here, there in zip(validation, test, strict=True)]
    return {"points": points, "seconds": seconds} | curve(points)


def measure(tree, depth, part, prices):
    """Mean cost as a share of everything, and error."""
    labels, _, bought = tree.acquire(part[0], depth)
    return round(float(prices.paid(bought).mean()) / prices.everything, 5), round(float(np.mean(labels != part[1])), 5)


def summary(found):
    areas = [one["area"] for one in found]
    errors = np.mean([one["errors"] for one in found], axis=0)
    report = {"splits": len(found), "area": round(float(np.mean(areas)), 4), "spread": round(float(np.std(areas)), 4)}
    report |= {"errors": errors.round(4).tolist(), "seconds": round(float(np.mean([one["seconds"] for one in found])), 1)}
    return report | {"hull": found[0]["hull"], "points": found[0]["points"]}


if __name__ == "__main__":
    main()
