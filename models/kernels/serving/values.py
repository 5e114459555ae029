"""The values of the nodes, as they are kept: without the zeros, in the fewest bytes.

A node owns a stretch of entries, each a class and a value. Both are read here from plain bytes, little-endian, so that one compiled kernel
serves every width: `class_bytes` is 1 or 2; `value_bytes` is 1, 2 or 4 for whole counts, 8 for floats.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.compiling import inlined


class Values(NamedTuple):
    """What the functions here read; a Forest has fields of the same names."""

    value_start: NDArray[np.int32]  # nodes + 1
    value_class: NDArray[np.uint8]
    class_bytes: int
    values: NDArray[np.uint8]
    value_bytes: int


@inlined
def stretch(kept, i):
    """Where the entries of node i begin and end."""
    i = np.uint64(i)
    return np.uint64(kept.value_start[i]), np.uint64(kept.value_start[i + np.uint64(1)])


@inlined
def class_at(kept, k):
    """The class of entry k."""
    if kept.class_bytes == 1:
        return np.uint64(kept.value_class[k])
    return two_bytes(kept.value_class, np.uint64(2) * k)


@inlined
def value_at(kept, k):
    """The value of entry k."""
    if kept.value_bytes == 1:
        return np.float64(kept.values[k])
    if kept.value_bytes == 2:
        return np.float64(two_bytes(kept.values, np.uint64(2) * k))
    if kept.value_bytes == 4:
        return np.float64(four_bytes(kept.values, np.uint64(4) * k))
    at = np.uint64(8) * k
    bits = four_bytes(kept.values, at) | four_bytes(kept.values, at + np.uint64(4)) << np.uint64(32)
    return np.uint64(bits).view(np.float64)


@inlined
def two_bytes(array, at):
    return np.uint64(array[at]) | np.uint64(array[at + np.uint64(1)]) << np.uint64(8)


@inlined
def four_bytes(array, at):
    return two_bytes(array, at) | two_bytes(array, at + np.uint64(2)) << np.uint64(16)


@inlined
def value_of(kept, i, c):
    """The value of class c at node i."""
    begin, end = stretch(kept, i)
    for k in range(begin, end):
        if class_at(kept, k) == np.uint64(c):
            return value_at(kept, k)
    return 0.0
