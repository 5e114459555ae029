"""What CSTC minimises, and its slopes.

The relaxed objective has a root for every absolute weight and for every path and raw feature. Each root is bounded by a parabola that
touches it where the weights stand, sqrt(z) <= (z / g + g) / 2 for every g > 0, so that between two new bounds everything is smooth.
"""

import numpy as np

FLOOR = 1e-4  # under every root, which has no slope at 0


class Objective:
    """Of one table; `weights` are (nodes, columns, targets), `cuts` one per inner node."""

    def __init__(self, Z, Y, owner, prices, depth, rho, slope, inner):
        self.Z, self.Y, self.owner, self.prices, self.rho, self.slope = Z, Y, owner, prices, rho, slope
        self.inner = 2**depth - 1
        self.nodes = 2 * self.inner + 1
        self.leaves = np.arange(self.inner, self.nodes)
        self.on_path = np.array([[node in path(leaf) for node in range(self.nodes)] for leaf in self.leaves], float)
        self.loss_weight = np.where(np.arange(self.nodes) < self.inner, inner, 1.0) / len(Z)
        self.axes = np.tile(np.eye(Y.shape[1])[0], (self.nodes, 1))  # which mix of a node's scores is compared with its cut

    def used(self, weights):
        """The sum of squared weights of every raw feature on every path: (leaves, raw features)."""
        per_feature = np.zeros((len(self.prices), self.nodes))
        np.add.at(per_feature, self.owner, (weights[:, :-1] ** 2).sum(2).T)
        return self.on_path @ per_feature.T

    def bounds(self, weights):
        """The g of every absolute weight, and of every path and raw feature, where the parabolas touch."""
        return np.sqrt(weights[:, :-1] ** 2 + FLOOR**2), np.sqrt(self.used(weights) + FLOOR**2)

    def curvature(self, reach, absolute, roots):
        """What half of each squared weight is multiplied with in the bound, as long as the probabilities of the paths stand."""
        per_node = self.on_path.T @ (reach.mean(1)[self.leaves, None] * self.prices / roots)
        return per_node[:, self.owner, None] + self.rho / absolute

    def forward(self, weights, cuts):
        """Scores (nodes, rows, targets), the probability of going up at inner nodes, and that of coming to each node."""
        scores = np.einsum("id,kdm->kim", self.Z, weights, optimize=True)
        routing = np.einsum("kim,km->ki", scores[: self.inner], self.axes[: self.inner])
        up = 1 / (1 + np.exp(-np.clip(self.slope * (routing - cuts[:, None]), -40, 40)))
        reach = np.ones((self.nodes, len(self.Z)))
        for node in range(self.inner):
            reach[2 * node + 1], reach[2 * node + 2] = reach[node] * (1 - up[node]), reach[node] * up[node]
        return scores, up, reach

    def value(self, weights, cuts, absolute, roots):
        """The bounded objective and its slopes by weights and by cuts."""
        scores, up, reach = self.forward(weights, cuts)
        misses = scores - self.Y
        worth = (misses**2).mean(2) * self.loss_weight[:, None]
        worth[self.leaves] += ((self.used(weights) / roots + roots) @ self.prices / 2 / len(self.Z))[:, None]
        by_routing = self._back(worth, up, reach)
        by_scores = 2 * reach[:, :, None] * misses * self.loss_weight[:, None, None] / self.Y.shape[1]
        by_scores[: self.inner] += by_routing[:, :, None] * self.axes[: self.inner, None]
        by_weights = np.einsum("id,kim->kdm", self.Z, by_scores, optimize=True)
        by_weights[:, :-1] += self.curvature(reach, absolute, roots) * weights[:, :-1]
        value = worth[0].sum() + self.rho / 2 * (weights[:, :-1] ** 2 / absolute + absolute).sum()
        return value, by_weights, -by_routing.sum(1)

    def _back(self, worth, up, reach):
        """From the leaves up: `worth` becomes what a row costs from each node on; returned are the slopes by what is cut."""
        by_routing = np.zeros_like(up)
        for node in range(self.inner - 1, -1, -1):
            low, high = worth[2 * node + 1], worth[2 * node + 2]
            by_routing[node] = reach[node] * (high - low) * self.slope * up[node] * (1 - up[node])
            worth[node] += (1 - up[node]) * low + up[node] * high
        return by_routing


def path(node):
    """A node and those above it."""
    above = [node]
    while above[-1] > 0:
        above.append((above[-1] - 1) // 2)
    return above
