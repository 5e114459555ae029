"""Between two trees of a boosted path: derivatives of the loss on the grid, and every row's way through the tree that was just grown."""

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.growth.context import CASES, pay_for
from frugal.models.kernels.growth.questions import BEHIND, outcome_of

LOG, SQUARED = range(2)
FINEST = 2.0**51  # of a step: sums of all rows stay below 2^53 of them, rounding included


@kernel
def derive(loss, classes, weights, scores, derivatives):
    """Fill in the first derivatives of the loss by each score, then the second, each kind on a grid so fine that all sums are exact.

    Of two classes there is one score, the log odds of the second.
    """
    many = scores.shape[1]
    first, second = 0.0, 0.0
    for i in range(len(classes)):
        if loss == SQUARED:
            for c in range(many):
                wanted = 1.0 if classes[i] == (c if many > 1 else 1) else -1.0
                derivatives[i, c], derivatives[i, many + c] = weights[i] * (scores[i, c] - wanted), weights[i]
        elif many == 1:
            chance = 1.0 / (1.0 + np.exp(-scores[i, 0]))
            derivatives[i, 0] = weights[i] * (chance - (classes[i] == 1))
            derivatives[i, 1] = weights[i] * chance * (1.0 - chance)
        else:
            softmax_derivatives(classes[i], weights[i], scores[i], derivatives[i])
        for c in range(many):
            first += abs(derivatives[i, c])
            second += derivatives[i, many + c]
    to_grid(derivatives, 0, many, first)
    to_grid(derivatives, many, 2 * many, second)


@inlined
def softmax_derivatives(class_, weight, scores, derivatives):
    """Scores have one number too many: with k of them a step of each would be k / (k - 1) too long together."""
    many = len(scores)
    top, total = scores[0], 0.0
    for c in range(1, many):
        top = max(top, scores[c])
    for c in range(many):
        derivatives[c] = np.exp(scores[c] - top)
        total += derivatives[c]
    for c in range(many):
        chance = derivatives[c] / total
        derivatives[c] = weight * (chance - (c == class_))
        derivatives[many + c] = weight * chance * (1.0 - chance) * many / (many - 1.0)


@inlined
def to_grid(derivatives, low, high, total):
    if total == 0.0:
        return
    step = 2.0 ** np.ceil(np.log2(total / FINEST))
    for i in range(len(derivatives)):
        for c in range(low, high):
            derivatives[i, c] = np.rint(derivatives[i, c] / step) * step


@kernel
def settle(node, bins, context, begin, end, values, scores):
    """Let rows walk the tree that was just grown, pay for what it asks them, and take the values of the node where they end.

    Questions have two outcomes. A row stays where its value is missing and the question has no way for that, and where it cannot pay.
    """
    for row in range(begin, end):
        i = np.int64(0)
        while node.feature[i] >= 0:
            f = node.feature[i]
            outcome = outcome_of(bins.codes[f, row], bins.form[f], bins.sizes[f], node.cut[i], node.way[i], node.chosen[i])
            if (context.kind == CASES and not pay_for(context, f, row)) or outcome == BEHIND:
                break
            i = node.first[i] + outcome
        for c in range(scores.shape[1]):
            scores[row, c] += values[i, c]
