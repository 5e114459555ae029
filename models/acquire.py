"""acquire and predict: what sessions over many full rows would have said and paid."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import MILLION
from frugal.models.decide import _capped, _confidence, _remaining
from frugal.models.ensemble import Ensemble
from frugal.models.frontier import Stopping, stop_at
from frugal.models.kernels.serving import acquiring
from frugal.models.kernels.serving.walking import AT_LEAVES
from frugal.models.threads import in_threads

TO_THE_END = Stopping(None, None)


@dataclass(frozen=True, slots=True)
class Acquisition:
    """Row by row: the label, probabilities and votes a session would have ended with, what it would have paid, and for which features."""

    labels: NDArray[Any]
    probabilities: NDArray[np.float64]  # rows x classes
    votes: NDArray[np.float64]  # rows x classes: the shares of the vote
    cost: NDArray[np.float64]
    acquired: NDArray[np.bool_]  # rows x features


def acquire(
    ensemble: Ensemble,
    X: Any,
    budget: float | None = None,
    *,
    aim: float | None = None,
    confidence: float | None = None,
    cap: float | None = None,
    to_leaves: bool = False,
    n_jobs: int | None = None,
) -> Acquisition:
    """Drive every row of a table of codes (nan: missing) to the end of its session.

    A missing cell is an unavailable answer: it is asked for and costs nothing. `budget` is a hard limit per row, `aim` a mean cost over
    rows like those in training. A model with operating points stops by one of them, unless `confidence` or `cap` say when. The same as
    `decide` step by step; `to_leaves` walks every tree to its end, whatever the ensemble's stop; `n_jobs` threads share the rows (None: 1,
    -1: all).
    """
    if not to_leaves and cap is None:
        stopping = stop_at(ensemble.frontier, budget, aim, confidence)
    elif aim is not None:
        raise ValueError("aim and cap both say when to stop: give one of them" if cap is not None else "aim stops before the leaves")
    else:
        stopping = Stopping(confidence, cap)
    found = acquire_classes(ensemble, X, budget, stopping, to_leaves=to_leaves, n_jobs=n_jobs)
    return replace(found, labels=_named(ensemble, found.labels))


def acquire_classes(
    ensemble: Ensemble,
    X: Any,
    budget: float | None = None,
    stopping: Stopping = TO_THE_END,
    *,
    to_leaves: bool = False,
    n_jobs: int | None = None,
) -> Acquisition:
    """`acquire` with positions in `classes` for labels; no operating point is looked for."""
    table = codes_of(ensemble, X)
    rows, classes = len(table), len(ensemble.classes)
    labels, costs = np.empty(rows, np.int32), np.empty(rows, np.int64)
    probabilities, votes = np.empty((rows, classes)), np.empty((rows, classes))
    acquired = np.zeros((rows, len(ensemble.schema)), np.bool_)
    limit, sure, cap = _remaining(budget, 0), _confidence(stopping.confidence), _capped(stopping.cap, 0)
    forest = ensemble.served._replace(stop=AT_LEAVES) if to_leaves else ensemble.served

    def work(part: slice) -> None:
        acquiring.acquire(
            forest,
            ensemble.trail,
            ensemble.prices,
            table[part],
            limit,
            sure,
            cap,
            labels[part],
            probabilities[part],
            votes[part],
            costs[part],
            acquired[part],
        )

    in_threads(work, rows, n_jobs)
    return Acquisition(labels, probabilities, votes, costs / MILLION, acquired)


def predict(ensemble: Ensemble, X: Any, n_jobs: int | None = None) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """(labels, probabilities) of full rows, every tree walked to its end."""
    labels, probabilities = predict_classes(ensemble, X, n_jobs)
    return _named(ensemble, labels), probabilities


def predict_classes(ensemble: Ensemble, X: Any, n_jobs: int | None = None) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """`predict` with positions in `classes` for labels."""
    table = codes_of(ensemble, X)
    labels, probabilities = np.empty(len(table), np.int32), np.empty((len(table), len(ensemble.classes)))

    def work(part: slice) -> None:
        acquiring.predict(ensemble.served, ensemble.trail, ensemble.prices, table[part], labels[part], probabilities[part])

    in_threads(work, len(table), n_jobs)
    return labels, probabilities


def codes_of(ensemble: Ensemble, X: Any) -> NDArray[np.float64]:
    """A checked table of codes, as the kernels take it."""
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    table = np.ascontiguousarray(X, np.float64)
    if not table.flags.writeable:
        table = table.copy()  # kernels are compiled for arrays that can be written, and would be compiled once more
    ensemble.schema.check_codes(table)
    return table


def _named(ensemble: Ensemble, labels: NDArray[np.int32]) -> NDArray[Any]:
    classes = np.array(ensemble.classes)
    if classes.tolist() != list(ensemble.classes) or len({type(label) for label in ensemble.classes}) > 1:
        classes = np.empty(len(ensemble.classes), object)
        classes[:] = ensemble.classes
    return classes[labels]
