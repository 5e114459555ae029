"""Rows at some moment of their sessions, each judged by those trees only that it did not grow: what calibration is fitted on."""

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.pricing import empty
from frugal.models.kernels.serving.acquiring import ask_along, new_trails, walk_abreast
from frugal.models.kernels.serving.deciding import NEVER
from frugal.models.kernels.serving.telling import progress, tell_label
from frugal.models.kernels.serving.voting import elect, tally
from frugal.models.kernels.serving.walking import new_case


@kernel
def judge(forest, trail, prices, rows, budgets, weights, smoothings, labels, told, narrow, done):
    """Let each row be asked as the whole forest asks, within its budget; then let its trees, by its row of `weights`, say what they say.

    Fills the last four: the label, its told probability with each of the smoothings, and with the first how far its trees had come, and how
    many had come to their ends.
    """
    case, trails = new_case(forest, prices), new_trails(forest, trail)
    acquired = np.empty(len(forest.arity), np.bool_)
    judge_rows(forest, prices, rows, budgets, weights, smoothings, case, trails, acquired, labels, told, narrow, done)


@inlined
def judge_rows(forest, prices, rows, budgets, weights, smoothings, case, trails, acquired, labels, told, narrow, done):
    for r in range(len(rows)):
        case.state[:] = 0
        empty(case.basket)
        walk_abreast(forest, rows[r], trails)
        ask_along(forest, prices, case, rows[r], budgets[r], NEVER, trails, acquired)
        tally(forest, weights[r], case.position, case.totals)
        label = elect(forest, case.totals, case.votes)
        for k in range(len(smoothings)):
            tell_label(forest, label, smoothings[k], weights[r], case.position, case.wanted, case.totals, case.votes, case.probabilities)
            told[r, k] = case.probabilities[label]
        labels[r] = label
        narrow[r], done[r] = progress(forest, smoothings[0], weights[r], case.position, case.wanted)
