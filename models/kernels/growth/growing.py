"""One tree, grown top down on binned data: histograms, the bigger child's by subtraction, no Python per node.

A node owns a stretch of positions; its question sorts that stretch by outcome.

    rows   | 3 7 1 9 | 2 8 | 0 4 5 6 |
    nodes    a         b     c

Depth-first, the smaller child is grown first, so that few histograms wait at a time. Leaf-wise, all that wait were searched already, and
the one whose question scores best is asked next.
"""

from typing import NamedTuple

import numpy as np

from frugal.models.kernels.compiling import called, inlined, kernel
from frugal.models.kernels.growth.context import CASES, MODEL, pay
from frugal.models.kernels.growth.histograms import hand_down
from frugal.models.kernels.growth.impurity import held_score
from frugal.models.kernels.growth.nodes import bury, new_node, pop, push, recall
from frugal.models.kernels.growth.questions import outcomes_at_most, part, part_in_two
from frugal.models.kernels.growth.rules import BETTER_SIDE, FRACTIONS
from frugal.models.kernels.growth.searching import is_done, search, whole_of
from frugal.models.kernels.growth.slots import give, give_all
from frugal.models.kernels.growth.targets import GRADIENTS, add_up
from frugal.models.kernels.marks import EVERY_CATEGORY, LEAF, NONE
from frugal.models.kernels.pricing import buy

NO_ROOM = -1


class Limits(NamedTuple):
    """Where growing ends."""

    depth: int  # questions on a path at most
    leaves: int  # at most; with `leafwise`
    rows: int  # on each side at least
    weight: float  # a node of no more than this is a leaf
    gain: float  # a question gains more than this
    score: float  # and scores more than this
    leafwise: bool


@kernel
def grow(bins, target, rows, weights, rule, context, limits, space, seed):
    """Grow one tree on these rows, each with its weight. It is in `space.node` then, until the next one grows.

    Gives (how many nodes, their sums as pairs of which and how much): a node's are those of `space.node.values` entries from
    `space.node.value` on. The number is NO_ROOM where the space is too small, which can be only where rows are shared out.
    """
    node, at = space.node, space.at
    for k in range(len(rows)):
        at.rows[k], at.weights[k] = rows[k], weights[k]
        at.classes[k] = target.classes[np.uint32(rows[k])] if target.kind != GRADIENTS else 0
    space.scratch.random[0] = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    give_all(space.histograms.slots)
    give_all(space.places)
    values = np.empty((256, 2))
    entries, waiting = 0, 0
    new_node(node, 0, NONE, 0, 0, 0, len(rows))
    nodes, leaves, todo = 1, 1, 1
    space.todo[0] = 0
    while todo or waiting:
        if todo:
            todo -= 1
            i = space.todo[todo]
            weight = add_up(target, at, node.begin[i], node.end[i], space.sums)
            if entries + target.sums > len(values):
                values = longer(values, 2 * len(values) + target.sums)
            entries = keep_sums(target, space.sums, node, i, values, entries)
            recall(node, space.places, space.dead, space.dying, space.histograms.slots, i)
            whole = whole_of(rule, target, space.sums, space.all_names, weight, node.low[i], node.high[i])
            done = is_done(rule, target, limits, space.sums, node, i, weight, whole)
            if done or not search(bins, target, rule, context, limits, space, at, i, weight, whole):
                give(space.histograms.slots, node.slot[i])
                node.slot[i] = NONE
                continue
            if limits.leafwise:
                node.place[i] = bury(space.places, space.dead, space.dying)
                waiting = push(node, space.heap, waiting, i)
                continue
        else:
            i, waiting = pop(node, space.heap, waiting)
            recall(node, space.places, space.dead, space.dying, space.histograms.slots, i)
            if leaves >= limits.leaves:
                node.feature[i] = LEAF
                give(space.histograms.slots, node.slot[i])
                continue
        if context.kind == MODEL and not context.basket.bought[node.feature[i]]:
            buy(context.prices, context.basket, node.feature[i])
            for k in range(waiting):  # what they were searched with is dearer than it is now
                space.todo[todo + k] = space.heap[k]
            todo, waiting = todo + waiting, 0
        outcomes = ask(bins, rule, context, node, space.histograms, space.dues, space.counts, at, i, nodes)
        if outcomes == NO_ROOM:
            return NO_ROOM, values
        if rule.missing == FRACTIONS and not share_out(target.step, node, space.todo, space.heap, at, i, outcomes, todo, waiting):
            return NO_ROOM, values
        if len(target.trend):
            hold_children(target, rule, node, at, i, space.scratch.left, space.scratch.right)
        nodes += outcomes
        leaves += outcomes - 1
        biggest, smallest = largest_and_least(node, nodes - outcomes, nodes)
        for j in range(nodes - outcomes, nodes):
            node.place[j] = bury(space.places, space.dead, space.dying)
        hand_down(bins, target, rule, context, at, node, i, outcomes, biggest, smallest, space.dying, space.histograms)
        todo = line_up(space.todo, todo, nodes - outcomes, nodes, biggest, smallest)
    return nodes, values[:entries]


@kernel
def longer(values, size):
    grown = np.empty((size, 2))
    for k in range(len(values)):
        grown[k, 0], grown[k, 1] = values[k, 0], values[k, 1]
    return grown


@inlined
def keep_sums(target, sums, node, i, values, entries):
    """Note a node's sums: those that are not zero of classes, all of derivatives. Gives how many entries there are then."""
    node.value[i] = entries
    for c in range(target.many):
        if target.kind == GRADIENTS or sums[c] != 0.0:
            values[entries, 0], values[entries, 1] = c, sums[c]
            entries += 1
    node.values[i] = entries - node.value[i]
    return entries


@inlined
def ask(bins, rule, context, node, histograms, dues, counts, at, i, nodes):
    """Part a node's rows by its question and make a node of every outcome, from number `nodes` on; gives how many."""
    f, begin, end = node.feature[i], node.begin[i], node.end[i]
    if nodes + outcomes_at_most(bins.form[f], bins.sizes[f]) > len(node.feature):
        return NO_ROOM
    if bins.form[f] != EVERY_CATEGORY and rule.missing == BETTER_SIDE and len(context.purse) == 0:
        outcomes = part_in_two(bins, f, node.cut[i], node.way[i], node.chosen[i], begin, end, at, counts)
    else:
        outcomes = part(bins, context, f, node.cut[i], node.way[i], node.chosen[i], begin, end, at, counts)
    node.first[i], node.many[i] = nodes, outcomes
    place, j = begin, nodes
    for b in range(outcomes_at_most(bins.form[f], bins.sizes[f])):
        if counts[b]:
            new_node(node, j, i, b, node.depth[i] + 1, place, place + counts[b])
            place += counts[b]
            j += 1
    if context.kind == CASES:
        pay(context, f, at, begin, place, dues if node.slot[i] == NONE else histograms.dues[node.slot[i]])
    return outcomes


@called
def hold_children(target, rule, node, at, i, left, right):
    """The bounds of a node's children: its own; and where scores may only rise, or fall, with its feature, halfway between theirs."""
    f, first = node.feature[i], node.first[i]
    for j in range(first, first + node.many[i]):
        node.low[j], node.high[j] = node.low[i], node.high[i]
    if target.trend[f] == 0:
        return
    add_up(target, at, node.begin[first], node.end[first], left)
    add_up(target, at, node.begin[first + 1], node.end[first + 1], right)
    l2, low, high = rule.impurity.l2, node.low[i], node.high[i]
    middle = 0.5 * (held_score(l2, left, low, high) + held_score(l2, right, low, high))
    if target.trend[f] > 0:
        node.high[first], node.low[first + 1] = middle, middle
    else:
        node.low[first], node.high[first + 1] = middle, middle


@called
def share_out(step, node, todo, heap, at, i, outcomes, many, waiting):
    """C4.5's fractional cases: give every row that stayed behind to all children, its weight in proportion to theirs, rounded to the grid.

    Rows are then in several places, so the children's stretches are made anew behind all that are still needed. False where there is no
    room for them.
    """
    first = node.first[i]
    last = node.end[first + outcomes - 1]
    behind = node.end[i] - last
    if behind == 0:
        return True
    top, known = node.end[i], 0.0
    for k in range(many):
        top = max(top, node.end[todo[k]])
    for k in range(waiting):
        top = max(top, node.end[heap[k]])
    for k in range(node.begin[i], last):
        known += at.weights[k]
    if top + last - node.begin[i] + outcomes * behind > len(at.rows):
        return False
    for j in range(first, first + outcomes):
        begin, weight = top, 0.0
        for k in range(node.begin[j], node.end[j]):
            at.rows[top], at.weights[top], at.classes[top] = at.rows[k], at.weights[k], at.classes[k]
            weight += at.weights[k]
            top += 1
        for k in range(last, last + behind):
            share = np.rint(at.weights[k] * weight / known / step) * step
            at.rows[top], at.weights[top], at.classes[top] = at.rows[k], max(share, step), at.classes[k]
            top += 1
        node.begin[j], node.end[j] = begin, top
    return True


@inlined
def largest_and_least(node, low, high):
    """Of some nodes the one with the most rows and the one with the fewest: two different ones."""
    biggest, smallest = low, low
    for j in range(low + 1, high):
        rows = node.end[j] - node.begin[j]
        if rows > node.end[biggest] - node.begin[biggest]:
            biggest = j
        if rows < node.end[smallest] - node.begin[smallest]:
            smallest = j
    if smallest == biggest:
        smallest = high - 1 if biggest != high - 1 else low
    return biggest, smallest


@inlined
def line_up(todo, many, low, high, biggest, smallest):
    """The biggest child waits longest, the smallest is next; gives how many there are then."""
    todo[many] = biggest
    many += 1
    for j in range(low, high):
        if j != biggest and j != smallest:
            todo[many] = j
            many += 1
    if smallest != biggest:
        todo[many] = smallest
        many += 1
    return many
