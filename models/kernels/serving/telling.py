"""How likely each class is said to be, where every tree stands: told probabilities.

    share of a class at a node    (n_c + s prior_c) / (n + s)       n_c of the node's n cases; the prior: the shares where nothing is known
    one tree, or "counts"         that of all cases together
    "majority", "weighted"        the mean over the trees, by weight: a tree's whole vote says nothing of how sure it is
    "additive"                    the softmax of the sums

Where a reader has its say (reading.py), what is told is a blend of both, and the label is that of the blend.

Otherwise the label comes from the votes. Where these shares would put another class first, it is pooled with the label, which then leads
by a hair.
A calibration, fitted on rows that grew no tree, moves the leader's probability and scales the others: the more, the smaller the nodes are
that the trees stand on (of scores: the more trees have left their roots) and the more trees are at their ends. At the roots it moves
nothing: the shares of all cases need no correction.
"""

import numpy as np

from frugal.models.kernels.compiling import called, inlined
from frugal.models.kernels.serving.reading import read, reads, sees
from frugal.models.kernels.serving.values import class_at, stretch, value_at
from frugal.models.kernels.serving.voting import elect, least_penalty, tally
from frugal.models.kernels.serving.walking import ADDITIVE, labels_vote, only_class

HAIR = 1e-9  # of a probability: by how much a label leads that the shares alone would not put first
SUREST = 1e-12  # how near to 0 and 1 a probability is moved


@called
def tell(forest, smoothing, weights, position, wanted, totals, votes, sight, probabilities):
    """Fill `votes` and `probabilities` for trees that stand at `position`, want `wanted` and count by `weights`; gives the label."""
    tally(forest, weights, position, totals)
    label = elect(forest, totals, votes)
    share_out(forest, smoothing, weights, position, totals, votes, probabilities)
    if reads(forest.reader):
        label = blend(forest, sight, probabilities)
    make_honest(forest, label, smoothing, weights, position, wanted, probabilities)
    return label


@called
def tell_label(forest, label, smoothing, weights, position, wanted, totals, votes, probabilities):
    """Fill `probabilities` where the label is known, and the totals and votes that it comes from; nobody reads."""
    share_out(forest, smoothing, weights, position, totals, votes, probabilities)
    make_honest(forest, label, smoothing, weights, position, wanted, probabilities)


@inlined
def share_out(forest, smoothing, weights, position, totals, votes, probabilities):
    """What the trees that ask say by themselves."""
    if forest.vote == ADDITIVE:
        for c in range(len(votes)):
            probabilities[c] = votes[c]
    elif labels_vote(forest):
        mean_shares(forest, smoothing, weights, position, probabilities)
    else:
        pooled_shares(forest, smoothing, totals, probabilities)


@inlined
def blend(forest, sight, probabilities):
    """Let the reader have its say, if it sees anything; gives the label, which is then that of both."""
    share = forest.reader.blend if sees(sight) else 0.0
    read(forest.reader, sight)
    label = 0
    for c in range(len(probabilities)):
        probabilities[c] = (1.0 - share) * probabilities[c] + share * sight.chances[c]
        label = c if probabilities[c] > probabilities[label] else label
    return least_penalty(forest.penalties, probabilities) if len(forest.penalties) else label


@inlined
def make_honest(forest, label, smoothing, weights, position, wanted, probabilities):
    """Put the label first, and bring what is told nearer to what comes true."""
    leader = label
    if len(forest.penalties) == 0:
        put_first(label, probabilities)
    else:
        for c in range(len(probabilities)):
            leader = c if probabilities[c] > probabilities[leader] else leader
    if len(forest.calibration):
        far, done = progress(forest, smoothing, weights, position, wanted)
        calibrate(forest.calibration, far, done, leader, probabilities)


@inlined
def sureness(forest, label, probabilities):
    """What a confidence is compared with: the label's told probability or, if that is what this ensemble stops by, 1 less the penalty to be
    expected of it, as a share of the greatest one; where all mistakes cost the same the two are one."""
    if not forest.weighs or len(forest.penalties) == 0:
        return probabilities[label]
    expected, greatest = 0.0, 0.0
    for i in range(len(probabilities)):
        expected += forest.penalties[label, i] * probabilities[i]
        for c in range(len(probabilities)):
            greatest = max(greatest, forest.penalties[c, i])
    return 1.0 - expected / greatest if greatest > 0.0 else 1.0


@inlined
def mean_shares(forest, smoothing, weights, position, probabilities):
    probabilities[:] = 0.0
    unknown = 0.0
    for t in range(len(position)):
        if weights[t] == 0.0:
            continue
        only = only_class(forest, position[t])
        if only >= 0:
            cases = forest.nodes[position[t]]["low"]
            each = weights[t] / (cases + smoothing)
            probabilities[only] += each * cases
            unknown += each * smoothing
            continue
        begin, end = stretch(forest, position[t])
        cases = 0.0
        for k in range(begin, end):
            cases += value_at(forest, k)
        if cases + smoothing == 0.0:
            unknown += weights[t]
            continue
        each = weights[t] / (cases + smoothing)
        for k in range(begin, end):
            probabilities[class_at(forest, k)] += each * value_at(forest, k)
        unknown += each * smoothing
    for c in range(len(probabilities)):
        probabilities[c] += unknown * forest.prior[c]
    to_one(probabilities)


@inlined
def pooled_shares(forest, smoothing, totals, probabilities):
    cases = 0.0
    for c in range(len(totals)):
        cases += totals[c]
    for c in range(len(totals)):
        probabilities[c] = totals[c] + (smoothing if cases + smoothing > 0.0 else 1.0) * forest.prior[c]
    to_one(probabilities)


@inlined
def to_one(probabilities):
    """Scale to a sum of 1 by the sum itself: rounding puts none above 1, and one that is alone is 1."""
    total = 0.0
    for c in range(len(probabilities)):
        total += probabilities[c]
    for c in range(len(probabilities)):
        probabilities[c] /= total


@inlined
def put_first(label, probabilities):
    """Pool the label with the classes that stand before it, and let it lead by a hair."""
    own = probabilities[label]
    together, above = own, 0
    for c in range(len(probabilities)):
        if probabilities[c] > own or (probabilities[c] == own and c < label):
            together += probabilities[c]
            above += 1
    if above == 0:
        return
    mean = together / (above + 1)
    for c in range(len(probabilities)):
        if probabilities[c] > own or (probabilities[c] == own and c < label):
            probabilities[c] = mean * (1.0 - HAIR)
    probabilities[label] = mean * (1.0 + above * HAIR)


@inlined
def progress(forest, smoothing, weights, position, wanted):
    """Two shares, means over the trees by weight; both are 0 at the roots.

    How far they have come, to 1 at nodes of a single case, on a scale of logarithms; and how many ask for nothing more.
    """
    one = smoothing if smoothing > 0.0 else 1.0  # a case, where weights are of another size
    far, done, total = 0.0, 0.0, 0.0
    for t in range(len(position)):
        total += weights[t]
        if position[t] == forest.roots[t]:
            continue
        if wanted[t] < 0:
            done += weights[t]
        if forest.vote == ADDITIVE:  # scores are no cases: a tree has come as far as it can once it has left its root
            far += weights[t]
            continue
        whole, here = cases_at(forest, forest.roots[t]), cases_at(forest, position[t])
        if here < whole and whole > one:
            far += weights[t] * np.log(whole / max(here, one)) / np.log(whole / one)
    return far / total, done / total


@inlined
def cases_at(forest, i):
    if only_class(forest, i) >= 0:
        return forest.nodes[i]["low"]
    begin, end = stretch(forest, i)
    cases = 0.0
    for k in range(begin, end):
        cases += value_at(forest, k)
    return cases


@inlined
def calibrate(calibration, far, done, leader, probabilities):
    """Move the leader's probability, the more the further the trees have come, and scale the others to what is left. It stays ahead."""
    told, second = probabilities[leader], 0.0
    for c in range(len(probabilities)):
        if c != leader:
            second = max(second, probabilities[c])
    if second == 0.0:  # one class, or others that cannot be scaled
        return
    sure = min(max(told, SUREST), 1.0 - SUREST)
    odds = np.log(sure / (1.0 - sure))
    slope, end_bias, bias = calibration[0], calibration[1], calibration[2 + leader]
    moved = 1.0 / (1.0 + np.exp(-(odds + far * (bias + slope * odds) + done * end_bias)))
    moved = max(min(moved, 1.0 - SUREST), second / (second + 1.0 - told) * (1.0 + HAIR))
    for c in range(len(probabilities)):
        if c != leader:
            probabilities[c] *= (1.0 - moved) / (1.0 - told)
    probabilities[leader] = moved
