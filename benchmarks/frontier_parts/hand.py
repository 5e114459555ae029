"""The part "hand": some features cost fifty times what others cost, and a person picks a set and grows a forest of 200 trees on it.

Ours is one model, served at an aim (the mean cost) and under a hard budget of the same size.
"""

from typing import Any

import numpy as np

from benchmarks.frontier_parts import forests
from benchmarks.frontier_parts.hard import all_rows, cell, under_budgets
from benchmarks.frontier_parts.ours import fitted, served
from benchmarks.frontier_parts.selection import Selection
from benchmarks.frontier_parts.tables import Data, Rows

BUDGETS = (5, 10, 25, 50, 100)  # percent of the cost of everything
TREES = 200


def hand_anchors(data: Data, threads: int, strict: bool) -> dict[str, Any]:
    selection = Selection(data, threads)

    def rivals(budget: float) -> dict[str, Any]:
        return {"by hand": by_hand(data, sets(data, selection, budget), threads, strict)}

    return under_budgets(data, BUDGETS, rivals)


def hand(data: Data, threads: int, strict: bool) -> dict[str, Any]:
    model = fitted(data, threads, strict)

    def rivals(budget: float) -> dict[str, Any]:
        aimed, limited = served(model, data, aim=budget), served(model, data, budget=budget)
        assert limited.cost.max() <= budget, "a case passed its limit"
        return {"ours": cell(data, aimed.labels, aimed.cost), "ours, hard": cell(data, limited.labels, limited.cost)}

    return under_budgets(data, BUDGETS, rivals)


def sets(data: Data, selection: Selection, budget: float) -> list[list[int]]:
    """What a person would try: the set found step by step, and all features where they are affordable."""
    return [selection.best(budget)] + [list(range(len(data.names)))] * (budget >= data.everything)


def by_hand(data: Data, choices: list[list[int]], threads: int, strict: bool) -> dict[str, Any]:
    """A forest on the set with which one errs least on validation rows, refitted on those too."""

    def error(features: list[int]) -> float:
        return float(np.mean(forest_labels(data, features, threads, data.train, data.validation) != data.validation.classes))

    features = min(choices, key=error) if len(choices) > 1 else choices[0]
    asked = np.zeros(data.test.codes.shape, bool)
    asked[:, features] = True
    said = forest_labels(data, features, threads, all_rows(data, strict), data.test)
    return cell(data, said, data.spent(data.test, asked)) | {"features": [data.names[i] for i in features]}


def forest_labels(data: Data, features: list[int], threads: int, train: Rows, judged: Rows) -> np.ndarray:
    if not features:
        return np.full(len(judged.codes), np.bincount(train.classes).argmax())
    forest, columns = forests.grown(data, threads, TREES, train, features)
    return forest.predict(columns.table(judged.codes))
