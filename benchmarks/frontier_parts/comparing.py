"""Whether one rival is really ahead of another: the difference of their errors and how far it can be trusted."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.frontier_parts.curves import Reading


class Difference(NamedTuple):
    """Mean difference of two errors over seeds, and its standard error."""

    mean: float
    error: float

    @property
    def behind(self) -> bool:
        """Whether the first is behind by more than two standard errors."""
        return self.mean > 2 * self.error


def difference(ours: Sequence[Reading], theirs: Sequence[Reading]) -> Difference:
    """Ours less theirs, a pair of readings per seed, on the same test rows.

    Two standard errors are known: from the differences row by row within a seed, and, with several seeds, from how far the seeds are apart.
    Three seeds may agree by chance, so the larger one counts.
    """
    rows = [mine.rows - other.rows for mine, other in zip(ours, theirs, strict=True)]
    means = [float(each.mean()) for each in rows]
    within = sum(float(each.var()) / len(each) for each in rows) / len(rows) ** 2
    between = float(np.var(means, ddof=1)) / len(means) if len(means) > 1 else 0.0
    return Difference(float(np.mean(means)), max(within, between) ** 0.5)
