"""Values to small integers: at most 255 bins a feature, so that a table is one byte a cell."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.kernels.splitting import Bins
from models.schema import CATEGORICAL, Schema

MOST_BINS = 255  # the 256th code is for missing
SAMPLE = 200_000  # rows that edges are taken from; more change nothing that 255 bins can show


class Binning(NamedTuple):
    """How the values of each feature became bins, and back."""

    edges: tuple[NDArray[np.float64], ...]  # numeric: bin b holds edges[b - 1] < value <= edges[b]
    bin_of: tuple[NDArray[np.uint8], ...]  # categorical: the bin of each category
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, table: NDArray[np.float64], schema: Schema, max_bins: int = MOST_BINS) -> "Binning":
        """Choose bins from a table of codes: every distinct value its own while there is room, else about equally many rows in each."""
        if not 2 <= max_bins <= MOST_BINS:
            raise ValueError(f"max_bins is {max_bins!r}: expected a whole number from 2 to {MOST_BINS}")
        edges, bin_of, sizes = [], [], []
        for i, feature in enumerate(schema.features):
            column = table[:: max(1, -(-len(table) // SAMPLE)), i]
            if feature.kind == CATEGORICAL:
                bin_of.append(_category_bins(table[:, i], len(feature.categories), max_bins))
                edges.append(np.empty(0))
                sizes.append(int(bin_of[-1].max()) + 1)
            else:
                edges.append(_edges(column[~np.isnan(column)], max_bins))
                bin_of.append(np.empty(0, np.uint8))
                sizes.append(len(edges[-1]) + 1)
        return cls(tuple(edges), tuple(bin_of), np.array(sizes, np.int64))

    def apply(self, table: NDArray[np.float64], classes: NDArray[np.int32], schema: Schema) -> Bins:
        """The table in bins, feature by feature; missing is the bin after the last."""
        codes = np.empty((len(schema), len(table)), np.uint8)
        for i in range(len(schema)):
            column = table[:, i]
            missing = np.isnan(column)
            if len(self.bin_of[i]):
                codes[i] = self.bin_of[i][np.where(missing, 0, column).astype(np.int64)]
            else:
                codes[i] = np.searchsorted(self.edges[i], column)
            codes[i, missing] = self.sizes[i]
        offsets = np.concatenate([[0], np.cumsum(self.sizes + 1)])[:-1].astype(np.int64)
        categorical = np.array([feature.kind == CATEGORICAL for feature in schema.features], np.bool_)
        return Bins(codes, classes, offsets, self.sizes, categorical)


def _edges(values: NDArray[np.float64], max_bins: int) -> NDArray[np.float64]:
    """Where one bin ends and the next begins: halfway between neighbouring values."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 2:
        return np.empty(0)
    if len(distinct) > max_bins:
        share = np.cumsum(counts) * (max_bins / counts.sum())
        last = np.flatnonzero(np.floor(share[:-1]) > np.floor(np.concatenate([[0], share[:-2]])))
    else:
        last = np.arange(len(distinct) - 1)
    low, high = distinct[last], distinct[last + 1]
    middle = low / 2 + high / 2
    return np.where((middle >= low) & (middle < high), middle, low)


def _category_bins(codes: NDArray[np.float64], categories: int, max_bins: int) -> NDArray[np.uint8]:
    """A bin per category; where there are too many, the rarest share the last."""
    if categories <= max_bins:
        return np.arange(categories, dtype=np.uint8)
    counts = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=categories)
    bins = np.full(categories, max_bins - 1, np.uint8)
    bins[np.argsort(-counts, kind="stable")[: max_bins - 1]] = np.arange(max_bins - 1)
    return bins
