"""What a tree is to tell, and what its questions cost, as the kernels read them; and the grid that makes sums exact."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import CostModel
from frugal.models.kernels.compiling import as_python
from frugal.models.kernels.growth.context import CASES, CONSTANT, MODEL, NOTHING, PATH, WHOLE, Context
from frugal.models.kernels.growth.targets import COUNTS, GRADIENTS, OBJECTS, Target
from frugal.models.kernels.marks import NONE
from frugal.models.kernels.pricing import buy, new_basket

GRID = 2**20  # weights are rounded to multiples of a power of two this far below the greatest, so that sums and differences are exact
EXACT = 2**53  # whole numbers up to this are exact
NOBODY = np.empty(0, np.int64)
FREELY = np.empty(0, np.int8)  # scores may move with every feature as they like


def counts(classes: NDArray[np.int32], many: int, *, rows_counted: bool = False, step: float = 1.0) -> Target:
    """Cases of each class; rows are counted too where a limit is on them. `step` is that of the weights' grid, for rows shared out."""
    return Target(COUNTS, classes, many, many + rows_counted, many if rows_counted else NONE, np.empty((0, 0)), 0.0, False, step, FREELY)


def objects(classes: NDArray[np.int32], many: int, probabilities: NDArray[np.float64], theta: float) -> Target:
    """Objects of each class, with their probability and their number. Any unit will do for probabilities, if theta has the same."""
    heavy = bool((probabilities > theta).any())
    return Target(OBJECTS, classes, many, 2 * many + 3, NONE, np.empty((0, 0)), float(theta), heavy, 1.0, FREELY)


def gradients(first: NDArray[np.float64], second: NDArray[np.float64]) -> Target:
    """Derivatives of the loss by each score, rows x scores, on grids of their own."""
    derivatives = np.concatenate([exactly(first), exactly(second)], axis=1)
    many = derivatives.shape[1]
    return Target(GRADIENTS, np.empty(0, np.int32), many, many + 1, many, np.ascontiguousarray(derivatives), 0.0, False, 1.0, FREELY)


def constant(costs: CostModel) -> Context:
    """Prices that never change."""
    return _context(CONSTANT, costs)


def on_path(costs: CostModel, bought: Collection[int] = ()) -> Context:
    """Prices given what the path has bought, and what was bought before it began."""
    context = _context(PATH, costs)
    for feature in bought:
        as_python(buy)(costs.served, context.basket, feature)
    return context


def of_model(costs: CostModel, cases: float) -> Context:
    """Prices given what all trees so far have bought, paid for so many cases. What is bought changes while trees grow."""
    return Context(MODEL, costs.served, new_basket(costs.served), float(cases), np.empty((0, 0), np.uint8), NOBODY)


def of_cases(costs: CostModel, owes: NDArray[np.uint8], purse: NDArray[np.int64] = NOBODY) -> Context:
    """What each case would really pay. Both arrays change while trees grow: what a case was asked, it has paid."""
    return Context(CASES, costs.served, new_basket(costs.served), 1.0, owes, purse)


def owing(codes: NDArray[np.uint8], sizes: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Every case owes the whole price of every feature that it has a value of."""
    return np.where(codes == sizes[:, None], NOTHING, WHOLE).astype(np.uint8)


def _context(kind: int, costs: CostModel) -> Context:
    return Context(kind, costs.served, new_basket(costs.served), 1.0, np.empty((0, 0), np.uint8), NOBODY)


def on_grid(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights as multiples of a power of two, at least one step each: a row that counts does not vanish.

    Whole numbers up to a million stay as they are.

    Examples
    --------
    >>> on_grid(np.array([1.0, 2.0, 0.0])).tolist()
    [1.0, 2.0, 0.0]
    >>> (on_grid(np.array([1.0, 0.5, 1e-9, 0.0])) * GRID).tolist()
    [1048576.0, 524288.0, 1.0, 0.0]
    """
    most = weights.max(initial=0.0)
    if most <= GRID and (weights == np.rint(weights)).all():
        return weights
    step = 2.0 ** np.ceil(np.log2(most / GRID))
    return np.asarray(np.where(weights > 0, np.maximum(np.rint(weights / step), 1.0), 0.0) * step)


def exactly(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers of either sign as multiples of a power of two, so fine that the sum of all of them is still exact.

    Examples
    --------
    >>> exactly(np.array([0.1, -0.3])).tolist() == [0.1, -0.3]
    False
    >>> float(abs(exactly(np.array([0.1, -0.3])) - [0.1, -0.3]).max()) < 1e-15
    True
    """
    total = float(np.abs(values).sum())
    if total == 0.0:
        return values
    step = 2.0 ** np.ceil(np.log2(total / (EXACT / 4)))  # a quarter: rounding adds up to half a step per number
    return np.asarray(np.rint(values / step) * step)
