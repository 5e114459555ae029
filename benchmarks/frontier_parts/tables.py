"""A table as every rival gets it: codes, cut into rows to train on, to choose with and to judge by."""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.frontier_parts.settings import Setting
from benchmarks.sweep import is_categorical
from frugal.models import CostModel, Feature, Schema

MOST = (6000, 3000, 4000)  # rows to train on, to choose with, to judge by
SMALL = 1000  # rows: below, one draw says little, and models are kept small
SEEDS = {True: 10, False: 3}  # draws of a small table, and of others
ZERO_IS_MISSING = {"pima": ("glucose_tol", "diastolic_bp", "triceps", "insulin", "mass_index")}
LEFT_OUT = {"thyroid": ["FTI"]}  # computed from two others


class Rows(NamedTuple):
    codes: np.ndarray  # rows x features: a number, or the position of a category; nan is missing
    classes: np.ndarray


class Data(NamedTuple):
    """One draw of a setting. A category that no training row has is missing in all rows: to some rivals it would be, to others not."""

    setting: Setting
    seed: int
    train: Rows
    validation: Rows
    test: Rows
    names: list[str]
    sizes: np.ndarray  # per feature how many categories, 0 where it is a number
    classes: int
    costs: CostModel
    small: bool

    @property
    def everything(self) -> float:
        return self.costs.total(self.names)

    @property
    def categorical(self) -> list[int]:
        return np.flatnonzero(self.sizes).tolist()

    @property
    def schema(self) -> Schema:
        """Each category is named by its code."""
        return Schema(
            Feature(name, "categorical", tuple(range(size))) if size else Feature(name)
            for name, size in zip(self.names, self.sizes.tolist(), strict=True)
        )

    @property
    def shares(self) -> np.ndarray:
        """Prices outside of groups, as shares of the cost of everything."""
        return np.array([price.cost for price in self.costs.prices]) / self.everything

    @property
    def seen(self) -> Rows:
        """Training and validation rows together, for who needs no validation of ours."""
        return Rows(*(np.concatenate(both) for both in zip(self.train, self.validation, strict=True)))

    def frame(self, codes: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(codes, columns=self.names)

    def spent(self, rows: Rows, asked: np.ndarray) -> np.ndarray:
        """What each row pays for the features it was asked; what is missing is asked for in vain and costs nothing."""
        prices = self.costs.served
        assert prices.order_free, "what a set costs must not depend on the order in which it is bought"
        bought = asked & ~np.isnan(rows.codes)
        paid = bought @ prices.cost_in_group
        for group in range(prices.groups):
            members = np.flatnonzero(prices.group == group)
            paid += bought[:, members].any(axis=1) * int((prices.cost - prices.cost_in_group)[members[0]])
        return paid / 1e6


def seeds(folder: Path, setting: Setting) -> int:
    return SEEDS[len(_tables(folder, setting)[0]) < SMALL]


def draw(folder: Path, setting: Setting, seed: int, ordinal: bool = False) -> Data:
    """60/20/20 of the rows, shuffled; where there is a test file, that and 75/25 of the rest. With `ordinal` no feature is categorical."""
    table, own_test = _tables(folder, setting)
    table, labels = table.drop(columns="label"), table["label"].astype(str)
    codes, sizes = _coded(table, ordinal)
    values, classes = np.unique(labels, return_inverse=True)
    parts = [Rows(codes[rows], classes[rows]) for rows in _cut(len(table), own_test, seed)]
    for rows in parts:
        _hide_strangers(rows.codes, parts[0].codes, sizes)
    names = list(table.columns)
    return Data(setting, seed, *parts, names, sizes, len(values), setting.prices(names, folder), len(table) - own_test < SMALL)


def _cut(rows: int, own_test: int, seed: int) -> list[np.ndarray]:
    """Positions of the rows of each part; the last `own_test` rows are a test file's."""
    shuffle = np.random.default_rng(seed)
    order = shuffle.permutation(rows - own_test)
    if own_test:
        parts = [*np.split(order, [len(order) * 3 // 4]), rows - own_test + shuffle.permutation(own_test)]
    else:
        parts = np.split(order, [rows * 6 // 10, rows * 8 // 10])
    return [part[:most] for part, most in zip(parts, MOST, strict=True)]


@lru_cache(maxsize=2)
def _tables(folder: Path, setting: Setting) -> tuple[pd.DataFrame, int]:
    """The table, its test file's rows last, and how many those are."""
    read = [pd.read_csv(folder / f"{name}.csv.gz", low_memory=False) for name in setting.files]
    table = pd.concat(read, ignore_index=True).drop(columns=LEFT_OUT.get(setting.table, []))
    for name in ZERO_IS_MISSING.get(setting.table, ()):
        table[name] = table[name].where(table[name] != 0)
    return table, sum(map(len, read[1:]))


def _coded(table: pd.DataFrame, ordinal: bool) -> tuple[np.ndarray, np.ndarray]:
    codes, sizes = np.empty(table.shape), np.zeros(table.shape[1], int)
    for i, name in enumerate(table):
        column = table[name]
        if column.dtype.kind in "iuf" and (ordinal or not is_categorical(column)):
            codes[:, i] = column
            continue
        coded = pd.Categorical(column)
        codes[:, i] = np.where(coded.codes < 0, np.nan, coded.codes)
        sizes[i] = 0 if ordinal else len(coded.categories)
    return codes, sizes


def _hide_strangers(codes: np.ndarray, train: np.ndarray, sizes: np.ndarray) -> None:
    for i in np.flatnonzero(sizes):
        codes[~np.isin(codes[:, i], train[:, i]), i] = np.nan
