"""Places for histograms: taken by a node, handed to a child or given back, never in two hands at once.

    free   | 3 1 . . |      two are free; `take` gives slot 1, `give` puts one back behind it
    held   | 1 0 1 0 |      slots 0 and 2 are in use

Whoever finds none free does without. Giving back what nobody holds is refused: that slot would serve two nodes, and mix their counts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined, kernel
from frugal.models.kernels.marks import NONE


class Slots(NamedTuple):
    """Which slots are free; change it with `take` and `give` alone."""

    free: NDArray[np.int32]  # the first left[0] of these
    left: NDArray[np.int64]  # one number
    held: NDArray[np.bool_]  # per slot


@kernel
def make_slots(many):
    return Slots(np.arange(many).astype(np.int32), np.full(1, many, np.int64), np.zeros(many, np.bool_))


@inlined
def take(slots):
    """A slot that is now the caller's, or NONE if none is free."""
    if slots.left[0] == 0:
        return NONE
    slots.left[0] -= 1
    slot = slots.free[slots.left[0]]
    slots.held[slot] = True
    return slot


@inlined
def give(slots, slot):
    """Give a slot back; NONE, for who had none, is nothing to give."""
    if slot == NONE:
        return
    if slot < 0 or slot >= len(slots.held) or not slots.held[slot]:
        raise ValueError("a histogram's slot is given back that nobody holds")
    slots.held[slot] = False
    slots.free[slots.left[0]] = slot
    slots.left[0] += 1


@inlined
def give_all(slots):
    """Nobody holds any more."""
    for slot in range(len(slots.held)):
        slots.free[slot], slots.held[slot] = slot, False
    slots.left[0] = len(slots.held)
