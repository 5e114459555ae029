"""The part "anchors": rivals that exist already, each a set of points, and what their learners reach with everything bought."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.frontier_parts import catboosts, cegb, forests
from benchmarks.frontier_parts.curves import Point, chosen, summed_up
from benchmarks.frontier_parts.tables import Data

Family = tuple[str, int]  # a penalty and a number of leaves
Known = dict[Family, dict[float, list[Point]]]  # by tradeoff
PLAIN = [cegb.Recipe(leaves=leaves, trees=trees) for leaves in cegb.LEAVES for trees in (100, 300)]


def anchors(data: Data, threads: int, _strict: bool) -> dict[str, Any]:
    """One line of the report, without its head."""
    sets, took = {}, {}
    for name, points in every_set(data, threads):
        sets[name], took[name] = points
    rivals = {name: summed_up(chosen([nothing(data), *points]), data.everything) for name, points in sets.items()}
    for name, points in sets.items():
        rivals[name] |= {"models": len(points), "seconds": round(took[name], 1)}
    return {"rivals": rivals, "everything_bought": everything_bought(data, threads)}


def nothing(data: Data) -> Point:
    """The commonest class of the training rows, for everybody and for free."""
    said = np.bincount(data.train.classes).argmax()
    return Point(0.0, float(np.mean(data.validation.classes != said)), 0.0, data.test.classes != said)


def every_set(data: Data, threads: int) -> Iterator[tuple[str, tuple[list[Point], float]]]:
    yield "cegb ten", timed(lambda: ten(data, threads))
    known: Known = {}
    yield "cegb fair", timed(lambda: fair(data, threads, known))
    yield "cegb filled", timed(lambda: filled(data, threads, known))
    yield "catboost", timed(lambda: catboosts.points(data, threads))
    yield "rf", timed(lambda: forests.points(data, threads))


def timed(work: Callable[[], list[Point]]) -> tuple[list[Point], float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def ten(data: Data, threads: int) -> list[Point]:
    return [cegb.points(data, cegb.trained(data, recipe, threads), (recipe.trees,))[0] for recipe in recipes_of_ten()]


def recipes_of_ten() -> list[cegb.Recipe]:
    return [cegb.Recipe(penalty, tradeoff) for penalty, tradeoffs in cegb.TEN.items() for tradeoff in tradeoffs]


def fair(data: Data, threads: int, known: Known) -> list[Point]:
    """Nine tradeoffs of each family, kept in `known`."""
    for penalty in cegb.TREES:
        for leaves in cegb.LEAVES:
            known[penalty, leaves] = {tradeoff: family_points(data, penalty, leaves, tradeoff, threads) for tradeoff in cegb.GRID}
    return together(known)


def filled(data: Data, threads: int, known: Known) -> list[Point]:
    """The same with up to four more tradeoffs each, where neighbours are far apart in cost."""
    for (penalty, leaves), family in known.items():
        for _ in range(cegb.FILLS):
            between = widest_gap({tradeoff: points[-1].validation_cost / data.everything for tradeoff, points in family.items()})
            if between is None:
                break
            family[between] = family_points(data, penalty, leaves, between, threads)
    return together(known)


def together(known: Known) -> list[Point]:
    return [point for family in known.values() for points in family.values() for point in points]


def widest_gap(shares: dict[float, float]) -> float | None:
    """The tradeoff in the middle of the two whose models are furthest apart in cost, if that is far."""
    gaps = [
        (abs(shares[low] - shares[high]), (low * high) ** 0.5)
        for low, high in pairwise(sorted(shares))
        if min(shares[low], shares[high]) < cegb.DEAREST and high / low > cegb.CLOSEST
    ]
    gap, middle = max(gaps, default=(0.0, 0.0))
    return middle if gap > cegb.WIDE else None


def family_points(data: Data, penalty: str, leaves: int, tradeoff: float, threads: int) -> list[Point]:
    cuts = cegb.cuts(data, penalty)
    return cegb.points(data, cegb.trained(data, cegb.Recipe(penalty, tradeoff, leaves, max(cuts)), threads), cuts)


def everything_bought(data: Data, threads: int) -> dict[str, float]:
    """Test errors: LightGBM in the size that is best on validation rows, and the forest."""
    boosters = [cegb.trained(data, recipe, threads) for recipe in PLAIN]
    best = min(boosters, key=lambda booster: np.mean(cegb.labels(booster, data.validation.codes) != data.validation.classes))
    return {
        "lightgbm": float(np.mean(cegb.labels(best, data.test.codes) != data.test.classes)),
        "rf": forests.error_of_all(data, threads),
    }
