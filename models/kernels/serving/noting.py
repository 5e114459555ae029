"""A session written down step by step: what was asked in which order, and how the case stood before each question and after the last."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.serving.telling import sureness, tell

NOTHING, ORDER, STANDING = range(3)  # what is written down: each has what those before it have


class Notes(NamedTuple):
    """Of one session. With q questions there are q + 1 moments; `price` is that of the question that follows."""

    feature: NDArray[np.int32]
    price: NDArray[np.int64]
    spent: NDArray[np.int64]
    sure: NDArray[np.float64]  # of the label, as a confidence is compared with it
    mistake: NDArray[np.float64]  # 1 where the label is wrong, or what saying it costs
    doubt: NDArray[np.float64]  # the mistake of who says each class as often as it is likely
    chance: NDArray[np.float64]  # of the true class


@kernel
def new_notes(features):
    moments = features + 1
    return Notes(
        np.empty(moments, np.int32),
        np.empty(moments, np.int64),
        np.empty(moments, np.int64),
        np.empty(moments, np.float64),
        np.empty(moments, np.float64),
        np.empty(moments, np.float64),
        np.empty(moments, np.float64),
    )


@inlined
def note_question(notes, k, feature, price):
    notes.feature[k], notes.price[k] = feature, price


@inlined
def note_standing(forest, case, weights, truth, notes, k, spent):
    label = tell(forest, forest.smoothing, weights, case.position, case.wanted, case.totals, case.votes, case.sight, case.probabilities)
    notes.spent[k] = spent
    notes.sure[k] = sureness(forest, label, case.probabilities)
    notes.chance[k] = case.probabilities[truth]
    if len(forest.penalties) == 0:
        notes.mistake[k], notes.doubt[k] = 1.0 if label != truth else 0.0, 1.0 - case.probabilities[truth]
        return
    notes.mistake[k], notes.doubt[k] = forest.penalties[label, truth], 0.0
    for c in range(forest.classes):
        notes.doubt[k] += case.probabilities[c] * forest.penalties[c, truth]
