"""ASTC: Kusner, Chen, Zhou, Xu, Weinberger, Chen: Feature-Cost Sensitive Learning with Submodular Trees of Classifiers (AAAI 2014).

A tree of linear classifiers, grown from the root. Each node has the same budget for features that no node above it has bought; it takes
them greedily by what they explain per cost, fits ordinary least squares to its rows with everything bought on its path, and sends half of
its rows to each child. docs/results/peers.md says what is ours where the description leaves a choice.
"""

import numpy as np

from benchmarks.peers.paths import PathTree, direction, halving, least_squares


class ASTC(PathTree):
    """`budget`: what one node may spend, in the units of the costs; a case pays at most (depth + 1) times that."""

    def __init__(self, budget, depth=3, ridge=1e-4, least_rows=20):
        self.budget, self.depth = budget, depth
        self.ridge = ridge  # only so that columns that say the same do no harm
        self.least_rows = least_rows

    def fit(self, X, y, costs, owner=None):
        """`owner[j]` is the raw feature that column j is made of, with one cost for all its columns."""
        Z, Y = self._open(X, y, costs, owner)
        self._grow(0, Z, Y, np.zeros(len(self.costs_), bool))
        return self

    def _grow(self, node, Z, Y, free):
        new = self._select(Z, Y, free)
        self.uses_[node] = new
        weights = self.votes_[node] = least_squares(Z, Y, (free | new)[self.owner_], self.ridge)
        scores = Z @ weights
        axis = direction(scores)
        cut = halving(scores @ axis)
        above = scores @ axis > cut
        inner = 2 * node + 2 < len(self.cuts_) and min(above.sum(), (~above).sum()) >= self.least_rows
        if inner:
            self.leaf_[node], self.cuts_[node], self.routes_[node] = False, cut, weights @ axis
            for child, rows in ((2 * node + 1, ~above), (2 * node + 2, above)):
                self._grow(child, Z[rows], Y[rows], free | new)

    def _select(self, Z, Y, free):
        """The raw features bought here: again and again the one that explains most of what is left, per cost, of those still affordable."""
        fit = Explained(Z[:, :-1], Y, self.ridge)
        fit.take(np.flatnonzero(free[self.owner_]))
        new, left = np.zeros(len(free), bool), self.budget
        columns = [np.flatnonzero(self.owner_ == feature) for feature in range(len(free))]
        while True:
            gains = np.array([fit.gain(some) for some in columns])
            gains[free | new | (self.costs_ > left + 1e-9)] = 0
            if gains.max() <= 1e-6 * fit.all:
                return new
            best = np.argmax(gains / np.maximum(self.costs_, 1e-9))
            fit.take(columns[best])
            new[best], left = True, left - self.costs_[best]


class Explained:
    """Least squares grown by blocks of columns: what is left of the moments once the columns taken so far have explained what they can.

    `gain` is the fall in squared error if a block came next: the rise of the paper's fit function z, times the squared error of the mean.
    """

    def __init__(self, Z, Y, ridge):
        centered, aims = Z - Z.mean(0), Y - Y.mean(0)
        self.among = centered.T @ centered + ridge * len(Z) * np.eye(Z.shape[1])
        self.aims = centered.T @ aims
        self.all = (aims**2).sum() + 1e-12

    def gain(self, block):
        if len(block) == 1:
            return (self.aims[block[0]] ** 2).sum() / self.among[block[0], block[0]]
        return (self.aims[block] * np.linalg.solve(self.among[np.ix_(block, block)], self.aims[block])).sum()

    def take(self, block):
        """Take a block's part out of all columns and of the aims; its own columns are left with next to nothing."""
        if not len(block):
            return
        shares = np.linalg.solve(self.among[np.ix_(block, block)], self.among[block]).T
        self.aims = self.aims - shares @ self.aims[block]
        self.among = self.among - shares @ self.among[block]
        self.among[block, block] += 1e-9  # not 0, so that asking again divides by something
