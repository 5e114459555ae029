"""Sessions of many rows, to their ends, written down: in which order features were asked, and what stopping earlier would have been worth.

How sure a model must be, and how much it may spend on a case, are tried out for all values at once: a session that is written down shows
where each pair of them would have ended it.
"""

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import NONE
from frugal.models.kernels.serving.acquiring import UNLIMITED, ask_along, begin, new_trails, walk_abreast
from frugal.models.kernels.serving.deciding import NEVER
from frugal.models.kernels.serving.noting import ORDER, STANDING, new_notes
from frugal.models.kernels.serving.walking import new_case

COST, MISTAKE, DOUBT, SURPRISE, EARLY = range(5)  # what is summed per point
RAREST = 1e-15  # the least probability that surprise is counted of


@kernel
def turns(forest, trail, prices, rows, budgets, turn):
    """Fill in per row and feature how many questions came before it, NONE where it was not asked."""
    case, trails, notes = new_case(forest, prices), new_trails(forest, trail), new_notes(len(forest.arity))
    acquired = np.empty(len(forest.arity), np.bool_)
    turns_of_rows(forest, prices, rows, budgets, case, trails, notes, acquired, turn)


@inlined
def turns_of_rows(forest, prices, rows, budgets, case, trails, notes, acquired, turn):
    for r in range(len(rows)):
        begin(forest, case)
        walk_abreast(forest, rows[r], trails)
        _, questions = ask_along(
            forest, prices, case, rows[r], budgets[r], NEVER, UNLIMITED, trails, acquired, ORDER, notes, NONE, forest.weights
        )
        for f in range(turn.shape[1]):
            turn[r, f] = NONE
        for k in range(questions):
            turn[r, notes.feature[k]] = k


@kernel
def measure(forest, trail, prices, rows, truths, weights, apart, budget, confidences, caps, sums):
    """Add up what every pair of a confidence (rising) and a cap gives on some rows; `sums` is confidences x caps x (COST, ...).

    `apart` has per row the weights of the trees that may speak of it, or one row for all.
    """
    case, trails, notes = new_case(forest, prices), new_trails(forest, trail), new_notes(len(forest.arity))
    acquired = np.empty(len(forest.arity), np.bool_)
    ends = np.empty(len(caps), np.int64)
    measure_rows(forest, prices, rows, truths, weights, apart, budget, confidences, caps, case, trails, notes, acquired, ends, sums)


@inlined
def measure_rows(forest, prices, rows, truths, weights, apart, budget, confidences, caps, case, trails, notes, acquired, ends, sums):
    for r in range(len(rows)):
        begin(forest, case)
        walk_abreast(forest, rows[r], trails)
        speak = apart[r if len(apart) > 1 else 0]
        _, questions = ask_along(
            forest, prices, case, rows[r], budget, NEVER, UNLIMITED, trails, acquired, STANDING, notes, truths[r], speak
        )
        for j in range(len(caps)):
            ends[j] = 0
            while ends[j] < questions and notes.spent[ends[j]] + notes.price[ends[j]] <= caps[j]:
                ends[j] += 1
        sure_at = 0
        for i in range(len(confidences)):
            while sure_at < questions and notes.sure[sure_at] < confidences[i]:
                sure_at += 1
            for j in range(len(caps)):
                add_up(notes, min(sure_at, ends[j]), questions, weights[r], sums[i, j])


@inlined
def add_up(notes, k, questions, weight, sums):
    """What stopping at moment k gives."""
    sums[COST] += weight * notes.spent[k]
    sums[MISTAKE] += weight * notes.mistake[k]
    sums[DOUBT] += weight * notes.doubt[k]
    sums[SURPRISE] -= weight * np.log(max(notes.chance[k], RAREST))
    sums[EARLY] += weight if k < questions else 0.0


@kernel
def shares(forest, trail, prices, rows, truths, weights, money, removed):
    """Add up per feature what was paid for it, and how much of the doubt it took away, from question to question to the end."""
    case, trails, notes = new_case(forest, prices), new_trails(forest, trail), new_notes(len(forest.arity))
    acquired = np.empty(len(forest.arity), np.bool_)
    shares_of_rows(forest, prices, rows, truths, weights, case, trails, notes, acquired, money, removed)


@inlined
def shares_of_rows(forest, prices, rows, truths, weights, case, trails, notes, acquired, money, removed):
    for r in range(len(rows)):
        begin(forest, case)
        walk_abreast(forest, rows[r], trails)
        _, questions = ask_along(
            forest, prices, case, rows[r], UNLIMITED, NEVER, UNLIMITED, trails, acquired, STANDING, notes, truths[r], forest.weights
        )
        for k in range(questions):
            money[notes.feature[k]] += weights[r] * (notes.spent[k + 1] - notes.spent[k])
            removed[notes.feature[k]] += weights[r] * (notes.doubt[k] - notes.doubt[k + 1])
