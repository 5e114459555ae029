"""How positions in trees become one label, and when it can no longer change.

Of every class we keep the least and the greatest total that it can still end with. A tree adds to both

    at a leaf, or ended     what that node gives the class
    under way               the least and the greatest that any node at or below it gives (at it: a budget may end the walk there)

and the label is decided once the leader's least beats every rival's greatest. The totals are whole numbers, of 2^-k where votes are not
whole themselves, so that they can be kept up to date tree by tree without drift: `acquire`, which does so, sees the same numbers as
`decide`, which starts afresh each time.
"""

import numpy as np

from frugal.models.kernels.compiling import inlined
from frugal.models.kernels.serving.values import class_at, stretch, value_at, value_of
from frugal.models.kernels.serving.walking import ADDITIVE, ENDED, GREATEST, LEAST, MAJORITY, labels_vote, only_class


@inlined
def tally(forest, weights, position, totals):
    """Sum what every tree gives each class at the node it stands on, by its weight, in the order of the trees."""
    totals[:] = 0.0
    if labels_vote(forest):
        for t in range(len(position)):
            only = only_class(forest, position[t])
            totals[only if only >= 0 else label_at(forest, position[t])] += weights[t]
    else:
        sum_values(forest, weights, position, totals)


@inlined
def sum_values(forest, weights, position, totals):
    """Where the values of the next tree are is looked up before those of this one are summed: both wait for memory at once."""
    begin, end = stretch(forest, position[0])
    for t in range(len(position)):
        following = stretch(forest, position[min(t + 1, len(position) - 1)])
        for k in range(begin, end):
            totals[class_at(forest, k)] += weights[t] * value_at(forest, k)
        begin, end = following


@inlined
def elect(forest, totals, votes):
    """Fill `votes`, each class's share, and return the label: the first class of the greatest total, or of the least expected penalty."""
    best = 0
    for c in range(1, len(totals)):
        if totals[c] > totals[best]:
            best = c
    total = 0.0
    for c in range(len(totals)):
        votes[c] = np.exp(totals[c] - totals[best]) if forest.vote == ADDITIVE else totals[c]
        total += votes[c]
    if total == 0.0:
        votes[:] = 1.0
        total = float(len(totals))
    if len(forest.penalties):  # before dividing: whole counts compare exactly, so ties are ties
        best = least_penalty(forest.penalties, votes)
    for c in range(len(totals)):
        votes[c] /= total
    return best


@inlined
def least_penalty(penalties, chances):
    """The class of least expected penalty; penalties[c, i] is paid for saying c of a case of class i."""
    best, least = 0, np.inf
    for c in range(len(chances)):
        expected = 0.0
        for i in range(len(chances)):
            expected += penalties[c, i] * chances[i]
        if expected < least:
            best, least = c, expected
    return best


@inlined
def whole(forest, t, value):
    """What tree t gives for a node's value, as a whole number."""
    return np.int64(np.rint(forest.weights[t] * value * forest.scale))


@inlined
def bound(forest, case):
    """Sum every tree, where it stands, into the least and greatest totals."""
    least, greatest = case.least, case.greatest
    least[:] = 0
    greatest[:] = 0
    for t in range(len(case.position)):
        i, ended, share = case.position[t], case.wanted[t] == ENDED, forest.shares[t]
        if labels_vote(forest):
            only = label_at(forest, i) if ended else np.int64(forest.label[i])
            if only >= 0:
                least[only] += share
                greatest[only] += share
            else:
                for c in range(len(greatest)):
                    greatest[c] += share * is_possible(forest, i, c)
        elif ended:
            begin, end = stretch(forest, i)
            for k in range(begin, end):
                given = whole(forest, t, value_at(forest, k))
                least[class_at(forest, k)] += given
                greatest[class_at(forest, k)] += given
        else:
            for c in range(len(least)):
                least[c] += forest.bounds[i, LEAST, c]
                greatest[c] += forest.bounds[i, GREATEST, c]


@inlined
def label_at(forest, i):
    """The label of node i. It is kept as its complement where a walk that goes on may come to another one: one array instead of two."""
    label = np.int64(forest.label[i])
    return label if label >= 0 else ~label


@inlined
def is_possible(forest, i, c):
    """1 where class c is the label of a node at or below node i, else 0."""
    return np.int64(forest.possible[i, c >> 3] >> (c & 7)) & 1


@inlined
def lead_at(forest, t, i, wanted, label, rival):
    """What tree t, on node i, surely adds to the lead of one class over another."""
    if not labels_vote(forest):
        if wanted == ENDED:
            return whole(forest, t, value_of(forest, i, label)) - whole(forest, t, value_of(forest, i, rival))
        return forest.bounds[i, LEAST, label] - forest.bounds[i, GREATEST, rival]
    only = label_at(forest, i) if wanted == ENDED else np.int64(forest.label[i])
    if only >= 0:
        return forest.shares[t] * (np.int64(only == label) - np.int64(only == rival))
    return -forest.shares[t] * is_possible(forest, i, rival)


@inlined
def beats(forest, label, rival, lead):
    """Whether a lead that is sure keeps a rival from winning; under "majority" votes are whole, so that a tie is a tie."""
    return len(forest.penalties) > 0 or lead > forest.margin or (forest.vote == MAJORITY and lead == 0 and label < rival)


@inlined
def decided(forest, case):
    """Whether no completion of the unfinished trees can change the label."""
    bound(forest, case)
    least, greatest = case.least, case.greatest
    if len(forest.penalties):
        if forest.vote == ADDITIVE:
            return len(least) == 1  # else: bounds on scores say little about sums of probabilities
        tally(forest, forest.weights, case.position, case.totals)
        return decided_with_penalties(forest, elect(forest, case.totals, case.votes), least, greatest)
    leader = 0  # a class that beats every rival's greatest has the greatest least
    for c in range(1, len(least)):
        if least[c] > least[leader]:
            leader = c
    for rival in range(len(least)):
        if rival != leader and not beats(forest, leader, rival, least[leader] - greatest[rival]):
            return False
    return True


@inlined
def decided_with_penalties(forest, leader, least, greatest):
    """Whether every rival's expected penalty stays above the leader's, wherever the totals end within their bounds."""
    total = 0.0
    for c in range(len(greatest)):
        total += greatest[c]
    for rival in range(len(least)):
        lead, steepest = 0.0, 0.0
        for i in range(len(least)):
            dearer = forest.penalties[rival, i] - forest.penalties[leader, i]
            lead += dearer * (least[i] if dearer > 0 else greatest[i])
            steepest = max(steepest, forest.penalties[rival, i], forest.penalties[leader, i])
        if rival != leader and not lead > max(float(forest.margin), 1e-9 * total) * steepest:
            return False
    return True
