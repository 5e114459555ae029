"""The commands that need no server: train a model from a table, look into it."""

import argparse
import math
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from frugal.models import Ensemble, dump, load
from frugal.models.costs import CostModel
from frugal.models.curves import Point, figure_for, plot
from frugal.models.frontier import Frontier
from frugal.models.learners import LEARNERS
from frugal.models.learners.parameters import Aside, parameters_of
from frugal.models.learners.progress import Progress, Tell
from frugal.models.naming import meant
from frugal.models.schema import NUMERIC
from frugal.models.table import why_doubtful
from frugal.service.commands.parameters import parse_settings
from frugal.service.commands.reporting import drawn, report
from frugal.service.tables import Choices, notice, read_file
from frugal.service.tables import Columns as Table
from frugal.service.tables.remarks import told
from frugal.service.training import run
from frugal.service.training.pricing import from_model
from frugal.service.training.spec import Spec

POINTS = 14  # lines of a table of operating points


def train(options: argparse.Namespace) -> str:
    """Grow a model on part of a table, write it, and say how it does on the rest."""
    params = _params(options)
    for path in (options.out, options.plot):
        check_writable(path)
    if options.plot:
        figure_for(options.plot)
    table = read_file(options.data, choices=Choices(options.drop or (), options.numeric or (), options.missing or ()))
    _check_label(table, options)
    for text in told(notice(table, options.label)):
        warnings.warn(text, stacklevel=1)
    spec = Spec(
        dataset=options.data,
        label=options.label,
        learner=options.learner,
        params=params,
        budget=options.budget,
        costs=_costs(options, table),
        penalties=options.penalties,
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
    dump(ensemble, options.out)
    if options.plot and "curve" in ensemble.metrics:
        _plot(ensemble, options)
    paid = {price.feature: price.cost or 0.0 for price in ensemble.costs.prices}
    return f"{report(len(ensemble), ensemble.metrics, paid)}\n\nwritten to {options.out}"


def check_writable(path: str | None) -> None:
    """Before hours of work, not after: it is no folder, and a file can be made where it will stand."""
    if path is None:
        return
    if not (folder := Path(path).absolute().parent).is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {folder}")
    if path.endswith(os.sep) or os.path.isdir(path):
        raise ValueError(f"{path} cannot be written: it is a folder; name a file in it")
    try:
        if stat.S_ISREG(_mode(path)):
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".frugal-"):
                pass
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}") from None


def _mode(path: str) -> int:
    """What stands there, such as a pipe or a terminal; a file, where nothing does."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return stat.S_IFREG


def _check_label(table: Table, options: argparse.Namespace) -> None:
    """There, and no regression target."""
    if options.label in table.left_out:
        raise ValueError(f"--drop leaves out {options.label!r}, which is the label: leave it out of --drop, or learn another column")
    if options.label not in table.columns:
        known = f"{meant(options.label, table.columns)}: its columns are {', '.join(table.columns[:40])}"
        raise ValueError(f"{options.data} has no column {options.label!r} to learn{known}")
    if len(table.columns) == 1:
        raise ValueError(f"{options.data} has no column beside {options.label!r} to learn from")
    classes = len(set(table.labels(options.label).tolist()))
    for text in why_doubtful(options.label, classes) if table[options.label].kind == NUMERIC else ():
        warnings.warn(text, stacklevel=1)


def _params(options: argparse.Namespace) -> dict[str, Any]:
    known = {parameter.name: parameter.kind for parameter in parameters_of(LEARNERS[options.learner])}
    if options.budget is not None and "budget" not in known:
        raise ValueError(f"{options.learner} takes no budget: leave --budget out, or use frontier")
    allowed = [name for name, kind in known.items() if not isinstance(kind, Aside)]
    params = parse_settings(options.set or (), f"NAME=VALUE, where {options.learner} knows {', '.join(allowed)}")
    for name in params:
        if name not in allowed:
            raise ValueError(f"--set {name}: no such parameter{meant(name, allowed)}; {options.learner} knows {', '.join(allowed)}")
    return params


def _costs(options: argparse.Namespace, table: Table) -> dict[str, dict[str, Any]]:
    """The price list, as far as it is for features; what it does not name costs 1."""
    if not options.costs:
        return {}
    unasked = {options.label, *table.left_out}
    listed = CostModel(price for price in CostModel.from_csv(options.costs).prices if price.feature not in unasked)
    if not len(listed):
        warnings.warn(f"{options.costs} prices no feature: each costs 1", stacklevel=1)
    return from_model(CostModel.of(listed, [name for name in table.columns if name != options.label]))


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
    if aims := ensemble.metrics.get("aims"):  # then neither is how the model is to be stopped
        asked = [Point(row["error"], row["mean_cost"], row["mean_cost"], len(ensemble)) for row in aims]
        fixed = [Point(row["fixed_set_error"], row["aim"], row["aim"], len(ensemble)) for row in aims]
        titled = {"aims": asked, "hard budgets": by["budget"], "best fixed set of features": fixed}
    title = f"{options.learner}: error against cost on {ensemble.metrics['rows']:,} held-out rows"
    plot(titled, options.plot, title, levels=_levels(ensemble.metrics))


def _levels(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Errors of what asks nothing, and of what asks everything."""
    if "total_cost" in metrics or "instead" not in metrics:  # where mistakes have prices the points are no shares
        return {}
    instead = metrics["instead"]
    return {
        "always the commonest class": metrics["commonest_class_error"],
        "a forest, everything bought": instead["forest"],
        "boosted trees, everything bought": instead["boosted"],
    }


def show(options: argparse.Namespace) -> str:
    """A model file's settings, prices and operating points, or one of its trees."""
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
        cost = "never" if price.cost is None else f"{price.cost:,.2f}"
        lines.append(f"{feature.name:24} {feature.kind:12} {cost:>10} {inside:>10}  {price.group or ''}{unused}".rstrip())
    return "\n".join([*lines, *([] if ensemble.frontier is None else ["", *_frontier(ensemble.frontier, ensemble.penalties is not None)])])


def _frontier(frontier: Frontier, priced_mistakes: bool) -> list[str]:
    """The operating points, or some of them spread over all; the default one is always there."""
    shown = sorted({*(round(i) for i in np.linspace(0, len(frontier.points) - 1, POINTS)), frontier.default})
    some = "" if len(shown) == len(frontier.points) else f", {len(shown)} of {len(frontier.points)}"
    lines = [
        f"operating points{some}: when to stop asking, and what that came to on cases that did not grow the trees. A case is over",
        "as soon as its label is sure enough, or before it costs more than it may (-: no such limit).",
        "",
        f"  {'mean cost':>12} {'mistakes cost' if priced_mistakes else 'wrong':>14} {'sure enough at':>16} {'spend at most':>14}",
    ]
    for i in shown:
        point = frontier.points[i]
        error = f"{point.error:,.2f}" if priced_mistakes else f"{100 * point.error:.1f} %"
        sure = "-" if point.confidence == 1 else f"{100 * point.confidence:.1f} %"
        cap = "-" if point.cap is None else f"{point.cap:,.2f}"
        lines.append(f"{'*' if i == frontier.default else ' '} {point.cost:>12,.2f} {error:>14} {sure:>16} {cap:>14}")
    aim = math.ceil(frontier.points[len(frontier.points) // 2].cost)
    return [*lines, "", f"* unless you say otherwise; --aim {aim} takes the last one of a mean cost up to {aim}"]
