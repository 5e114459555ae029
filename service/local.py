"""The commands that need no server: train a model from a table, predict with it, look into it."""

import argparse
import csv
import inspect
import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from models import Ensemble, acquire, dump, load
from models.costs import CostModel
from models.curves import Point, plot
from models.learners import LEARNERS
from models.table import read_table
from service.parameters import parse_value
from service.reading import read_file
from service.reporting import drawn, report
from service.training.measuring import measured

OWN = ("costs", "categorical", "n_jobs", "random_state", "budget")  # parameters that have options of their own


def train(options: argparse.Namespace) -> str:
    """Grow a model on part of a table, write it, and say how it does on the rest."""
    table = read_file(options.data)
    if options.label not in table.columns:
        raise ValueError(f"{options.data} has no column {options.label!r} to learn: its columns are {', '.join(table.columns[:40])}")
    labels = table.labels(options.label)
    X = table.only([name for name in table.columns if name != options.label])
    costs = CostModel.from_csv(options.costs) if options.costs else None
    learner = _learner(options, costs)
    order = np.random.default_rng(options.seed).permutation(len(X))
    held = int(len(X) * options.test_fraction)
    test, kept = np.sort(order[:held]), np.sort(order[held:])
    bar = _bar(options, getattr(learner, "max_trees", 1))
    learner.fit(X.rows(kept), labels[kept], **({"progress": bar} if bar else {}))
    ensemble: Ensemble = learner.ensemble_
    if bar:
        print(file=sys.stderr)
    if held:
        ensemble = measured(ensemble, X.rows(test), labels[test], options.jobs)
    if held and options.plot:
        _plot(ensemble, options)
    dump(ensemble, options.out)
    paid = {price.feature: price.cost for price in ensemble.costs.prices}
    return f"{report(len(ensemble), ensemble.metrics, paid)}\n\nwritten to {options.out}"


def _learner(options: argparse.Namespace, costs: CostModel | None) -> Any:
    kind = LEARNERS[options.learner]
    known = {name: p.default for name, p in inspect.signature(kind).parameters.items()}
    settings: dict[str, Any] = {"costs": costs, "n_jobs": options.jobs, "random_state": options.seed}
    if options.budget is not None:
        if "budget" not in known:
            raise ValueError(f"{options.learner} takes no budget: leave --budget out, or use budget-forest")
        settings["budget"] = options.budget
    for given in options.set or []:
        name, equals, text = given.partition("=")
        if not equals or name not in known or name in OWN:
            allowed = ", ".join(name for name in known if name not in OWN)
            raise ValueError(f"--set {given}: expected NAME=VALUE, where {options.learner} knows {allowed}")
        settings[name] = parse_value(text)
    return kind(**settings)


def _bar(options: argparse.Namespace, most: int) -> Callable[[float, int, float], None] | None:
    """A line on a terminal that shows trees, mean cost so far and the budget."""
    if options.learner != "budget-forest" or not sys.stderr.isatty():
        return None

    def show(alpha: float, trees: int, cost: float) -> None:
        spent = "" if cost != cost else f", mean cost {cost:,.2f}" + (f" of {options.budget:,.2f}" if options.budget is not None else "")
        print(f"\r{drawn(trees / most)} {trees}/{most} trees, alpha {alpha:g}{spent}   ", end="", file=sys.stderr, flush=True)

    return show


def _plot(ensemble: Ensemble, options: argparse.Namespace) -> None:
    by: dict[str, list[Point]] = {"trees": [], "budget": []}
    for point in ensemble.metrics["curve"]:
        by[point["by"]].append(Point(**{name: value for name, value in point.items() if name != "by"}))
    titled = {"number of trees": by["trees"], "hard budgets": by["budget"]}
    plot(titled, options.plot, f"{options.learner}: error against cost on {ensemble.metrics['rows']:,} held-out rows")


def predict(options: argparse.Namespace) -> str:
    """Label, cost and features bought of every row of a table."""
    ensemble = load(options.model)
    table = read_file(options.data).only(ensemble.schema.names)
    found = acquire(ensemble, read_table(table, schema=ensemble.schema).codes, options.budget)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "label", "cost", "features"])
    for r in range(len(table)):
        bought = [name for name, got in zip(ensemble.schema.names, found.acquired[r], strict=True) if got]
        writer.writerow([r, found.labels[r], f"{found.cost[r]:.6f}".rstrip("0").rstrip("."), " ".join(bought)])
    return text.getvalue().rstrip("\n")


def show(options: argparse.Namespace) -> str:
    """A model file's settings and prices, or one of its trees."""
    ensemble = load(options.model)
    return ensemble.text(options.tree) if options.tree is not None else _summary(ensemble)


def _summary(ensemble: Ensemble) -> str:
    lines = [
        f"{len(ensemble)} trees, {len(ensemble.flat.feature):,} nodes" + (f", grown by {ensemble.learner}" if ensemble.learner else ""),
        f"vote {ensemble.vote}, order {ensemble.order}, stop {ensemble.stop}",
        f"classes: {', '.join(map(str, ensemble.classes[:12]))}" + (", ..." if len(ensemble.classes) > 12 else ""),
        "",
        f"{'feature':24} {'kind':12} {'cost':>10} {'in group':>10}  group",
    ]
    for feature, price in zip(ensemble.schema.features, ensemble.costs.prices, strict=True):
        inside = "" if price.cost_in_group is None else f"{price.cost_in_group:,.2f}"
        unused = "" if feature.name in ensemble.used else "  (no tree asks for it)"
        lines.append(f"{feature.name:24} {feature.kind:12} {price.cost:>10,.2f} {inside:>10}  {price.group or ''}{unused}".rstrip())
    return "\n".join(lines)
