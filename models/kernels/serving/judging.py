"""Rows at some moment of their sessions, each judged by those trees only that it did not grow: what calibration is fitted on."""

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import NONE
from frugal.models.kernels.serving.acquiring import UNLIMITED, ask_along, begin, new_trails, walk_abreast
from frugal.models.kernels.serving.deciding import NEVER
from frugal.models.kernels.serving.noting import NOTHING, new_notes
from frugal.models.kernels.serving.telling import progress, tell, tell_label
from frugal.models.kernels.serving.walking import new_case


@kernel
def judge(forest, trail, prices, rows, budgets, weights, smoothings, labels, told, narrow, done):
    """Let each row be asked as the whole forest asks, within its budget; then let its trees, by its row of `weights`, say what they say.

    One row of `weights` is for all. Fills the last four: the label, its told probability with each of the smoothings (one, where there is a
    reader), and with the first how far its trees had come, and how many had come to their ends.
    """
    case, trails = new_case(forest, prices), new_trails(forest, trail)
    acquired = np.empty(len(forest.arity), np.bool_)
    notes = new_notes(0)
    judge_rows(forest, prices, rows, budgets, weights, smoothings, case, trails, notes, acquired, labels, told, narrow, done)


@inlined
def judge_rows(forest, prices, rows, budgets, weights, smoothings, case, trails, notes, acquired, labels, told, narrow, done):
    for r in range(len(rows)):
        begin(forest, case)
        walk_abreast(forest, rows[r], trails)
        speak = weights[r if len(weights) > 1 else 0]
        ask_along(forest, prices, case, rows[r], budgets[r], NEVER, UNLIMITED, trails, acquired, NOTHING, notes, NONE, forest.weights)
        label = tell(
            forest,
            smoothings[0],
            speak,
            case.position,
            case.wanted,
            case.totals,
            case.votes,
            case.sight,
            case.probabilities,
        )
        told[r, 0] = case.probabilities[label]
        for k in range(1, len(smoothings)):
            tell_label(forest, label, smoothings[k], speak, case.position, case.wanted, case.totals, case.votes, case.probabilities)
            told[r, k] = case.probabilities[label]
        labels[r] = label
        narrow[r], done[r] = progress(forest, smoothings[0], speak, case.position, case.wanted)
