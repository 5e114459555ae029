"""Pruning: backward passes over a grown tree. Children come after their parents, so what is known of all children is known of the parent.

    as_leaf[i]   what node i would cost as a leaf
    asking[i]    what its question costs the rows that come to it
    cost(i)      the less of as_leaf[i] and asking[i] + the sum of cost over its children

Error-based pruning (C4.5) counts errors that are to be expected and asks for nothing; cost-sensitive pruning (ACT) counts money on both
sides. Minimal cost-complexity pruning (CART) takes the weakest link first, and notes for every node at which strength it goes.
"""

import math

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import LEAF, NONE
from frugal.models.kernels.pricing import buy, empty, marginal, new_basket

TINY = 1e-300


@kernel
def collapse(feature, parent, as_leaf, asking, slack, ends):
    """Mark in `ends` the nodes that are to be leaves: those that cost no more as one, by up to `slack`. Gives the cost of what is left."""
    cost = asking.copy()
    for i in range(len(feature) - 1, -1, -1):
        ends[i] = feature[i] == LEAF or as_leaf[i] <= cost[i] + slack
        if ends[i]:
            cost[i] = as_leaf[i]
        if parent[i] != NONE:
            cost[parent[i]] += cost[i]
    return cost[0]


@kernel
def kept(parent, ends):
    """Which nodes are left where some are leaves."""
    keep = np.ones(len(parent), np.bool_)
    for i in range(1, len(parent)):
        keep[i] = keep[parent[i]] and not ends[parent[i]]
    return keep


@kernel
def path_prices(feature, parent, prices, basket):
    """What each question costs whoever comes to it, given what the basket holds and the path has bought; 0 at leaves. In millionths."""
    found, own = np.zeros(len(feature), np.int64), new_basket(prices)
    for i in range(len(feature)):
        if feature[i] == LEAF:
            continue
        empty(own)
        for f in range(len(basket.bought)):
            own.bought[f] = basket.bought[f]
        for g in range(len(basket.entered)):
            own.entered[g] = basket.entered[g]
        above = parent[i]
        while above != NONE:
            buy(prices, own, feature[above])
            above = parent[above]
        found[i] = marginal(prices, own, feature[i])
    return found


@kernel
def weakest_links(feature, parent, wrong, load):
    """The strength at which each node becomes a leaf when the weakest link goes first: the errors that its subtree saves per load that its
    questions are. Leaves have strength 0; no node has less than one below it."""
    nodes = len(feature)
    saved, loads, strength = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    gone, at = np.zeros(nodes, np.bool_), np.full(nodes, NONE, np.int64)
    below = wrong.copy()  # errors of the subtree
    for i in range(nodes - 1, -1, -1):
        if feature[i] != LEAF:
            loads[i] += load[i]
            saved[i] = wrong[i] - below[i]
        if parent[i] != NONE:
            if at[parent[i]] == NONE:  # the first child that is met: from now on the sum over children
                below[parent[i]], at[parent[i]] = 0.0, 0
            below[parent[i]] += below[i]
            loads[parent[i]] += loads[i]
    heap, size = np.empty(nodes, np.int64), 0
    for i in range(nodes):
        at[i] = NONE
        if feature[i] != LEAF:
            heap[size], at[i] = i, size
            size += 1
    for k in range(size - 1, -1, -1):
        sink(heap, size, k, saved, loads, at)
    reached = 0.0
    while size:
        i = heap[0]
        reached = max(reached, saved[i] / loads[i])
        size = take_out(heap, size, i, saved, loads, at)
        if gone_above(parent, gone, i):
            strength[i] = reached
            continue
        gone[i], strength[i] = True, reached
        less, lighter = saved[i], loads[i]
        above = parent[i]
        while above != NONE:
            saved[above] -= less
            loads[above] -= lighter
            if at[above] != NONE:
                rise(heap, at[above], saved, loads, at)
                sink(heap, size, at[above], saved, loads, at)
            above = parent[above]
    for i in range(1, nodes):
        if feature[i] != LEAF:
            strength[i] = min(strength[i], strength[parent[i]])
    return strength


@inlined
def gone_above(parent, gone, i):
    above = parent[i]
    while above != NONE:
        if gone[above]:
            return True
        above = parent[above]
    return False


@inlined
def weaker(saved, loads, i, j):
    """Whether node i is the weaker link; of equals the one nearer to the root goes, and takes the other with it."""
    a, b = saved[i] * loads[j], saved[j] * loads[i]
    return a < b or (a == b and i < j)


@inlined
def sink(heap, size, k, saved, loads, at):
    i = heap[k]
    while 2 * k + 1 < size:
        below = 2 * k + 1
        if below + 1 < size and weaker(saved, loads, heap[below + 1], heap[below]):
            below += 1
        if not weaker(saved, loads, heap[below], i):
            break
        heap[k] = heap[below]
        at[heap[k]] = k
        k = below
    heap[k], at[i] = i, k


@inlined
def rise(heap, k, saved, loads, at):
    i = heap[k]
    while k > 0 and weaker(saved, loads, i, heap[(k - 1) // 2]):
        heap[k] = heap[(k - 1) // 2]
        at[heap[k]] = k
        k = (k - 1) // 2
    heap[k], at[i] = i, k


@inlined
def take_out(heap, size, i, saved, loads, at):
    """Take the first node off the heap; gives how many are left."""
    at[i] = NONE
    size -= 1
    if size:
        heap[0] = heap[size]
        at[heap[0]] = 0
        sink(heap, size, 0, saved, loads, at)
    return size


@kernel
def all_expected_errors(many, wrong, cf):
    """Of every node as a leaf."""
    found = np.empty(len(many))
    for i in range(len(many)):
        found[i] = expected_errors(many[i], wrong[i], cf)
    return found


@inlined
def expected_errors(many, wrong, cf):
    """Errors to be expected of a leaf with `many` cases of which `wrong` are wrong: the upper limit of the binomial that is passed with
    probability cf, times the cases."""
    if many <= 0.0:
        return 0.0
    if wrong >= many:
        return many
    if wrong <= 0.0:
        return many * (1.0 - cf ** (1.0 / many))
    low, high = wrong / many, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if at_most(many, wrong, middle) > cf:
            low = middle
        else:
            high = middle
    return many * 0.5 * (low + high)


@inlined
def at_most(many, wrong, share):
    """The probability of at most `wrong` errors in `many` cases: the incomplete beta function, which takes fractions of cases too."""
    return beta_share(many - wrong, wrong + 1.0, 1.0 - share)


@inlined
def beta_share(a, b, x):
    """I_x(a, b), the regularized incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(1.0 - x))
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    return front * beta_fraction(a, b, x) / a


@inlined
def beta_fraction(a, b, x):
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > TINY else TINY)
    found = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 + term * d
            c = 1.0 + term / c
            d = 1.0 / (d if abs(d) > TINY else TINY)
            c = c if abs(c) > TINY else TINY
            found *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return found
