"""The question of one node: of all features the one that scores best, or one drawn in proportion to the scores.

Nodes of more than SMALL rows are searched by histograms. The rows of small ones are sorted feature by feature instead, and only the classes
that are there take part: a histogram would be mostly zeros.
"""

import numpy as np

from frugal.models.kernels.compiling import called, inlined
from frugal.models.kernels.growth.context import CASES, CONSTANT, add_dues, set_fees
from frugal.models.kernels.growth.histograms import SMALL, fill_anew, own_histogram
from frugal.models.kernels.growth.impurity import LOSS, held_loss, impurity
from frugal.models.kernels.growth.questions import copy_set, outcome_of
from frugal.models.kernels.growth.rules import BEST, DISJUNCTION, Here, beats, bound, drawn_in_proportion, mixed_pairs, score_of
from frugal.models.kernels.growth.splitting import DEAD, best_question
from frugal.models.kernels.growth.targets import COUNTS, is_empty
from frugal.models.kernels.marks import CUT, EVERY_CATEGORY, NONE, SOME_CATEGORIES

DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # 64 bits in which every word of 6 bits stands once
PLACE_OF = np.zeros(64, np.uint8)  # which of 64 bits is set, by the 6 bits that the product with it begins with
for _bit in range(64):
    PLACE_OF[((int(DE_BRUIJN) << _bit) % 2**64) >> 58] = _bit
ROUNDING = 1e-12  # a bound may be this much too tight: those just below it are looked at too


@called
def search(bins, target, rule, context, limits, space, at, i, weight, whole):
    """Find node i's question, and leave it there with its score; False where it has none. `space.sums` are the node's, of this weight and
    impurity."""
    node, begin, end = space.node, space.node.begin[i], space.node.end[i]
    slot = own_histogram(bins, target, context, at, begin, end, weight, node.slot[i], space.dying, space.histograms)
    node.slot[i] = slot
    if context.kind == CASES and slot == NONE:
        for f in range(len(bins.sizes)):
            space.dues[f] = 0.0
            add_dues(context, f, at, begin, end, 1.0, space.dues[f])
    if context.kind != CONSTANT or i == 0:
        set_fees(rule, context, node, i, space.basket, space.dues if slot == NONE else space.histograms.dues[slot], space.fees)
    small = slot == NONE and end - begin <= SMALL and target.kind == COUNTS and not rule.random and len(context.purse) == 0
    many, width, count = target.many, target.sums, target.counter
    if small:
        many, width, count = keep_own_classes(target, at, begin, end, space.sums, space.local, space.names, space.small, space.own)
    sums, names = space.small if small else space.sums, space.names if small else space.all_names
    held, low, high = len(target.trend) > 0, node.low[i], node.high[i]
    best, best_score = NONE, limits.score
    greedy = rule.pick == BEST and not rule.ratio
    partial = len(context.purse) > 0
    for f in range(len(bins.sizes)):
        space.scores[f] = -np.inf
        if space.dying[f] or space.fees[f] == np.inf:
            continue
        size, compacted = bins.sizes[f], False
        if slot != NONE:
            cells = space.histograms.cells[slot, bins.offsets[f] : bins.offsets[f] + size + 1]
        elif small and size > 2 * (end - begin):  # more bins than a few rows are worth
            compacted = True
            size = compact(
                bins.codes[f],
                bins.sizes[f],
                at,
                begin,
                end,
                count,
                width,
                space.own,
                space.order,
                space.rank,
                space.bits,
                space.scratch.cells,
            )
            cells = space.scratch.cells[: (size + 1) * width].reshape((size + 1, width))
        else:
            cells = space.scratch.cells[: (size + 1) * width].reshape((size + 1, width))
            if small:
                fill_small(bins.codes[f], at, begin, end, count, space.own, cells)
            else:
                fill_anew(target, context, f, bins.codes[f], at, begin, end, weight, cells)
        bar = whole - max(bound(rule, best_score, space.fees[f]) if greedy else 0.0, limits.gain)
        if best != NONE:
            bar += ROUNDING * abs(bar) + ROUNDING
        here = Here(sums, many, names, count, end - begin, weight, whole, held, low, high, target.trend[f] if held else 0)
        remains, bin_, way = best_question(
            rule, limits.rows, here, bins.form[f], cells, size, partial, min(bar, whole - limits.gain), space.scratch
        )
        space.dying[f] = bin_ == DEAD and not partial
        gain = whole - remains
        if bin_ < 0 or not gain > limits.gain:
            continue
        score = score_of(rule, gain, space.fees[f])
        if greedy and not beats(rule, score, best_score):
            continue
        if rule.ratio:
            score = gain / spread(here, bins.form[f], cells, size, bin_, way, space.sets[f])
        if bins.form[f] == CUT:
            bin_ = halfway(here, cells, bin_, compacted, space.order)
        elif compacted and bins.form[f] != EVERY_CATEGORY:
            bin_ = np.int64(space.order[bin_])
        if compacted and bins.form[f] == EVERY_CATEGORY and way != NONE:
            way = bins.sizes[f]
        space.scores[f], space.gains[f], space.cuts[f], space.ways[f] = score, gain, bin_, way
        if bins.form[f] == SOME_CATEGORIES:
            copy_set(space.scratch.chosen, space.sets[f])
        best, best_score = f, score
    if not greedy:
        best = pick(rule, limits.score, space.scores, space.gains, space.scratch.random)
    if best == NONE:
        return False
    node.feature[i], node.cut[i], node.way[i], node.score[i] = best, space.cuts[best], space.ways[best], space.scores[best]
    if bins.form[best] == SOME_CATEGORIES:
        copy_set(space.sets[best], node.chosen[i])
    return True


@inlined
def whole_of(rule, target, sums, names, weight, low, high):
    if len(target.trend):
        return held_loss(rule.impurity.l2, sums, low, high)
    mixed = impurity(rule.impurity, sums, target.many, names)
    return rule.lam * weight * mixed if rule.join == DISJUNCTION else mixed


@inlined
def is_done(rule, target, limits, sums, node, i, weight, whole):
    """Whether a node is a leaf without a look at its questions."""
    if node.depth[i] >= limits.depth or weight <= limits.weight or node.end[i] - node.begin[i] < max(2, 2 * limits.rows):
        return True
    if rule.join == DISJUNCTION:
        return mixed_pairs(sums, target.many) == 0.0
    return whole <= 0.0 and rule.impurity.kind != LOSS


@inlined
def keep_own_classes(target, at, begin, end, sums, local, names, small, own):
    """Number the classes of a small node, and its rows by them; gives (how many, how many sums, which of them counts rows)."""
    many = 0
    for c in range(target.many):
        if sums[c] > 0.0:
            local[c], names[many], small[many] = many, c, sums[c]
            many += 1
    for k in range(begin, end):
        own[k - begin] = local[at.classes[k]]
    if target.counter == NONE:
        return many, many, NONE
    small[many] = end - begin
    return many, many + 1, many


@inlined
def fill_small(codes, at, begin, end, count, own, cells):
    cells[:, :] = 0.0
    for k in range(begin, end):
        code = codes[np.uint32(at.rows[k])]
        cells[code, np.uint32(own[k - begin])] += at.weights[k]
        if count != NONE:
            cells[code, count] += 1.0


@inlined
def compact(codes, missing, at, begin, end, count, width, own, order, rank, bits, cells):
    """Only the bins that a small node's rows are in, in order, and missing behind them; `order` keeps their codes. Gives how many.

    Sorting by sets of bits: a few rows set few of 256, and the lowest one that is set is found at once.
    """
    for word in range(4):
        bits[word] = np.uint64(0)
    for k in range(begin, end):
        bit = np.uint64(codes[np.uint32(at.rows[k])])
        bits[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
    bits[missing >> 6] |= np.uint64(1) << np.uint64(missing & 63)  # behind all others, whether it is there or not
    distinct = 0
    for word in range(4):
        left = bits[word]
        while left:
            lowest = left & (~left + np.uint64(1))
            code = 64 * word + np.int64(PLACE_OF[(lowest * DE_BRUIJN) >> np.uint64(58)])
            order[distinct], rank[code] = code, distinct
            distinct += 1
            left ^= lowest
    cells[: distinct * width] = 0.0
    for k in range(begin, end):
        cell = np.int64(rank[codes[np.uint32(at.rows[k])]]) * width
        cells[cell + own[k - begin]] += at.weights[k]
        if count != NONE:
            cells[cell + count] += 1.0
    return distinct - 1


@inlined
def halfway(here, cells, bin_, compacted, order):
    """A cut as a bin: in the middle of the empty ones between its sides."""
    after = bin_ + 1
    while is_empty(cells, after, here.counter, here.many):
        after += 1
    if compacted:  # from places in the sorted list to codes
        return (np.int64(order[bin_]) + np.int64(order[after]) - 1) // 2
    return (bin_ + after - 1) // 2


@called
def spread(here, form, cells, size, bin_, way, chosen):
    """The entropy of the outcomes' sizes, in bits, missing values being an outcome of their own where they stay behind."""
    total, parts, first, second = 0.0, 0.0, 0.0, 0.0
    for b in range(size + 1):
        cases = 0.0
        for c in range(here.many):
            cases += cells[b, c]
        total += cases
        outcome = outcome_of(b, form, size, bin_, way, chosen)
        if form != EVERY_CATEGORY and outcome == 0:
            first += cases
        elif form != EVERY_CATEGORY and outcome == 1:
            second += cases
        else:
            parts += times_log(cases)
    return np.log2(total) - (parts + times_log(first) + times_log(second)) / total


@inlined
def times_log(cases):
    return cases * np.log2(cases) if cases > 0.0 else 0.0


@called
def pick(rule, least, scores, gains, random):
    """One of the features that have a score: by the gain ratio, of those with a mean gain at least; or drawn in proportion."""
    if rule.pick != BEST:
        return drawn_in_proportion(scores, least, random)
    mean, many, best = 0.0, 0, NONE
    for f in range(len(scores)):
        if scores[f] > -np.inf:
            mean += gains[f]
            many += 1
    for f in range(len(scores)):
        if scores[f] == -np.inf or gains[f] < mean / many - 1e-3:
            continue
        if best == NONE or beats(rule, scores[f], scores[best]):
            best = f
    return best
