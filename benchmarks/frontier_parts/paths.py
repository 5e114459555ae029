"""Which features a case was really asked: those on its path through any tree, told from the leaf it comes to."""

from collections.abc import Iterable, Iterator

import numpy as np


def met(paths: Iterable[np.ndarray], leaves: np.ndarray, features: int) -> Iterator[np.ndarray]:
    """After each tree, rows x features: what was met so far. `paths` has per tree a mask, leaves x features; `leaves` is rows x trees.

    The same array each time, filled further.
    """
    asked = np.zeros((len(leaves), features), bool)
    for mask, leaf in zip(paths, leaves.T, strict=True):
        asked |= mask[leaf]
        yield asked


def mask_of(leaves: list[tuple[int, frozenset[int]]], features: int) -> np.ndarray:
    """One tree's mask from (leaf, the features above it)."""
    mask = np.zeros((len(leaves), features), bool)
    for leaf, above in leaves:
        mask[leaf, list(above)] = True
    return mask
