"""A reader: boosted trees that are grown on cases as they stand while they are served, everything not asked missing.

Every case gives several states: its last, and some earlier ones with the first few answers of its session. The trees that ask are made to
ask well; these are made to say well what is known.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.acquire import acquire_classes
from frugal.models.costs import MILLION, millionths
from frugal.models.decide import UNLIMITED
from frugal.models.ensemble import Ensemble
from frugal.models.flat import Flat
from frugal.models.growing.binning import MOST_BINS, Binning, sample_rows
from frugal.models.growing.boosting import Booster
from frugal.models.growing.grower import limits
from frugal.models.growing.targets import FREELY, constant, on_grid
from frugal.models.kernels.growth.questions import Bins
from frugal.models.kernels.marks import CUT, SOME_CATEGORIES
from frugal.models.kernels.serving import tracing
from frugal.models.learners.prepared import Prepared, Rows
from frugal.models.learners.progress import Tell, silent, told
from frugal.models.threads import in_threads, threads

FEW = 1000  # rows below which trees are small
MOST_ROWS = 100_000  # whose states a reader is grown on: five times as many cases
MANY = 10  # classes above which trees are fewer
LEARNING_RATE, L2, SUBSAMPLE = 0.1, 1.0, 0.7


class Size(NamedTuple):
    """How much a reader is grown, and on how many states of every case."""

    trees: int
    leaves: int
    rows: int  # on each side of a question at least
    earlier: int  # states before the last
    cut: int  # states of sessions that were cut short by a budget


def size_for(rows: int, classes: int) -> Size:
    e, c = EC
    if rows < FEW:
        return Size(60, 4, 10, e, c)
    return Size(60, 31, 20, 2, c) if classes > MANY else Size(100, 31, 20, e, c)


EC = (3, 1)


def grow(
    ensemble: Ensemble,
    prepared: Prepared,
    rows: Rows,
    n_jobs: int | None,
    *,
    cap: float | None = None,
    trend: NDArray[np.int8] = FREELY,
    tell: Tell = silent,
) -> Flat:
    """A reader for what an ensemble asks, grown on rows that the ensemble may have been grown on too."""
    size, jobs = size_for(len(rows.codes), rows.count), threads(n_jobs)
    rows = rows.some(sample_rows(len(rows.codes), MOST_ROWS, prepared.seed))
    binning = Binning.of(rows.codes, prepared.schema, MOST_BINS, jobs, prepared.seed)
    bins = binning.apply(rows.codes, prepared.schema, jobs, CUT, SOME_CATEGORIES)
    many = 1 + size.earlier + size.cut
    booster = Booster.of(
        _states(ensemble, bins, rows, size, cap, prepared.seed, n_jobs),
        binning,
        constant(prepared.costs),
        np.tile(rows.classes, many),
        rows.count,
        on_grid(np.tile(rows.weights / rows.weights.mean(), many)),
        loss="log",
        l2=L2,
        learning_rate=LEARNING_RATE,
        subsample=SUBSAMPLE,
        limits=limits(leaves=size.leaves, rows=size.rows),
        trend=trend,
        seed=prepared.seed,
        threads=jobs,
    )

    return Flat.of(told(booster.trees([0.0], size.trees), size.trees + 1, tell))


def turns(ensemble: Ensemble, codes: NDArray[np.float64], budgets: NDArray[np.int64], n_jobs: int | None) -> NDArray[np.int32]:
    """Per row and feature how many questions came before it within the row's budget, -1 where it was not asked."""
    turn = np.empty(codes.shape, np.int32)

    def work(part: slice) -> None:
        tracing.turns(ensemble.served, ensemble.trail, ensemble.prices, codes[part], budgets[part], turn[part])

    in_threads(work, len(codes), n_jobs)
    return turn


def _states(ensemble: Ensemble, bins: Bins, rows: Rows, size: Size, cap: float | None, seed: int, n_jobs: int | None) -> Bins:
    """All cases at the end of their sessions; then all at a moment before it, drawn for each, and again; then cut short by budgets."""
    random = np.random.default_rng((seed, 2**32 + 3))
    count = len(rows.codes)
    most = np.full(count, UNLIMITED if cap is None else millionths(cap, "the cap"))
    last = turns(ensemble, rows.codes, most, n_jobs)
    questions = last.max(axis=1, initial=-1) + 1
    views = [(last, questions)]
    views += [(last, (random.random(count) * questions).astype(np.int32)) for _ in range(size.earlier)]
    for _ in range(size.cut):
        spent = np.rint(acquire_classes(ensemble, rows.codes, cap, n_jobs=n_jobs).cost * MILLION)
        cut = turns(ensemble, rows.codes, (spent * random.random(count)).astype(np.int64), n_jobs)
        views.append((cut, cut.max(axis=1, initial=-1) + 1))
    return bins._replace(codes=np.concatenate([_seen(bins, turn, known) for turn, known in views], axis=1))


def _seen(bins: Bins, turn: NDArray[np.int32], known: NDArray[np.int32]) -> NDArray[np.uint8]:
    """The codes of the answers to the first questions of every case, all else missing."""
    asked = (turn >= 0) & (turn < known[:, None])
    return np.where(asked.T, bins.codes, bins.sizes[:, None]).astype(np.uint8)
