"""The yardstick's tables: rows, prices and columns of numbers, each with the raw feature that owns it.

Rows are shuffled and cut 60/20/20, adult keeps its own test file; at most 6,000, 3,000 and 4,000 are used. Words, and columns of 3 to 12
whole numbers, are categories: a column for every value that occurs in training. Gaps among numbers get the median.
"""

import csv
import gzip
import zlib
from dataclasses import dataclass

import numpy as np

MOST = (6_000, 3_000, 4_000)
FEW = 12  # different whole numbers that are taken for codes of categories


@dataclass
class Prices:
    """What a feature costs first, and how much less once its group is entered (Turney's blood is drawn once)."""

    first: np.ndarray
    saved: np.ndarray
    group: np.ndarray  # -1: none

    def paid(self, bought):
        """The cost of each row; within a group all members save the same."""
        cost = bought @ (self.first - self.saved)
        for group in range(self.group.max() + 1):
            members = self.group == group
            cost = cost + bought[:, members].any(1) * self.saved[members].max()
        return cost

    @property
    def everything(self):
        return float(self.paid(np.ones((1, len(self.first)), bool))[0])


def load(folder, table, kind, seed, stumps):
    """Three parts (X, y), the owner of every column and the prices."""
    header, parts = rows_of(folder, table, seed)
    columns, owner = [], []
    for feature in range(len(header) - 1):
        made = encode([[row[feature] for row in part] for part in parts], stumps)
        columns.append(made)
        owner += [feature] * made[0].shape[1]
    tables = [np.hstack([made[part] for made in columns]) for part in range(3)]
    labels = [np.array([row[-1] for row in part]) for part in parts]
    prices = turney(folder, table, header[:-1]) if kind == "turney" else drawn(table, len(header) - 1)
    return list(zip(tables, labels, strict=True)), np.array(owner), prices


def rows_of(folder, table, seed):
    """The header, and the rows of train, validation and test."""
    rng = np.random.default_rng(seed)
    own_test = (folder / f"{table}_test.csv.gz").exists()
    header, rows = read(folder / f"{table}{'_train' if own_test else ''}.csv.gz")
    rows = [rows[i] for i in rng.permutation(len(rows))]
    cut = int(len(rows) * (0.75 if own_test else 0.6))
    rest = len(rows) if own_test else int(len(rows) * 0.8)
    test = rows[rest:]
    if own_test:
        others = read(folder / f"{table}_test.csv.gz")[1]
        test = [others[i] for i in rng.permutation(len(others))]
    return header, [part[:most] for part, most in zip((rows[:cut], rows[cut:rest], test), MOST, strict=True)]


def read(path):
    with gzip.open(path, "rt", newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def encode(cells, stumps):
    """The columns that one raw feature becomes, in each part; what they are is learned from the first part."""
    values = sorted({cell for cell in cells[0] if cell})
    try:
        numbers = [np.array([float(cell) if cell else np.nan for cell in part]) for part in cells]
    except ValueError:
        return [np.array([[cell == value for value in values] for cell in part], float) for part in cells]
    different = np.unique(numbers[0][~np.isnan(numbers[0])])
    if 2 < len(different) <= FEW and (different % 1 == 0).all():
        return [(part[:, None] == different).astype(float) for part in numbers]
    return numeric([np.where(np.isnan(part), np.nanmedian(numbers[0]), part) for part in numbers], stumps)


def numeric(parts, stumps):
    """The number itself; with stumps also "is it above this quantile", so that a linear classifier can bend."""
    if not stumps:
        return [part[:, None] for part in parts]
    cuts = np.unique(np.quantile(parts[0], np.arange(1, 8) / 8))
    cuts = cuts[cuts < parts[0].max()]
    return [np.column_stack([part, *(part > cut for cut in cuts)]).astype(float) for part in parts]


def drawn(table, features):
    """Whole numbers from 1 to 10, drawn once per table."""
    first = np.random.default_rng(zlib.crc32(table.encode())).integers(1, 11, features).astype(float)
    return Prices(first, np.zeros(features), np.full(features, -1))


def turney(folder, table, names):
    with (folder / "turney_costs.csv").open(newline="") as file:
        lines = {line["feature"]: line for line in csv.DictReader(file) if line["dataset"] == table}
    first = np.array([float(lines[name]["cost"]) for name in names])
    later = np.array([float(lines[name]["cost_in_group"] or lines[name]["cost"]) for name in names])
    groups = [lines[name]["group"] for name in names]
    known = sorted(set(groups) - {""})
    return Prices(first, first - later, np.array([known.index(group) if group else -1 for group in groups]))
