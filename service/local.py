"""The commands that need no server: train a model from a table, predict with it, look into it."""

import argparse
import csv
import inspect
import io
import sys
import warnings
from typing import Any

from models import Ensemble, acquire, dump, load
from models.costs import CostModel
from models.curves import Point, plot
from models.learners import LEARNERS
from models.learners.progress import Progress, Tell
from models.table import read_table
from service.parameters import parse_value
from service.reading import read_file
from service.reporting import drawn, report
from service.training import run
from service.training.pricing import from_model
from service.training.spec import Spec

OWN = ("costs", "categorical", "n_jobs", "random_state", "budget")  # parameters that have options of their own


def train(options: argparse.Namespace) -> str:
    """Grow a model on part of a table, write it, and say how it does on the rest."""
    table = read_file(options.data)
    if options.label not in table.columns:
        raise ValueError(f"{options.data} has no column {options.label!r} to learn: its columns are {', '.join(table.columns[:40])}")
    params = _params(options)
    spec = Spec(
        dataset=options.data,
        label=options.label,
        learner=options.learner,
        params=params,
        budget=options.budget,
        costs=_costs(options, [name for name in table.columns if name != options.label]),
        test_fraction=options.test_fraction,
        seed=options.seed,
    )
    bar = _bar(options) if sys.stderr.isatty() else None
    done = run.train(table, spec, bar or (lambda progress: None), options.jobs)
    if bar:
        print(file=sys.stderr)
    for warning in done.warnings:
        warnings.warn(warning, stacklevel=1)
    ensemble = done.ensemble
    if options.plot and "curve" in ensemble.metrics:
        _plot(ensemble, options)
    dump(ensemble, options.out)
    paid = {price.feature: price.cost for price in ensemble.costs.prices}
    return f"{report(len(ensemble), ensemble.metrics, paid)}\n\nwritten to {options.out}"


def _params(options: argparse.Namespace) -> dict[str, Any]:
    known = inspect.signature(LEARNERS[options.learner]).parameters
    if options.budget is not None and "budget" not in known:
        raise ValueError(f"{options.learner} takes no budget: leave --budget out, or use budget-forest")
    params = {}
    for given in options.set or []:
        name, equals, text = given.partition("=")
        if not equals or name not in known or name in OWN:
            allowed = ", ".join(name for name in known if name not in OWN)
            raise ValueError(f"--set {given}: expected NAME=VALUE, where {options.learner} knows {allowed}")
        params[name] = parse_value(text)
    return params


def _costs(options: argparse.Namespace, features: list[str]) -> dict[str, dict[str, Any]]:
    """The price list, which must price every feature; 1 each without one."""
    return from_model(CostModel.of(CostModel.from_csv(options.costs), features)) if options.costs else {}


def _bar(options: argparse.Namespace) -> Tell:
    """A line on a terminal that shows trees, mean cost so far and the budget."""
    limit = "" if options.budget is None else f" of {options.budget:,.2f}"

    def show(progress: Progress) -> None:
        trees = "" if progress.trees is None else f", {progress.trees} trees"
        spent = "" if progress.mean_cost is None else f", mean cost {progress.mean_cost:,.2f}{limit}"
        print(f"\r{drawn(progress.fraction)} {progress.phase}{trees}{spent}   ", end="", file=sys.stderr, flush=True)

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
