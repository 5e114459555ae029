"""Prices in context while a tree grows: what a feature would cost at a node.

    CONSTANT   its price, whatever else is bought
    PATH       its price given what the path to the node has bought, and what was bought before the tree began
    MODEL      its price given what all trees so far have bought, times the number of cases: who asks first pays for all
    CASES      the sum over the node's cases of what each would really pay, given what that case owns: for sums of scores, where money is
               subtracted. A question marks its cases' features paid at once, so that below it they are free.

A *purse* per case is a hard limit: what a case cannot pay it is not asked, so it stays behind where such a question is asked.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined
from frugal.models.kernels.growth.rules import DIVIDE, SQUARE
from frugal.models.kernels.marks import NONE
from frugal.models.kernels.pricing import Basket, Prices, buy, marginal

MILLION = 1e6  # prices are in millionths
CONSTANT, PATH, MODEL, CASES = range(4)
NOTHING, IN_GROUP, WHOLE = range(3)  # what a case owes for a feature


class Context(NamedTuple):
    """What a question is paid with."""

    kind: int
    prices: Prices
    basket: Basket  # PATH: what was bought before the tree began; MODEL: what was bought so far, changed while the tree grows
    cases: float  # MODEL: how many a price is paid for
    owes: NDArray[np.uint8]  # CASES: features x rows, NOTHING where the value is missing; changed while the tree grows
    purse: NDArray[np.int64]  # what each case may still spend, in millionths; changed too; empty: no limit


@inlined
def set_fees(rule, context, node, i, basket, dues, fees):
    """What each feature is weighed by at a node. A price that a score is divided by is never below the floor."""
    prices = context.prices
    if context.kind == CASES:
        for f in range(len(fees)):
            fees[f] = (dues[f, 0] * prices.cost_in_group[f] + dues[f, 1] * prices.cost[f]) / MILLION
        return
    for f in range(len(fees)):
        basket.bought[f] = context.basket.bought[f]
    for g in range(len(basket.entered)):
        basket.entered[g] = context.basket.entered[g]
    above = node.parent[i] if context.kind == PATH else NONE
    while above != NONE:
        buy(prices, basket, node.feature[above])
        above = node.parent[above]
    floor = 0.0
    if rule.price == DIVIDE or rule.price == SQUARE:
        floor = prices.floor if prices.floor > 0.0 else MILLION
    times = context.cases if context.kind == MODEL else 1.0
    for f in range(len(fees)):
        fees[f] = times * max(float(marginal(prices, basket, f)), floor) / MILLION


@inlined
def add_dues(context, f, at, begin, end, sign, dues):
    """Add up what those cases of a node owe for a feature who can pay it."""
    owes = context.owes[f]
    for k in range(begin, end):
        due = owes[np.uint32(at.rows[k])]
        if due != NOTHING and can_pay(context, f, at.rows[k]):
            dues[due - 1] += sign * at.weights[k]


@inlined
def can_pay(context, f, row):
    return len(context.purse) == 0 or owed(context, f, row) <= context.purse[row]


@inlined
def owed(context, f, row):
    """What a case would pay for a feature."""
    due = context.owes[f, row]
    return np.int64(0) if due == NOTHING else (context.prices.cost_in_group[f] if due == IN_GROUP else context.prices.cost[f])


@inlined
def pay(context, f, at, begin, end, dues):
    """Let cases buy a feature; `dues` are those of the node that they are in, and stay true."""
    group = context.prices.group[f]
    for k in range(begin, end):
        row = np.uint32(at.rows[k])
        due = context.owes[f, row]
        if due == NOTHING:
            continue
        dues[f, due - 1] -= at.weights[k]
        for other in range(len(context.prices.group) if group >= 0 else 0):
            if other != f and context.prices.group[other] == group and context.owes[other, row] == WHOLE:
                dues[other, 1] -= at.weights[k]
                dues[other, 0] += at.weights[k]
        pay_for(context, f, row)


@inlined
def pay_for(context, f, row):
    """Let a case buy a feature, and with it enter its group; False where it cannot pay.

    Who owes nothing has it, or cannot get it because it is missing: that opens no group.
    """
    if context.owes[f, row] == NOTHING:
        return True
    if not can_pay(context, f, row):
        return False
    if len(context.purse):
        context.purse[row] -= owed(context, f, row)
    context.owes[f, row] = NOTHING
    group = context.prices.group[f]
    for other in range(len(context.prices.group) if group >= 0 else 0):
        if context.prices.group[other] == group and context.owes[other, row] == WHOLE:
            context.owes[other, row] = IN_GROUP
    return True
