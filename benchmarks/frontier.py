"""The yardstick of the frontier: the error at every cost, beside whoever else grows trees under costs.

    python benchmarks/frontier.py --data ../shared/data [--out frontier.jsonl] [--only magic:rand,heart:turney] [--seeds 1]
        [--parts anchors,cf,ours,hard,hand] [--ordinal] [--strict] [--again] [--threads 2] [--plots FOLDER] [--check]

A setting is a table and a price list. Rows are drawn by the seed: up to 6,000 to train on, 3,000 to choose with, 4,000 to judge by. A
rival is a set of models. Each model's mean cost and error on validation rows are points, the commonest class for nothing is one more; those
on the lower convex hull are served to test rows, and read at 10, 25 and 50 % of the cost of everything by mixing neighbours. The area is
the mean error between 1 and 50 %. A case pays for every feature on the path that it takes through any tree; missing cells cost nothing.

    anchors   LightGBM's CEGB, a few models ("ten") and many ("fair", "filled"); CatBoost's penalties; a forest under hard budgets
    cf        CEGB's ten with our operating points
    ours      FrontierClassifier on training and validation rows (--strict: training rows alone), mixed, and as served at twelve aims
    hard      limits that no case may pass, beside CEGB's trees asked by our engine and fixed sets of features, refitted
    hand      prices of 1 and 50, beside a person who picks features and grows a forest on them

One JSON line per setting, seed and step; with --out a run that was cut off goes on where it stopped, and --again fits only ours anew.
Tables in the end; the last line is JSON.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.frontier_parts import plots, report, tables
from benchmarks.frontier_parts.anchors import anchors
from benchmarks.frontier_parts.checks import check
from benchmarks.frontier_parts.hand import hand, hand_anchors
from benchmarks.frontier_parts.hard import hard, hard_anchors
from benchmarks.frontier_parts.lines import Key, Lines
from benchmarks.frontier_parts.operating import operated
from benchmarks.frontier_parts.ours import NotThereError, ours
from benchmarks.frontier_parts.settings import BY_HAND, SETTINGS, Setting

Step = Callable[[tables.Data, int, bool], dict[str, Any]]  # of a draw, threads, strict
STEPS: dict[str, dict[str, Step]] = {
    "anchors": {"anchors": anchors},
    "cf": {"cf": operated},
    "ours": {"ours": ours},
    "hard": {"hard anchors": hard_anchors, "hard": hard},
    "hand": {"hand anchors": hand_anchors, "hand": hand},
}
OWN = ("ours", "hard", "hand")  # steps that fit ours


def main() -> None:
    options = arguments()
    if options.check:
        check(options.data, options.threads)
        return
    lines = Lines(options.out, ordinal=options.ordinal, strict=options.strict)
    for setting in options.settings:
        steps = steps_of(setting, options.parts)
        for seed in range(min(options.seeds or 10, tables.seeds(options.data, setting))) if steps else ():
            measure(setting, seed, steps, lines, options)
    show(lines, options.settings)
    if options.plots:
        plots.draw_all(lines, options.settings, options.plots)
    print(json.dumps(report.summary(lines, options.settings)))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="table:costs, several with commas")
    parser.add_argument("--seeds", type=int, help="at most so many; by default 10 below 1,000 rows, else 3")
    parser.add_argument("--parts", default=",".join(STEPS))
    parser.add_argument("--ordinal", action="store_true", help="no feature is categorical, for anybody")
    parser.add_argument("--strict", action="store_true", help="ours sees training rows alone")
    parser.add_argument("--again", action="store_true", help="fit ours anew where it is measured already")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plots", type=Path)
    parser.add_argument("--check", action="store_true", help="that rivals are told right, and nothing else")
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    unknown = [part for part in options.parts if part not in STEPS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}: the parts are {', '.join(STEPS)}")
    known = [*SETTINGS, *BY_HAND]
    options.settings = [Setting.of(name) for name in options.only.split(",")] if options.only else known
    strangers = [str(setting) for setting in options.settings if setting not in known]
    if strangers:
        parser.error(f"no setting {', '.join(strangers)}: the settings are {', '.join(map(str, known))}")
    return options


def steps_of(setting: Setting, parts: list[str]) -> dict[str, Step]:
    """A price list for picking by hand is for that part alone."""
    return {name: step for part in parts if (part == "hand") == (setting in BY_HAND) for name, step in STEPS[part].items()}


def measure(setting: Setting, seed: int, steps: dict[str, Step], lines: Lines, options: argparse.Namespace) -> None:
    """Every step of this draw that is not measured yet."""
    due = [name for name in steps if Key(str(setting), seed, name) not in lines or (options.again and name in OWN)]
    data = tables.draw(options.data, setting, seed, options.ordinal) if due else None
    for name in due:
        start = time.perf_counter()
        try:
            found = steps[name](data, options.threads, options.strict)
        except NotThereError as error:
            print(f"{setting} seed {seed}, {name}: {error}", flush=True)
            continue
        took = round(time.perf_counter() - start, 1)
        lines.add(Key(str(setting), seed, name), {"took": took, **found})
        print(f"{setting} seed {seed}, {name}: {told(found)} in {took} s", flush=True)


def told(found: dict) -> str:
    if "rivals" in found:
        return ", ".join(f"{name} {one['area']:.4f}" for name, one in found["rivals"].items())
    return "; ".join(
        f"{percent} %: " + ", ".join(f"{name} {one['error']:.3f}" for name, one in rivals.items())
        for percent, rivals in found["budgets"].items()
    )


def show(lines: Lines, settings: list[Setting]) -> None:
    for table in (report.curves_table(lines, settings), *(report.budgets_table(lines, settings, step) for step in report.BESIDE)):
        if len(table) > 2:
            print("", *table, sep="\n")


if __name__ == "__main__":
    main()
