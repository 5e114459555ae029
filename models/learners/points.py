"""What a model says of rows that did not grow it, as they stood when they were served: at the end of their sessions and before.

How much a forest's shares are smoothed is chosen on these; with `points=True` told probabilities are calibrated on them too, and operating
points measured.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.acquire import acquire_classes
from frugal.models.calibrate import SUREST, States, fit
from frugal.models.costs import MILLION
from frugal.models.decide import UNLIMITED
from frugal.models.ensemble import Ensemble
from frugal.models.frontier import Tried, frontier_of, measure
from frugal.models.kernels.serving import judging
from frugal.models.kernels.serving.walking import AT_LEAVES
from frugal.models.learners.prepared import Prepared, Rows
from frugal.models.threads import in_threads

ENOUGH = 10_000  # rows: two numbers are fitted
FEW = 2_000  # rows that a smoothing is chosen on
FOLDS = 5
JUDGED = 4_000  # rows that are to be judged, if there are so many: what a point costs is then known to one or two per cent
SMOOTHINGS = np.array([0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32])  # in cases
CALM = 0.1  # of the penalty on how far a smoothing is from one case: a few rows should not move it much


class Judged(NamedTuple):
    """Rows, and trees of which each row is told by those only that it did not grow."""

    ensemble: Ensemble
    rows: Rows
    apart: NDArray[np.float64]  # rows x trees: 1 where the tree has not seen the row; or one row of weights for all


def folds(rows: int, seed: int, most: int | None = None) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(rows to grow on, at most so many; rows to judge): a fifth is judged, and where rows are few another and another."""
    shuffled = np.random.default_rng((seed, 2**32 + 1)).permutation(rows)
    for k in range(min(FOLDS, rows, -(-JUDGED * FOLDS // max(1, rows)))):
        judged = np.zeros(rows, bool)
        judged[shuffled[k::FOLDS]] = True
        others = shuffled[~judged[shuffled]][:most]
        if len(others):
            yield np.sort(others), np.sort(shuffled[k::FOLDS][:ENOUGH])


def out_of_bag(drawn: Callable[[int], NDArray[np.float64]], trees: int, rows: int, seed: int) -> tuple[Any, NDArray[np.float64]]:
    """(some rows, rows x trees: 1 where the tree's sample left the row out); rows that every tree has seen are not among them."""
    some = np.random.default_rng((seed, 2**32 + 1)).permutation(rows)[:ENOUGH]
    apart = np.empty((len(some), trees))
    for tree in range(trees):
        apart[:, tree] = drawn(tree)[some] == 0
    judged = apart.any(axis=1)
    return some[judged], apart[judged]


def likeliest_smoothing(judged: Judged, seed: int, n_jobs: int | None) -> float:
    """The smoothing under which the truth is likeliest, of rows at the end of their sessions and cut short once; the ensemble has that of
    one case."""
    some = judged.rows.some(np.arange(min(len(judged.rows.codes), FEW)))  # they are in no order
    few = Judged(judged.ensemble, some, judged.apart[: len(some.codes)])
    found = [_told(few, budgets, SMOOTHINGS * judged.ensemble.smoothing, n_jobs) for budgets in _budgets(few, 1, seed, n_jobs)]
    surprise = np.zeros(len(SMOOTHINGS))
    for labels, told, *_ in found:
        chance = np.where((labels == some.classes)[:, None], told, 1 - told)
        surprise -= some.weights @ np.log(np.maximum(chance, SUREST)) / some.weights.mean()
    best = int(np.argmin(surprise + CALM * np.log2(SMOOTHINGS) ** 2))
    return float(SMOOTHINGS[best] * judged.ensemble.smoothing)


def states(judged: Judged, seed: int, n_jobs: int | None) -> States:
    """Every row at the end of its session, and twice cut short by budgets drawn between nothing and what the session would have cost.

    Sessions here go on to the leaves: a forest is decided early where it is right about a row, which the trees that grew on that row are
    too often, so that to stop there would give the truth away.
    """
    one = np.array([judged.ensemble.smoothing])
    parts = [_told(judged, budgets, one, n_jobs) for budgets in _budgets(judged, 2, seed, n_jobs)]
    rows = judged.rows
    return States.joined([States(labels, told[:, 0], far, done, labels == rows.classes, rows.weights) for labels, told, far, done in parts])


def of_judged(
    found: Sequence[Judged],
    served: Ensemble,
    prepared: Prepared,
    budget: float | None = None,
    cap: float | None = None,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """The calibration and the frontier that some rows show, judged by trees that they did not grow: settings of the model that is served.

    A point costs what it cost on those rows, or what it costs the served model on the rows it was grown on, if that is more: which cases
    are sure enough differs a little between models, and a mean that somebody aims at is not to be passed. `budget` is on the mean of the
    cases, and chooses the default point; `cap` is on each case, and no point goes beyond it.
    """
    if not found:
        return {}
    calibration = fit(States.joined([states(one, prepared.seed, n_jobs) for one in found]), prepared.rows.count).as_dict()
    tried = Tried.joined([_tried(one, calibration, cap, n_jobs) for one in found])
    some = prepared.rows.some(np.random.default_rng((prepared.seed, 2**32 + 1)).permutation(len(prepared.rows.codes))[:ENOUGH])
    again = _tried(Judged(served, some, served.served.weights[None]), calibration, cap, n_jobs)
    return {"calibration": calibration, "frontier": frontier_of(tried.as_dear_as(again), budget, prepared.penalties is not None)}


def _tried(judged: Judged, calibration: dict[str, Any], cap: float | None, n_jobs: int | None) -> Tried:
    ensemble, rows = judged.ensemble.with_settings(calibration=calibration), judged.rows
    return measure(ensemble, rows.codes, rows.classes, rows.weights, apart=judged.apart, cap=cap, n_jobs=n_jobs)


def of_models(
    found: Sequence[tuple[Ensemble, Rows]],
    served: Ensemble,
    prepared: Prepared,
    budget: float | None = None,
    cap: float | None = None,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """The same of whole models, each with rows that grew none of its trees."""
    judged = [Judged(ensemble, rows, ensemble.served.weights[None]) for ensemble, rows in found]
    return of_judged(judged, served, prepared, budget, cap, n_jobs)


def _budgets(judged: Judged, cuts: int, seed: int, n_jobs: int | None) -> list[NDArray[np.int64]]:
    """Per row: none, and so many drawn between nothing and what its session would cost."""
    cost = np.rint(acquire_classes(judged.ensemble, judged.rows.codes, to_leaves=True, n_jobs=n_jobs).cost * MILLION)
    shares = np.random.default_rng((seed, 2**32 + 2)).random((cuts, len(cost)))
    return [np.full(len(cost), UNLIMITED), *(cost * shares).astype(np.int64)]


def _told(judged: Judged, budgets: NDArray[np.int64], smoothings: NDArray[np.float64], n_jobs: int | None) -> tuple[NDArray[Any], ...]:
    """Per row its label, what is told of it with each smoothing, how far its trees had come and how many were at their ends."""
    ensemble, codes = judged.ensemble, judged.rows.codes
    forest, count = ensemble.served._replace(stop=AT_LEAVES), len(codes)
    labels, told, (far, done) = np.empty(count, np.int32), np.empty((count, len(smoothings))), np.empty((2, count))

    def work(part: slice) -> None:
        speak = judged.apart[part] if len(judged.apart) > 1 else judged.apart
        judging.judge(
            forest,
            ensemble.trail,
            ensemble.prices,
            codes[part],
            budgets[part],
            speak,
            smoothings,
            labels[part],
            told[part],
            far[part],
            done[part],
        )

    in_threads(work, count, n_jobs)
    return labels, told, far, done
