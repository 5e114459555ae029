"""Values to small integers: at most 255 bins a feature, so that a table is one byte a cell."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels.growth.binning import bin_categories, bin_numbers
from frugal.models.kernels.growth.questions import Bins
from frugal.models.kernels.marks import CUT, EVERY_CATEGORY
from frugal.models.schema import CATEGORICAL, Schema

MOST_BINS = 255  # the 256th code is for missing
SAMPLE = 200_000  # rows that edges are taken from; more change nothing that 255 bins can show


class Binning(NamedTuple):
    """How the values of each feature became bins, and back."""

    edges: tuple[NDArray[np.float64], ...]  # numeric: bin b holds edges[b - 1] < value <= edges[b]
    bin_of: tuple[NDArray[np.uint8], ...]  # categorical: the bin of each category
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, table: NDArray[np.float64], schema: Schema, max_bins: int = MOST_BINS, n_jobs: int = 1, seed: int = 0) -> "Binning":
        """Choose bins from a table of codes: every distinct value its own while there is room, else about equally many rows in each.

        Of a long table, rows drawn with the seed speak for all: every k-th would see one phase of whatever repeats.
        """
        if not 2 <= max_bins <= MOST_BINS:
            raise ValueError(f"max_bins is {max_bins!r}: expected a whole number from 2 to {MOST_BINS}")

        some = sample_rows(len(table), SAMPLE, seed)

        def work(i: int) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
            feature = schema.features[i]
            if feature.kind == CATEGORICAL:
                return np.empty(0), _category_bins(table[:, i], len(feature.categories), max_bins)
            column = table[some, i]
            return _edges(column[~np.isnan(column)], max_bins), np.empty(0, np.uint8)

        with ThreadPoolExecutor(n_jobs) as pool:  # sorting releases the GIL
            found = list(pool.map(work, range(len(schema))))
        sizes = [int(bin_of.max()) + 1 if len(bin_of) else len(edges) + 1 for edges, bin_of in found]
        return cls(tuple(edges for edges, _ in found), tuple(bin_of for _, bin_of in found), np.array(sizes, np.int64))

    def apply(
        self, table: NDArray[np.float64], schema: Schema, n_jobs: int = 1, numeric: int = CUT, categorical: int = EVERY_CATEGORY
    ) -> Bins:
        """The table in bins, feature by feature, with what may be asked of numbers and of categories; missing is the bin after the last."""
        codes = np.empty((len(schema), len(table)), np.uint8)

        def work(i: int) -> None:
            if len(self.bin_of[i]):
                bin_categories(table, i, self.bin_of[i], self.sizes[i], codes[i])
            else:
                bin_numbers(table, i, self.edges[i], self.sizes[i], codes[i])

        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(work, range(len(schema))))
        offsets = np.concatenate([[0], np.cumsum(self.sizes + 1)])[:-1].astype(np.int64)
        form = np.array([categorical if feature.kind == CATEGORICAL else numeric for feature in schema.features], np.uint8)
        return Bins(codes, offsets, self.sizes, form)


def sample_rows(total: int, most: int, seed: int) -> NDArray[np.int64] | slice:
    """Rows to look at where all would be too many: drawn without replacement, in their order."""
    if total <= most:
        return slice(None)
    return np.sort(np.random.default_rng((seed, SAMPLE)).choice(total, most, replace=False))


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
