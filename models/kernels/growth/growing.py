"""One tree, grown top down on binned data: histograms, the bigger child's by subtraction, no Python per node.

A node owns a stretch of `rows`; splitting it sorts that stretch by outcome. Nodes of more than SMALL rows are searched by histograms (class
counts per bin of every feature); of two children only the smaller one's is counted, the bigger one's is what is left of the parent's. Small
nodes are sorted feature by feature instead: a histogram would be mostly zeros.

    rows   | 3 7 1 9 | 2 8 | 0 4 5 6 |
    nodes    a         b     c              the smaller child is grown first, so few histograms wait at a time
"""

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.growth.histograms import SMALL, Work, compact, fill_one, gather, hand_down, own_histogram
from frugal.models.kernels.growth.impurity import impurity
from frugal.models.kernels.growth.slots import give, make_slots
from frugal.models.kernels.growth.splitting import DEAD, NO_SPLIT, Scratch, best_cut, every_category, is_empty
from frugal.models.kernels.marks import LEAF, NONE
from frugal.models.kernels.pricing import buy, empty, marginal, new_basket

MILLION = 1e6  # prices are in millionths


@kernel
def grow(bins, row_weights, criterion, prices, on_path, classes, slots, seed):
    """Grow one tree on the rows of positive weight; a node that finds none of the `slots` free is searched without a histogram.

    Gives the number of nodes and of children; per node: feature, cut (last bin on the left), missing child, first and number of children,
    class counts; and the list of children with the bin each stands for. The arrays are longer than they need to be.
    """
    chosen = np.flatnonzero(row_weights > 0).astype(np.int32)
    features, size = len(bins.sizes), len(chosen)
    cells = int(bins.offsets[-1] + bins.sizes[-1] + 1) if features else 0
    if size <= SMALL:
        slots = 0
    widest = int(bins.sizes.max()) + 1 if features else 1
    work = Work(
        chosen,
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.float64),
        np.empty(SMALL, np.uint8),
        np.empty(SMALL, np.int32),
        make_slots(slots),
        np.empty((slots, cells, classes), np.float64),
        np.empty(features, np.float64),
        np.zeros(features, np.bool_),
        np.empty(257, np.int64),
    )
    scratch = Scratch(
        np.zeros(classes),
        np.zeros(classes),
        np.zeros(classes),
        np.zeros((max(widest, SMALL + 1), classes)),
        np.array([np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)], np.uint64),
    )
    basket = new_basket(prices)
    room = 256
    feature, cut, missing = np.full(room, LEAF, np.int32), np.zeros(room, np.int32), np.full(room, NONE, np.int32)
    first, many, parent = np.zeros(room, np.int64), np.zeros(room, np.int32), np.full(room, NONE, np.int32)
    begin, end, slot = np.zeros(room, np.int32), np.zeros(room, np.int32), np.full(room, NONE, np.int32)
    totals = np.zeros(classes)
    child, child_bin = np.zeros(room, np.int32), np.zeros(room, np.int32)
    stack = np.zeros(64, np.int32)
    dead = np.zeros((64, features), np.bool_)  # beside the stack
    nodes, children, depth = 1, 0, 1
    end[0] = size
    while depth:
        depth -= 1
        i = stack[depth]
        work.dead[:] = dead[depth]
        set_fees(prices, on_path, feature, parent, i, basket, work.fees)
        totals[:] = 0.0
        count_classes(bins, row_weights, work.rows, begin[i], end[i], totals)
        slot[i], best, best_bin, goes_left = search(bins, row_weights, criterion, begin[i], end[i], totals, slot[i], work, scratch)
        if best == NONE:
            give(work.slots, slot[i])
            slot[i] = NONE
            continue
        outcomes, some_missing = part(bins, best, best_bin, goes_left, begin[i], end[i], work)
        if nodes + outcomes > len(feature):
            room = len(feature) * 3 // 2 + outcomes
            feature, cut, missing = longer(feature, room, LEAF), longer(cut, room, 0), longer(missing, room, NONE)
            first, many, parent = longer(first, room, 0), longer(many, room, 0), longer(parent, room, NONE)
            begin, end, slot = longer(begin, room, 0), longer(end, room, 0), longer(slot, room, NONE)
            child, child_bin = longer(child, room, 0), longer(child_bin, room, 0)
        feature[i], cut[i], first[i], many[i] = best, best_bin, children, outcomes
        place, biggest, smallest = begin[i], nodes, nodes
        for b in range(257):
            if work.counts[b] == 0:
                continue
            child[children], child_bin[children] = nodes, b
            begin[nodes], end[nodes], parent[nodes] = place, place + work.counts[b], i
            if end[nodes] - begin[nodes] > end[biggest] - begin[biggest]:
                biggest = nodes
            if end[nodes] - begin[nodes] < end[smallest] - begin[smallest]:
                smallest = nodes
            place = end[nodes]
            nodes += 1
            children += 1
        missing[i] = missing_way(
            bins.categorical[best], some_missing, goes_left, child, first[i], outcomes, row_weights, work.rows, begin, end
        )
        if smallest == biggest:
            smallest = nodes - 1 if biggest != nodes - 1 else nodes - outcomes
        if depth + outcomes > len(stack):
            stack = longer(stack, 2 * len(stack) + outcomes, 0)
            wider = np.zeros((len(stack), features), np.bool_)
            wider[:depth] = dead[:depth]
            dead = wider
        for k in range(depth, depth + outcomes):
            dead[k] = work.dead
        hand_down(bins, row_weights, begin, end, slot, i, nodes - outcomes, nodes, biggest, smallest, work)
        depth = push_all(stack, depth, nodes - outcomes, nodes, biggest, smallest)
    values = np.zeros((nodes, classes))  # only now: while growing, room for nodes to come would double it
    for i in range(nodes - 1, -1, -1):
        if feature[i] == LEAF:
            count_classes(bins, row_weights, work.rows, begin[i], end[i], values[i])
        if parent[i] != NONE:
            values[parent[i]] += values[i]
    return nodes, children, feature, cut, missing, first, many, values, child, child_bin


@kernel
def longer(array, size, fill):
    grown = np.full(size, fill, array.dtype)
    grown[: len(array)] = array
    return grown


@inlined
def count_classes(bins, row_weights, rows, begin, end, counts):
    for k in range(begin, end):
        counts[bins.classes[np.uint32(rows[k])]] += row_weights[np.uint32(rows[k])]


@inlined
def set_fees(prices, on_path, feature, parent, i, basket, fees):
    """What each feature is weighed by at node i: its price, given what the path has bought if that counts, and at least the floor."""
    empty(basket)
    above = parent[i] if on_path else NONE
    while above != NONE:
        buy(prices, basket, feature[above])
        above = parent[above]
    floor = prices.floor if prices.floor > 0.0 else MILLION
    for f in range(len(fees)):
        fees[f] = max(float(marginal(prices, basket, f)), floor) / MILLION


@inlined
def search(bins, row_weights, criterion, begin, end, totals, own, work, scratch):
    """The feature of least risk: (the node's slot, feature or NONE, cut, whether missing goes left)."""
    whole = impurity(criterion.impurity, totals)
    best, best_risk, best_bin, best_left = NONE, np.inf, NO_SPLIT, False
    if whole <= 0.0:
        return own, best, best_bin, best_left
    small = end - begin <= SMALL and not criterion.random
    own = own_histogram(bins, row_weights, begin, end, own, work)
    if own == NONE:
        gather(bins, row_weights, work, begin, end)
    for f in range(len(bins.sizes)):
        if work.dead[f]:
            continue
        size = bins.sizes[f]
        sorted_ = small and size > 2 * (end - begin)  # more bins than a few rows are worth
        if own != NONE:
            cells = work.histograms[own, bins.offsets[f] : bins.offsets[f] + size + 1]
        elif sorted_:
            size = compact(bins, f, work, begin, end, scratch.cells)
            cells = scratch.cells[: size + 1]
        else:
            cells = scratch.cells[: size + 1]
            cells[:, :] = 0.0
            fill_one(bins, f, work, begin, end, cells)
        if bins.categorical[f]:
            remains, bin_, left = every_category(criterion, cells, size, scratch), 0, False
            work.dead[f] = remains == np.inf
        else:  # only what beats the best feature so far; a little less, for rounding
            bar = whole if best == NONE else (whole - work.fees[f] / best_risk) * (1 + 1e-12) + 1e-12
            remains, bin_, left = best_cut(criterion, cells, size, totals, end - begin, min(bar, whole), scratch)
            work.dead[f] = bin_ == DEAD
        if remains < whole:
            risk = work.fees[f] / (whole - remains)
            if risk < best_risk:
                if not bins.categorical[f]:
                    after = bin_ + 1
                    while is_empty(cells, after):
                        after += 1
                    if own == NONE and sorted_:  # from places in the sorted list to codes
                        bin_, after = int(work.order[bin_]), int(work.order[after])
                    bin_ = (bin_ + after - 1) // 2  # halfway between the two sides
                best, best_risk, best_bin, best_left = f, risk, bin_, left
    return own, best, best_bin, best_left


@inlined
def outcome_of(code, categorical, size, cut, goes_left):
    """Which outcome a code has: 0 or 1 of a cut, or the category itself with missing as 256."""
    if categorical:
        return np.int64(code) if code < size else np.int64(256)
    if code == size:
        return np.int64(0) if goes_left else np.int64(1)
    return np.int64(0) if code <= cut else np.int64(1)


@inlined
def part(bins, f, cut, goes_left, begin, end, work):
    """Sort a node's rows by outcome, keeping their order; fills `work.counts`, and gives (how many outcomes, whether any is missing)."""
    codes, size, categorical = bins.codes[f], bins.sizes[f], bins.categorical[f]
    work.counts[:] = 0
    some_missing = False
    for k in range(begin, end):
        code = codes[np.uint32(work.rows[k])]
        some_missing |= code == size
        work.counts[outcome_of(code, categorical, size, cut, goes_left)] += 1
        work.spare[k] = work.rows[k]
    outcomes = 0
    place = np.int64(begin)
    for b in range(257):
        if work.counts[b]:
            outcomes += 1
            held = work.counts[b]
            work.counts[b] = place
            place += held
        else:
            work.counts[b] = -1
    for k in range(begin, end):
        b = outcome_of(codes[np.uint32(work.spare[k])], categorical, size, cut, goes_left)
        work.rows[work.counts[b]] = work.spare[k]
        work.counts[b] += 1
    previous = np.int64(begin)
    for b in range(257):
        if work.counts[b] >= 0:
            after = work.counts[b]
            work.counts[b] = after - previous
            previous = after
        else:
            work.counts[b] = 0
    return outcomes, some_missing


@inlined
def missing_way(categorical, some_missing, goes_left, child, first, outcomes, row_weights, rows, begin, end):
    """Where missing goes: the side that scored better, its own outcome, or the bigger child where training had none missing."""
    if some_missing:
        return child[first] if goes_left and not categorical else child[first + outcomes - 1]
    heaviest, most = child[first], -1.0
    for k in range(first, first + outcomes):
        weight = 0.0
        for r in range(begin[child[k]], end[child[k]]):
            weight += row_weights[np.uint32(rows[r])]
        if weight > most:
            heaviest, most = child[k], weight
    return heaviest


@inlined
def push_all(stack, depth, low, high, biggest, smallest):
    """The biggest child waits longest, the smallest is next."""
    stack[depth] = biggest
    depth += 1
    for j in range(low, high):
        if j not in (biggest, smallest):
            stack[depth] = j
            depth += 1
    if smallest != biggest:
        stack[depth] = smallest
        depth += 1
    return depth
