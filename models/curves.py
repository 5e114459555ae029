"""Cost against error: by number of trees and by hard budgets, the frontier, and the picture. Also how the Yahoo experiment ranks."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models.acquire import acquire
from frugal.models.ensemble import Ensemble


@dataclass(frozen=True, slots=True)
class Point:
    """One way of predicting: how often it is wrong and what it costs."""

    error: float
    mean_cost: float
    max_cost: float
    trees: int
    budget: float | None = None


def by_trees(ensemble: Ensemble, X: Any, y: Any, trees: Iterable[int] | None = None, n_jobs: int | None = None) -> list[Point]:
    """Error and cost of the first 1, 2, ... trees (or of as many as `trees` names); X holds codes, y labels."""
    sizes = range(1, len(ensemble) + 1) if trees is None else trees
    return [_measure(ensemble.prefix(size), X, y, None, n_jobs) for size in sizes]


def by_budget(ensemble: Ensemble, X: Any, y: Any, budgets: Iterable[float], n_jobs: int | None = None) -> list[Point]:
    """Error and cost under hard limits per case."""
    return [_measure(ensemble, X, y, budget, n_jobs) for budget in budgets]


def _measure(ensemble: Ensemble, X: Any, y: Any, budget: float | None, n_jobs: int | None) -> Point:
    found = acquire(ensemble, X, budget, n_jobs=n_jobs)
    wrong = float(np.mean(found.labels != np.asarray(y)))
    return Point(wrong, float(found.cost.mean()), float(found.cost.max()), len(ensemble), budget)


def frontier(points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in both error and mean cost, by rising cost.

    Examples
    --------
    >>> a, b, c = Point(0.3, 1, 1, 1), Point(0.2, 2, 2, 2), Point(0.25, 3, 3, 3)
    >>> frontier([c, b, a]) == [a, b]
    True
    """
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.mean_cost, p.error)):
        if not best or point.error < best[-1].error:
            best.append(point)
    return best


def leaf_confidence(ensemble: Ensemble, X: Any, label: Any) -> NDArray[np.float64]:
    """The confidence of the Yahoo experiment: the share of a class among all training cases in the leaves that a case reaches."""
    found = acquire(ensemble.with_settings(vote="counts", stop="leaf"), X, to_leaves=True)
    return np.asarray(found.votes[:, ensemble.classes.index(label)])


def precision_at_5(relevance: Sequence[float], relevant: Sequence[bool], query: Sequence[Any]) -> float:
    """The mean over queries of (position of the first irrelevant document among the top five - 1) / 5, or 1 if there is none.

    Of a query with fewer than five documents, those that are lacking count as irrelevant. Ties keep the order given.

    Examples
    --------
    >>> precision_at_5([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], [True, True, False, True, True, True], ["q"] * 6)
    0.4
    """
    scores, truth, queries = np.asarray(relevance, float), np.asarray(relevant, bool), np.asarray(query)
    if not len(scores) == len(truth) == len(queries) or not len(scores):
        raise ValueError(f"{len(scores)} scores, {len(truth)} truths, {len(queries)} queries: expected as many of each, at least one")
    marks = []
    for one in np.unique(queries):
        mine = queries == one
        top = truth[mine][np.argsort(-scores[mine], kind="stable")][:5]
        marks.append(5 if len(top) == 5 and top.all() else int(np.argmin(np.append(top, False))))
    return float(np.mean(marks)) / 5


def plot(
    curves: Mapping[str, Sequence[Point]],
    path: str | Path,
    title: str = "",
    unit: str = "mean cost per case",
    levels: Mapping[str, float] | None = None,
) -> None:
    """Draw error against mean cost: every point, and a line through those that none of the same name beats; `levels` are errors to compare
    with, whatever they cost. The ending of `path` says whether PNG or SVG."""
    figure = figure_for(path)(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        best = frontier(points)
        (line,) = axes.plot([p.mean_cost for p in best], [p.error for p in best], marker="o", markersize=4, linewidth=1.4, label=name)
        axes.plot([p.mean_cost for p in points], [p.error for p in points], "o", markersize=3, alpha=0.35, color=line.get_color())
    for number, (name, error) in enumerate((levels or {}).items()):
        axes.axhline(error, color="grey", linestyle=("--", ":", "-.")[number % 3], linewidth=1, label=name)
    axes.set_xlabel(unit)
    axes.set_ylabel("error")
    axes.set_title(title, fontsize=11)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(curves) + len(levels or {}) > 1:
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)


def figure_for(path: str | Path) -> Any:
    """What draws a plot of this name; ValueError where nothing does."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(f"plots need matplotlib: {sys.executable} -m pip install matplotlib") from None
    if Path(path).suffix not in (".png", ".svg"):
        raise ValueError(f"{path}: a plot's name ends in .png or .svg")
    return Figure
