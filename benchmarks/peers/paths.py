"""A complete binary tree of linear classifiers, as ASTC and CSTC both grow it, and the walk of a case down one path of it.

Node k has the children 2k + 1 (score at most the cut) and 2k + 2 (score above it). A case pays at each node it comes to for the raw
features that this node uses and that it has not paid for yet; where it stops, the node there votes with the features of its whole path.
"""

import numpy as np


class PathTree:
    """What both learners share; they fill `routes_`, `cuts_`, `votes_`, `uses_` and `leaf_`."""

    depth: int

    def acquire(self, X, depth=None):
        """(labels, cost of each row, rows x raw features that were bought), walking at most `depth` levels below the root."""
        Z = self._columns(X)
        node, bought = np.zeros(len(Z), int), np.zeros((len(Z), len(self.costs_)), bool)
        for level in range((self.depth if depth is None else depth) + 1):
            if level:
                above = np.einsum("ij,ij->i", Z, self.routes_[node]) > self.cuts_[node]
                node = np.where(self.leaf_[node], node, 2 * node + 1 + above)
            bought |= self.uses_[node]
        scores = np.einsum("ij,ijk->ik", Z, self.votes_[node])
        return self.classes_[decided(scores)], bought @ self.costs_, bought

    def _open(self, X, y, costs, owner):
        """Checks, scales and an empty tree; the columns with a last one of ones, and the targets."""
        X, self.costs_ = np.asarray(X, float), np.asarray(costs, float)
        self.owner_ = np.arange(X.shape[1]) if owner is None else np.asarray(owner, int)
        if len(self.owner_) != X.shape[1] or self.owner_.max() >= len(self.costs_):
            raise ValueError(f"owner must name one of {len(self.costs_)} features for each of {X.shape[1]} columns, got {self.owner_}")
        spread = X.std(0)
        self.center_, self.scale_ = X.mean(0), np.where(spread > 0, spread, 1)
        self.classes_, codes = np.unique(y, return_inverse=True)
        Z, Y = self._columns(X), targets(codes, len(self.classes_))
        nodes = 2 ** (self.depth + 1) - 1
        self.routes_, self.cuts_ = np.zeros((nodes, Z.shape[1])), np.full(nodes, np.inf)
        self.votes_, self.leaf_ = np.zeros((nodes, Z.shape[1], Y.shape[1])), np.ones(nodes, bool)
        self.uses_ = np.zeros((nodes, len(self.costs_)), bool)
        return Z, Y

    def _columns(self, X):
        Z = (np.asarray(X, float) - self.center_) / self.scale_
        return np.column_stack([Z, np.ones(len(Z))])


def targets(codes, classes):
    """-1 and 1: one column for two classes, as in the papers, else a column per class."""
    if classes == 2:
        return 2.0 * codes[:, None] - 1
    return 2.0 * (codes[:, None] == np.arange(classes)) - 1


def decided(scores):
    """The class whose score is highest; with one column, the sign."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(1)


def least_squares(Z, Y, columns, ridge):
    """Weights on some columns and on the last, which is all ones and free; the others are 0."""
    kept = np.append(np.flatnonzero(columns), Z.shape[1] - 1)
    small = Z[:, kept]
    penalty = np.full(len(kept), ridge * len(Z))
    penalty[-1] = 1e-9
    weights = np.zeros((Z.shape[1], Y.shape[1]))
    weights[kept] = np.linalg.solve(small.T @ small + np.diag(penalty), small.T @ Y)
    return weights


def direction(scores):
    """What is compared with a cut: the first principal axis of the scores, which for two classes is the score itself."""
    if scores.shape[1] == 1:
        return np.ones(1)
    return np.linalg.eigh(np.cov(scores.T))[1][:, -1]


def halving(scores):
    """The cut that leaves nearest to half of the scores on each side; infinity where all are the same."""
    values, counts = np.unique(np.round(scores, 9), return_counts=True)
    if len(values) < 2:
        return np.inf
    best = np.argmin(np.abs(np.cumsum(counts)[:-1] - len(scores) / 2))
    return (values[best] + values[best + 1]) / 2
