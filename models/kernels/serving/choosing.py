"""Which feature to ask for next."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import LEAF, NONE
from frugal.models.kernels.pricing import marginal
from frugal.models.kernels.serving.nodes import NO_TABLE, any_step
from frugal.models.kernels.serving.walking import AHEAD, ANSWERED, PENDING


@inlined
def next_in_turn(forest, prices, case, row, remaining, search):
    """Order "sequential", the papers': (the first unfinished tree's feature that is a candidate, its price)."""
    for t in range(len(case.wanted)):
        feature = case.wanted[t]
        if feature < 0:
            continue
        if not case.state[feature] & PENDING:
            price = marginal(prices, case.basket, feature)
            if price <= remaining:
                return feature, price
        elif forest.order & AHEAD:
            for k in range(below(forest, case, row, t, search)):
                price = marginal(prices, case.basket, search.found[k])
                if price <= remaining:
                    return search.found[k], price
    return NONE, np.int64(0)


@inlined
def most_votes_per_price(prices, case, count, remaining):
    """Order "votes": (of the first `count` in `case.asked` the candidate with the most waiting vote weight per unit of price, the price
    it was weighed by).

    A group that is not entered competes as one: the waiting weight of all its candidates over the price of buying those by the cheapest
    way in; if it wins, the best of them is asked. Free candidates come first; ties go to the lower feature.
    """
    best, best_score, best_price = NONE, -1.0, np.int64(0)
    case.group_best[:] = NONE
    for k in range(count):
        feature = case.asked[k]
        price = marginal(prices, case.basket, feature)
        if price > remaining or case.state[feature] & PENDING:
            continue
        score = case.waiting[feature] / max(float(price), prices.floor) if price > 0 else np.inf
        g = prices.group[feature]
        if price > 0 and g >= 0 and not case.basket.entered[g]:
            join_group(prices, case, g, feature, score)
        elif score > best_score or (score == best_score and feature < best):
            best, best_score, best_price = feature, score, price
    for g in range(prices.groups):
        if case.group_best[g] == NONE:
            continue
        price = case.group_inside[g] + case.group_entry[g]
        score = case.group_waiting[g] / max(float(price), prices.floor)
        if score > best_score or (score == best_score and case.group_best[g] < best):
            best, best_score, best_price = case.group_best[g], score, price
    return best, best_price


@inlined
def join_group(prices, case, g, feature, score):
    """Count a candidate into its group: waiting weight, price inside, cheapest way in, best candidate so far."""
    entry = prices.cost[feature] - prices.cost_in_group[feature]
    if case.group_best[g] == NONE:
        case.group_waiting[g] = 0.0
        case.group_inside[g] = 0
        case.group_entry[g] = entry
        case.group_score[g] = -1.0
    case.group_waiting[g] += case.waiting[feature]
    case.group_inside[g] += prices.cost_in_group[feature]
    case.group_entry[g] = min(case.group_entry[g], entry)
    if score > case.group_score[g] or (score == case.group_score[g] and feature < case.group_best[g]):
        case.group_best[g], case.group_score[g] = feature, score


class Search(NamedTuple):
    """Room for looking below a node."""

    stack: NDArray[np.int32]
    listed: NDArray[np.bool_]  # per feature
    found: NDArray[np.int32]


@kernel
def new_search(forest):
    nodes, features = (len(forest.nodes), len(forest.arity)) if forest.order & AHEAD else (0, 0)
    return Search(np.empty(nodes, np.int32), np.empty(features, np.bool_), np.empty(features, np.int32))


@inlined
def below(forest, case, row, t, search):
    """Fill `search.found` with the features, neither answered nor pending, that tree t may still need below the node it waits on, in
    preorder: Turney's "order all that may be needed". Gives how many."""
    search.listed[:] = False
    count, depth = 0, 1
    search.stack[0] = case.position[t]
    while depth:
        depth -= 1
        i = search.stack[depth]
        feature = forest.nodes[i]["feature"]
        if feature == LEAF:
            continue
        if case.state[feature] & ANSWERED:  # one way on
            child = any_step(forest, i, row[feature])
            if child >= 0:
                search.stack[depth] = child
                depth += 1
            continue
        if not case.state[feature] & PENDING and not search.listed[feature]:
            search.listed[feature] = True
            search.found[count] = feature
            count += 1
        for child in range(last_child(forest, i), forest.nodes[i]["first"] - 1, -1):
            search.stack[depth] = child
            depth += 1
    return count


@inlined
def last_child(forest, i):
    node = forest.nodes[i]
    if node["table"] == NO_TABLE:
        return np.int64(node["first"]) + 1
    last = np.int64(node["missing"])
    for k in range(forest.arity[node["feature"]]):
        last = max(last, node["first"] + np.int64(forest.outcomes[node["table"] + k]))
    return last
