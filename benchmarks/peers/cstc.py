"""CSTC: Xu, Kusner, Weinberger, Chen: Cost-Sensitive Tree of Classifiers (ICML 2013; also JMLR 15, 2014).

A complete binary tree of linear classifiers, all trained at once. In training a case goes to both children with probabilities: a sigmoid
of its score less the node's cut. Minimised is the squared loss of all nodes, weighted by the probability of coming there, plus rho times
the absolute weights, plus lam times the expected cost of the paths, in which "this path uses the feature" is relaxed to the root of the sum
of the feature's squared weights on the path. docs/results/peers.md says what is ours where the description leaves a choice.
"""

import numpy as np
from scipy.optimize import minimize

from benchmarks.peers.objective import Objective, path
from benchmarks.peers.paths import PathTree, direction, halving, least_squares

SMALL = 1e-2  # a weight below this, on a column of variance 1 and targets of -1 and 1, is taken for 0


class CSTC(PathTree):
    """`lam`: the price of money against squared loss, where buying everything costs 1."""

    def __init__(self, lam, depth=3, rho=1e-3, slope=4.0, inner=1.0, rounds=12, steps=12, ridge=1e-3, least_rows=20):
        self.lam, self.depth, self.rho = lam, depth, rho
        self.slope = slope  # how sharply a score above the cut sends a case up; 1 is the plain sigmoid
        self.inner = inner  # weight of the inner nodes' losses beside the leaves'
        self.rounds, self.steps = rounds, steps  # of new bounds on the roots, and of L-BFGS under one bound
        self.ridge, self.least_rows = ridge, least_rows

    def fit(self, X, y, costs, owner=None):
        """`owner[j]` is the raw feature that column j is made of, with one cost for all its columns."""
        Z, Y = self._open(X, y, costs, owner)
        prices = self.lam * self.costs_ / self.costs_.sum()
        objective = Objective(Z, Y, self.owner_, prices, self.depth, self.rho, self.slope, self.inner)
        weights, cuts = start(objective)
        for _ in range(self.rounds):
            weights, cuts = improve(objective, weights, cuts, self.steps)
        weights[:, :-1][np.abs(weights[:, :-1]).max(2) < SMALL] = 0
        self._settle(0, Z, Y, weights, cuts, objective.axes)
        return self

    def _settle(self, node, Z, Y, weights, cuts, axes):
        """Cases now go one way; the vote of each node is fitted again to its rows, with all that its path has paid for."""
        self.uses_[node, self.owner_[np.flatnonzero(weights[node, :-1].any(1))]] = True
        paid = self.uses_[path(node)].any(0)
        self.votes_[node] = least_squares(Z, Y, paid[self.owner_], self.ridge)
        if node >= len(cuts):
            return
        route = weights[node] @ axes[node]
        above = Z @ route > cuts[node]
        if min(above.sum(), (~above).sum()) >= self.least_rows:
            self.leaf_[node], self.routes_[node], self.cuts_[node] = False, route, cuts[node]
            self._settle(2 * node + 1, Z[~above], Y[~above], weights, cuts, axes)
            self._settle(2 * node + 2, Z[above], Y[above], weights, cuts, axes)


def start(objective):
    """From the root down: each node alone on the rows that come to it, by least squares under ever new bounds, its cut in their middle."""
    weights = np.zeros((objective.nodes, objective.Z.shape[1], objective.Y.shape[1]))
    cuts = np.zeros(objective.inner)
    for node in range(objective.nodes):
        alone(objective, weights, cuts, node)
        if node < objective.inner:
            scores = objective.Z @ weights[node]
            objective.axes[node] = direction(scores)
            cut = halving(scores @ objective.axes[node])
            cuts[node] = cut if np.isfinite(cut) else 0.0
    return weights, cuts


def alone(objective, weights, cuts, node, rounds=10):
    """Fit one node's weights in place; what its ancestors use costs it little, since the root of a path's squares is flat there."""
    share = objective.forward(weights, cuts)[2][node] / len(objective.Z)
    weights[node] = 1.0  # at 0 the bounds would be so steep that nothing gets away
    for _ in range(rounds):
        reach = objective.forward(weights, cuts)[2]
        heavy = objective.curvature(reach, *objective.bounds(weights))[node]
        weights[node] = weighted(objective.Z, objective.Y, share, heavy)


def weighted(Z, Y, share, heavy):
    """Least squares with a weight per row and a penalty per column and target; the last column is free."""
    gram, aims = (Z * share[:, None]).T @ Z, (Z * share[:, None]).T @ Y
    found = np.empty_like(aims)
    for target in range(Y.shape[1]):
        penalty = np.append(heavy[:, target] * Y.shape[1] / 2, 1e-9)
        found[:, target] = np.linalg.solve(gram + np.diag(penalty), aims[:, target])
    return found


def improve(objective, weights, cuts, steps):
    """New bounds, and a few steps of L-BFGS for all nodes at once under them."""
    absolute, roots = objective.bounds(weights)
    scale = np.ones_like(weights)  # a weight held by a steep bound moves in small steps
    scale[:, :-1] = 1 / np.sqrt(1 + objective.curvature(objective.forward(weights, cuts)[2], absolute, roots))
    size = weights.size

    def bounded(packed):
        value, by_weights, by_cuts = objective.value(packed[:size].reshape(weights.shape) * scale, packed[size:], absolute, roots)
        return value, np.concatenate([(by_weights * scale).ravel(), by_cuts])

    begin = np.concatenate([(weights / scale).ravel(), cuts])
    found = minimize(bounded, begin, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
    return found[:size].reshape(weights.shape) * scale, found[size:]
