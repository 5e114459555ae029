"""The price of a feature in context: what is bought, and which groups are entered. The one place where it is decided.

not bought, its group not entered      cost
not bought, its group entered          cost_in_group
bought                                 0
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined, kernel

NO_GROUP = -1


class Prices(NamedTuple):
    """A cost model as kernels read it, in millionths."""

    cost: NDArray[np.int64]
    cost_in_group: NDArray[np.int64]
    group: NDArray[np.int32]  # NO_GROUP: in none
    groups: int
    floor: float  # the least price that a score divides by
    order_free: bool  # what a set of features costs does not depend on the order of buying


class Basket(NamedTuple):
    """What somebody has bought."""

    bought: NDArray[np.bool_]  # per feature
    entered: NDArray[np.bool_]  # per group


@kernel
def new_basket(prices):
    return Basket(np.zeros(len(prices.cost), np.bool_), np.zeros(prices.groups, np.bool_))


@inlined
def empty(basket):
    basket.bought[:] = False
    basket.entered[:] = False


@inlined
def marginal(prices, basket, feature):
    """What a feature costs now."""
    if basket.bought[feature]:
        return 0
    if prices.group[feature] >= 0 and basket.entered[prices.group[feature]]:
        return prices.cost_in_group[feature]
    return prices.cost[feature]


@inlined
def buy(prices, basket, feature):
    basket.bought[feature] = True
    if prices.group[feature] >= 0:
        basket.entered[prices.group[feature]] = True
