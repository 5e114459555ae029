"""Many full rows: what sessions would have asked, paid and said. The same as `decide` step by step, in far less time.

A full row shows where every tree ends, so each row is walked once, all trees abreast (one tree's wait for memory is another's turn), and
its trails are kept:

    tree 0   age . thal . vessels . leaf        what a session does is to move along the trails: an answer lets every tree that
    tree 1   thal . chol . leaf                 stands on that feature go on to the next one that is not answered
    tree 2   age . chol . leaf

The ends also show the only label that can be decided early, since "decided" never changes a label. So at each step only its lead over one
rival is kept up to date; all classes are looked at once that lead is beyond doubt.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import NONE
from frugal.models.kernels.pricing import buy, empty, marginal
from frugal.models.kernels.serving.choosing import most_votes_per_price
from frugal.models.kernels.serving.deciding import sure, tell_case
from frugal.models.kernels.serving.nodes import step
from frugal.models.kernels.serving.noting import NOTHING, STANDING, new_notes, note_question, note_standing
from frugal.models.kernels.serving.reading import close_eyes, reads
from frugal.models.kernels.serving.voting import beats, decided, elect, lead_at, tally
from frugal.models.kernels.serving.walking import AT_LEAVES, ENDED, VOTES, WHEN_DECIDED, is_plain, new_case

UNLIMITED = np.iinfo(np.int64).max


class Trails(NamedTuple):
    """The way of every tree, and who stands where on it."""

    start: NDArray[np.int64]  # per tree: where its way starts in the next two
    nodes: NDArray[np.uint32]  # unsigned, because a signed index is tested for wrapping around
    asks: NDArray[np.int32]  # the feature of each of those nodes; LEAF or ENDED at the end
    ends: NDArray[np.int32]  # per tree: the depth of its end
    at: NDArray[np.int64]  # per tree: where on its way it stands
    active: NDArray[np.uint32]  # the trees that are still walking
    last: NDArray[np.uint32]  # per tree: the node it has come to, where only the end matters
    met: NDArray[np.bool_]  # per feature: on some tree's way
    leads: NDArray[np.int64]  # per tree: what it adds to the lead of the label over the rival
    answered: NDArray[np.bool_]  # per feature
    score: NDArray[np.float64]  # per feature: waiting vote weight per price, where prices are fixed
    first: NDArray[np.int32]  # per feature: the first of the trees that wait for it
    following: NDArray[np.int32]  # per tree: the next that waits for the same


@kernel
def new_trails(forest, trail):
    trees, features = len(forest.roots), len(forest.arity)
    return Trails(
        trail,
        np.empty(trail[-1], np.uint32),
        np.empty(trail[-1], np.int32),
        np.empty(trees, np.int32),
        np.empty(trees, np.int64),
        np.empty(trees, np.uint32),
        np.empty(trees, np.uint32),
        np.empty(features, np.bool_),
        np.empty(trees, np.int64),
        np.empty(features, np.bool_),
        np.empty(features, np.float64),
        np.empty(features, np.int32),
        np.empty(trees, np.int32),
    )


@kernel
def acquire(forest, trail, prices, rows, budget, confidence, cap, labels, probabilities, votes, costs, acquired):
    """For every row: label, probabilities, votes, cost and the features bought; fills the last five arrays."""
    acquire_rows(
        forest,
        prices,
        rows,
        budget,
        confidence,
        cap,
        new_case(forest, prices),
        new_trails(forest, trail),
        new_notes(0),
        labels,
        probabilities,
        votes,
        costs,
        acquired,
    )


@inlined
def acquire_rows(forest, prices, rows, budget, confidence, cap, case, trails, notes, labels, probabilities, votes, costs, acquired):
    unlimited = budget == UNLIMITED and cap == UNLIMITED and confidence > 1.0
    order_free = forest.stop == AT_LEAVES and unlimited and prices.order_free
    for r in range(len(rows)):
        row = rows[r]
        begin(forest, case)
        if order_free:
            walk_to_ends(forest, row, trails, case.position)
            case.wanted[:] = ENDED
            costs[r] = buy_all(prices, case, row, trails, acquired[r])
            look_at_met(forest.reader, row, trails, case.sight)
        else:
            walk_abreast(forest, row, trails)
            costs[r], _ = ask_along(
                forest, prices, case, row, budget, confidence, cap, trails, acquired[r], NOTHING, notes, NONE, forest.weights
            )
        labels[r] = tell_case(forest, case)
        for c in range(forest.classes):
            votes[r, c], probabilities[r, c] = case.votes[c], case.probabilities[c]


@inlined
def begin(forest, case):
    """A case of which nothing is known."""
    case.state[:] = 0
    empty(case.basket)
    close_eyes(forest.reader, case.sight)


@inlined
def look_at_met(reader, row, trails, sight):
    """Show the reader what was asked on the way to the ends."""
    if reads(reader):
        for feature in range(len(row)):
            sight.seen[feature] = row[feature] if trails.met[feature] else np.nan


@kernel
def predict(forest, trail, prices, rows, labels, probabilities):
    """Every tree walked to its end for every row; fills the last two arrays."""
    predict_rows(forest, rows, new_case(forest, prices), new_trails(forest, trail), labels, probabilities)


@inlined
def predict_rows(forest, rows, case, trails, labels, probabilities):
    case.wanted[:] = ENDED
    for r in range(len(rows)):
        walk_to_ends(forest, rows[r], trails, case.position)
        look_at_met(forest.reader, rows[r], trails, case.sight)
        labels[r] = tell_case(forest, case)
        for c in range(forest.classes):
            probabilities[r, c] = case.probabilities[c]


@inlined
def walk_to_ends(forest, row, trails, position):
    """Every tree one step at a time to its end, where only that matters and what was met on the way; fills `position`."""
    if is_plain(forest, row):
        run_on(forest, True, row, trails)
    else:
        run_on(forest, False, row, trails)
    for t in range(len(position)):
        position[t] = trails.last[t]


@inlined
def run_on(forest, plain, row, trails):
    last, active = trails.last, trails.active
    trails.met[:] = False
    count = len(forest.roots)
    for t in range(count):
        last[t] = forest.roots[t]
        active[t] = t
    while count:
        left = 0
        for k in range(count):
            t = active[k]
            i = last[t]
            feature = forest.nodes[i]["feature"]
            if feature < 0:
                continue
            trails.met[np.uint64(feature)] = True
            child = step(forest, plain, i, row[np.uint64(feature)])
            if not plain and child < 0:
                continue
            last[t] = child
            active[left] = t
            left += 1
        count = left


@inlined
def walk_abreast(forest, row, trails):
    """Every tree one step at a time until all are at their ends."""
    if is_plain(forest, row):
        walk_on(forest, True, row, trails)
    else:
        walk_on(forest, False, row, trails)


@inlined
def walk_on(forest, plain, row, trails):
    start, nodes, asks, active = trails.start, trails.nodes, trails.asks, trails.active
    count = len(forest.roots)
    for t in range(count):
        nodes[start[t]] = forest.roots[t]
        active[t] = t
    depth = 0
    while count:
        left = 0
        for k in range(count):
            t = active[k]
            here = np.uint64(start[t] + depth)
            i = nodes[here]
            feature = forest.nodes[i]["feature"]
            asks[here] = feature
            if feature < 0:
                trails.ends[t] = depth
                continue
            child = step(forest, plain, i, row[np.uint64(feature)])
            if not plain and child < 0:  # noted behind the node, which is where the tree stays
                nodes[here + np.uint64(1)] = i
                asks[here + np.uint64(1)] = ENDED
                trails.ends[t] = depth + 1
                continue
            nodes[here + np.uint64(1)] = child
            active[left] = t
            left += 1
        count = left
        depth += 1


@inlined
def buy_all(prices, case, row, trails, acquired):
    """Buy every feature on the trails that is there; gives what they cost."""
    spent = np.int64(0)
    for feature in range(len(acquired)):
        acquired[feature] = trails.met[feature] and row[feature] == row[feature]
        if acquired[feature]:
            spent += marginal(prices, case.basket, feature)
            buy(prices, case.basket, feature)
    return spent


@inlined
def ask_along(forest, prices, case, row, budget, confidence, cap, trails, acquired, noting, notes, truth, weights):
    """Ask and buy until the decision is to stop; leaves `case` where it stands then, and gives (what was spent, how many questions)."""
    fixed = prices.groups == 0 and budget == UNLIMITED
    label, rival, lead = NONE, NONE, np.int64(0)
    if forest.stop == WHEN_DECIDED:
        label = label_at_ends(forest, case, trails)
    count = line_up_all(forest, prices, case, trails)
    spent, questions = np.int64(0), 0
    while count:
        if forest.stop == WHEN_DECIDED and (rival == NONE or beats(forest, label, rival, lead)):
            if decided(forest, case):
                break
            rival = strongest_rival(case, label)
            lead = sum_leads(forest, case, label, rival, trails)
        if confidence <= 1.0 and sure(forest, case, confidence):
            break
        if not forest.order & VOTES:
            feature = affordable_in_turn(prices, case, budget - spent)
        elif fixed:
            feature = best_score(case, trails.score, count)
        else:
            feature, _ = most_votes_per_price(prices, case, count, budget - spent)
        if feature == NONE:
            break
        price = marginal(prices, case.basket, feature)
        if price > cap - spent:
            break
        if noting == STANDING:
            note_standing(forest, case, weights, truth, notes, questions, spent)
        if noting != NOTHING:
            note_question(notes, questions, feature, price)
        questions += 1
        if row[feature] == row[feature]:
            spent += price
            buy(prices, case.basket, feature)
            acquired[feature] = True
            if reads(forest.reader):
                case.sight.seen[feature] = row[feature]
        count = drop(case, feature, count)
        count, gained = move_on(forest, prices, case, feature, label, rival, trails, count)
        lead += gained
    if noting == STANDING:
        note_standing(forest, case, weights, truth, notes, questions, spent)
    return spent, questions


@inlined
def line_up_all(forest, prices, case, trails):
    """Put every tree at its root; gives how many features are asked for."""
    case.waiting[:] = 0
    trails.first[:] = NONE
    trails.answered[:] = False
    count = 0
    for t in range(len(trails.at)):
        trails.at[t] = trails.start[t]
        case.position[t], case.wanted[t] = trails.nodes[trails.start[t]], trails.asks[trails.start[t]]
        count = line_up(forest, prices, case, t, trails, count)
    return count


@inlined
def label_at_ends(forest, case, trails):
    """The label once all is known; leaves every tree at its end."""
    for t in range(len(trails.ends)):
        case.position[t] = trails.nodes[trails.start[t] + trails.ends[t]]
    tally(forest, forest.weights, case.position, case.totals)
    return elect(forest, case.totals, case.votes)


@inlined
def strongest_rival(case, label):
    """The class that can still reach most; `decided` has just filled the bounds."""
    rival = NONE
    for c in range(len(case.greatest)):
        if c != label and (rival == NONE or case.greatest[c] > case.greatest[rival]):
            rival = c
    return rival


@inlined
def sum_leads(forest, case, label, rival, trails):
    lead = np.int64(0)
    for t in range(len(trails.leads)):
        trails.leads[t] = lead_at(forest, t, case.position[t], case.wanted[t], label, rival)
        lead += trails.leads[t]
    return lead


@inlined
def move_on(forest, prices, case, feature, label, rival, trails, count):
    """Let every tree that waited for a feature go on; gives how many features are asked for now, and the change of the lead."""
    trails.answered[feature] = True
    gained = np.int64(0)
    t = trails.first[feature]
    while t != NONE:
        after = trails.following[t]
        k = np.uint64(trails.at[t] + 1)
        while trails.asks[k] >= 0 and trails.answered[np.uint64(trails.asks[k])]:
            k += np.uint64(1)
        trails.at[t] = k
        case.position[t], case.wanted[t] = trails.nodes[k], trails.asks[k]
        count = line_up(forest, prices, case, t, trails, count)
        if rival != NONE:
            lead = lead_at(forest, t, case.position[t], case.wanted[t], label, rival)
            gained += lead - trails.leads[t]
            trails.leads[t] = lead
        t = after
    return count, gained


@inlined
def line_up(forest, prices, case, t, trails, count):
    """Let tree t wait for the feature it wants; gives how many features are asked for now."""
    feature = case.wanted[t]
    if feature < 0:
        return count
    if case.waiting[feature] == 0:
        case.asked[count] = feature
        count += 1
    case.waiting[feature] += forest.shares[t]
    price = prices.cost[feature]
    trails.score[feature] = case.waiting[feature] / max(float(price), prices.floor) if price > 0 else np.inf
    trails.following[t] = trails.first[feature]
    trails.first[feature] = t
    return count


@inlined
def best_score(case, score, count):
    """Order "votes" where every feature is a candidate at a fixed price."""
    best = case.asked[0]
    for k in range(1, count):
        feature = case.asked[k]
        if score[feature] > score[best] or (score[feature] == score[best] and feature < best):
            best = feature
    return best


@inlined
def affordable_in_turn(prices, case, remaining):
    for t in range(len(case.wanted)):
        if case.wanted[t] >= 0 and marginal(prices, case.basket, case.wanted[t]) <= remaining:
            return case.wanted[t]
    return NONE


@inlined
def drop(case, feature, count):
    """Take a feature off the list of those asked for; gives how many are left."""
    case.waiting[feature] = 0
    for k in range(count):
        if case.asked[k] == feature:
            case.asked[k] = case.asked[count - 1]
            return count - 1
    return count
