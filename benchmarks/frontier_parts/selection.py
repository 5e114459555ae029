"""A fixed set of features that everybody is asked for: greedy forward selection within a budget, as a person with time would do it.

From nothing on, the feature joins with which a small LightGBM (50 trees of 15 leaves, rate .1) errs least on validation rows; tried are the
20 affordable ones that a model on everything gained most from. It goes on while something is affordable, until three features in a row
have not helped; the set of least validation error on the way is taken. The same once more by what the error falls per price. The better of
the two sets counts, or one found for a smaller budget before: nobody does worse for having more to spend.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.frontier_parts import cegb
from benchmarks.frontier_parts.tables import Data

SMALL = cegb.Recipe(leaves=15, trees=50)
CANDIDATES, PATIENCE = 20, 3
PENNY = 1e-6  # budgets are rounded to it


class Selection:
    """Sets of features of one draw, judged on validation rows; each set once, whatever the budget."""

    def __init__(self, data: Data, threads: int) -> None:
        self.data, self.threads = data, threads
        gains = cegb.trained(data, SMALL, threads).feature_importance("gain")
        self.ranked = np.argsort(-gains, kind="stable").tolist()
        commonest = np.bincount(data.train.classes).argmax()
        self.found: set[frozenset[int]] = set()
        self.errors = {frozenset[int](): float(np.mean(data.validation.classes != commonest))}

    def best(self, budget: float) -> list[int]:
        """The best set found so far that fits; the cheaper one of equals."""
        self.found |= {self._grown(budget, rule) for rule in (self._by_error, self._by_fall_per_price)}
        sets = [chosen for chosen in self.found if self.cost(chosen) <= budget + PENNY]
        return sorted(min(sets, key=lambda chosen: (self.error(chosen), self.cost(chosen), sorted(chosen))))

    def error(self, chosen: frozenset[int]) -> float:
        if chosen not in self.errors:
            features, rows = sorted(chosen), self.data.validation
            booster = cegb.trained(self.data, SMALL, self.threads, features=features)
            self.errors[chosen] = float(np.mean(cegb.labels(booster, rows.codes[:, features]) != rows.classes))
        return self.errors[chosen]

    def cost(self, chosen: frozenset[int]) -> float:
        return self.data.costs.total([self.data.names[i] for i in chosen])

    def _grown(self, budget: float, rule: Callable[[frozenset[int], int], float]) -> frozenset[int]:
        chosen = best = frozenset[int]()
        in_vain = 0
        while in_vain < PATIENCE and (affordable := self._affordable(chosen, budget)):
            chosen |= {min(affordable, key=lambda i: rule(chosen, i))}
            in_vain += 1
            if self.error(chosen) < self.error(best):
                best, in_vain = chosen, 0
        return best

    def _affordable(self, chosen: frozenset[int], budget: float) -> list[int]:
        return [i for i in self.ranked if i not in chosen and self.cost(chosen | {i}) <= budget + PENNY][:CANDIDATES]

    def _by_error(self, chosen: frozenset[int], i: int) -> float:
        return self.error(chosen | {i})

    def _by_fall_per_price(self, chosen: frozenset[int], i: int) -> float:
        price = self.cost(chosen | {i}) - self.cost(chosen)
        return (self.error(chosen | {i}) - self.error(chosen)) / max(price, 1e-6)
