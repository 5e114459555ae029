"""One case, from its answers to a decision."""

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import LEAF, NONE
from frugal.models.kernels.pricing import buy, marginal
from frugal.models.kernels.serving.choosing import below, most_votes_per_price, new_search, next_in_turn
from frugal.models.kernels.serving.nodes import any_step
from frugal.models.kernels.serving.reading import reads
from frugal.models.kernels.serving.telling import sureness, tell
from frugal.models.kernels.serving.voting import decided
from frugal.models.kernels.serving.walking import AHEAD, ANSWERED, BOUGHT, ENDED, PENDING, VOTES, WHEN_DECIDED, new_case

ASK, WAIT, AT_LEAF, DECIDED, CONFIDENT, BUDGET, EXHAUSTED, AIM = range(8)
NEVER = 2.0  # a confidence that no probability reaches


@kernel
def decide(forest, prices, row, state, remaining, confidence, capped):
    """Decide one case afresh; no question is asked that costs more than `capped`.

    Gives (verdict, feature, its price now, the price it was weighed by, trees waiting for it, vote weight under way, label,
    probabilities and votes, what each tree wants).
    """
    case = new_case(forest, prices)
    offers = np.zeros(len(state), np.int64)
    verdict, feature, cost, price, undecided, label = decide_case(
        forest, prices, row, state, remaining, confidence, capped, case, offers, new_search(forest)
    )
    trees = offers[feature] if verdict == ASK else 0
    return verdict, feature, cost, price, trees, undecided, label, case.told, case.wanted


@inlined
def decide_case(forest, prices, row, state, remaining, confidence, capped, case, offers, search):
    for feature in range(len(state)):
        case.state[feature] = state[feature]
        if state[feature] & BOUGHT:
            buy(prices, case.basket, feature)
    look(forest.reader, row, case.state, case.sight)
    undecided = 0.0
    for t in range(len(forest.roots)):
        walk(forest, case, row, t)
        if case.wanted[t] >= 0:
            undecided += forest.weights[t]
            offer(forest, case, row, t, offers, search)
    verdict, feature, price = judge(forest, prices, case, row, remaining, confidence, capped, search)
    label = tell_case(forest, case)
    cost = marginal(prices, case.basket, feature) if verdict == ASK else 0
    return verdict, feature, cost, price, undecided, label


@inlined
def look(reader, row, state, sight):
    """Show the reader what is answered."""
    if reads(reader):
        for feature in range(len(state)):
            if state[feature] & ANSWERED:
                sight.seen[feature] = row[feature]


@inlined
def tell_case(forest, case):
    return tell(
        forest, forest.smoothing, forest.weights, case.position, case.wanted, case.totals, case.votes, case.sight, case.probabilities
    )


@inlined
def offer(forest, case, row, t, offers, search):
    """Let tree t wait for the feature it wants and, where that is pending and may be ordered ahead, for all it may need below."""
    wanted = case.wanted[t]
    offers[wanted] += 1
    case.waiting[wanted] += forest.shares[t]
    if forest.order & AHEAD and case.state[wanted] & PENDING:
        for k in range(below(forest, case, row, t, search)):
            offers[search.found[k]] += 1
            case.waiting[search.found[k]] += forest.shares[t]


@inlined
def walk(forest, case, row, t):
    """Let tree t walk from its root as far as the answers allow."""
    i = np.int64(forest.roots[t])
    while True:
        feature = forest.nodes[i]["feature"]
        if feature < 0 or not case.state[feature] & ANSWERED:
            case.position[t], case.wanted[t] = i, feature
            return
        child = any_step(forest, i, row[feature])
        if child < 0:
            case.position[t], case.wanted[t] = i, ENDED
            return
        i = child


@inlined
def judge(forest, prices, case, row, remaining, confidence, capped, search):
    """(verdict, feature to ask, the price it was weighed by) for a case as it stands."""
    under_way, ended, pending = False, False, False
    for t in range(len(case.wanted)):
        wanted = case.wanted[t]
        under_way |= wanted > LEAF
        ended |= wanted == ENDED
        pending |= wanted > LEAF and case.state[wanted] & PENDING > 0
    nothing = np.int64(0)
    if not under_way:
        return EXHAUSTED if ended else AT_LEAF, NONE, nothing
    if forest.stop == WHEN_DECIDED and decided(forest, case):
        return DECIDED, NONE, nothing
    if confidence <= 1.0 and sure(forest, case, confidence):
        return CONFIDENT, NONE, nothing
    if not forest.order & VOTES:
        feature, price = next_in_turn(forest, prices, case, row, remaining, search)
    else:
        feature, price = most_votes_per_price(prices, case, list_asked(case), remaining)
    if feature != NONE and marginal(prices, case.basket, feature) <= capped:
        return ASK, feature, price
    if pending:  # what is on its way is paid for
        return WAIT, NONE, nothing
    return BUDGET if feature == NONE else AIM, NONE, nothing


@inlined
def sure(forest, case, confidence):
    """Whether it is sure enough of the label."""
    return sureness(forest, tell_case(forest, case), case.probabilities) >= confidence


@inlined
def list_asked(case):
    """Fill `case.asked` with the features that trees wait for: how many."""
    count = 0
    for feature in range(len(case.waiting)):
        if case.waiting[feature] > 0:
            case.asked[count] = feature
            count += 1
    return count
