"""LightGBM with the penalties of Cost Efficient Gradient Boosting (NIPS 2017): per case ("lazy") and for the model ("coupled").

What LightGBM subtracts from a split's gain, which is G_L^2/(H_L+l2) + G_R^2/(H_R+l2) - G^2/(H+l2), summed over cases and without 1/2:

    lazy       tradeoff * penalty of the feature * the cases in the leaf that have not paid for it
    coupled    tradeoff * penalty of the feature, once for the model

Scale: a lazy penalty is the price as a share of the cost of everything; a coupled one is that times the number of training cases. So one
tradeoff means the same for both, on tables of any size: what it is worth to a case to be asked for everything. Two classes gain at most 1
per case in the first tree, so at 20 nothing dearer than a twentieth is bought (of magic nothing at all, of spambase 3 %); at .02 it is what
plain LightGBM buys (all of magic, .7 of spambase). Groups are unknown to LightGBM: a feature's penalty is its full price. Where there are
few features two of the nine tradeoffs may lie far apart in cost; "filled" sets further ones into the widest gaps.

All else is LightGBM's default, but for what it demands of a category below 1,000 rows: with the defaults heart's area is .39, with
SMALL_TABLE .26, as with ordinal codes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import lightgbm
import numpy as np

from benchmarks.frontier_parts.curves import Point
from benchmarks.frontier_parts.paths import mask_of, met
from benchmarks.frontier_parts.tables import Data, Rows

LAZY, COUPLED = "lazy", "coupled"
GRID = np.geomspace(0.02, 20, 9).round(6).tolist()
TEN = {LAZY: np.geomspace(0.05, 10, 7).round(6).tolist(), COUPLED: [0.1, 0.4, 1.5]}  # of 31 leaves and 100 trees
LEAVES = (8, 31)
TREES = {LAZY: (100, 300), COUPLED: (100,)}
MANY = 10  # classes: above, 300 rounds are thousands of trees, and 100 have to do
FILLS, WIDE, DEAREST = 4, 0.05, 0.6  # tradeoffs set into gaps in cost of more than .05, next to models that spend less than .6
SMALL_TABLE = {"min_data_per_group": 20, "cat_smooth": 1, "cat_l2": 1}  # with 100 rows a group heart's categories are never asked for
CLOSEST = 1.05  # and the least ratio of two tradeoffs that are still taken for different


class Recipe(NamedTuple):
    """How one model is trained."""

    penalty: str | None = None
    tradeoff: float = 0.0
    leaves: int = 31
    trees: int = 100


def trained(data: Data, recipe: Recipe, threads: int, rows: Rows | None = None, features: list[int] | None = None) -> lightgbm.Booster:
    """On the training rows and all features, or on these."""
    rows, features = rows or data.train, list(range(len(data.names))) if features is None else features
    settings = {
        "objective": "multiclass" if data.classes > 2 else "binary",
        "num_leaves": recipe.leaves,
        "learning_rate": 0.1,
        "num_threads": threads,
        "deterministic": True,
        "force_col_wise": True,
        "seed": data.seed,
        "verbosity": -1,
    }
    if data.classes > 2:
        settings["num_class"] = data.classes
    if data.small:
        settings |= SMALL_TABLE
    if recipe.penalty:
        scale = len(rows.codes) if recipe.penalty == COUPLED else 1
        settings["cegb_tradeoff"] = recipe.tradeoff
        settings[f"cegb_penalty_feature_{recipe.penalty}"] = (data.shares[features] * scale).tolist()
    categorical = [k for k, feature in enumerate(features) if data.sizes[feature]]
    table = lightgbm.Dataset(rows.codes[:, features], rows.classes, categorical_feature=categorical, params={"verbosity": -1})
    return lightgbm.train(settings, table, recipe.trees)


def labels(booster: lightgbm.Booster, codes: np.ndarray, trees: int | None = None) -> np.ndarray:
    told = booster.predict(codes, num_iteration=trees)
    return told.argmax(axis=1) if told.ndim > 1 else (told > 0.5).astype(int)


def points(data: Data, booster: lightgbm.Booster, numbers: tuple[int, ...]) -> list[Point]:
    """The model cut after each of these numbers of trees: boosting has come so far on its way to more."""
    seen = [_judged(data, booster, rows, numbers) for rows in (data.validation, data.test)]
    return [Point(known.mean(), missed.mean(), cost.mean(), wrong) for (known, missed), (cost, wrong) in zip(*seen, strict=True)]


def _judged(data: Data, booster: lightgbm.Booster, rows: Rows, numbers: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each number of trees: what every row pays, and whether it is wrong."""
    each = booster.num_model_per_iteration()
    found = []
    leaves = booster.predict(rows.codes, pred_leaf=True).astype(int).reshape(len(rows.codes), -1)
    for count, asked in enumerate(met(tree_paths(booster, len(data.names)), leaves, len(data.names)), 1):
        if count in [number * each for number in numbers]:
            found.append((data.spent(rows, asked), labels(booster, rows.codes, count // each) != rows.classes))
    while len(found) < len(numbers):  # it found nothing more to split
        found.append((data.spent(rows, asked), labels(booster, rows.codes) != rows.classes))
    return found


def tree_paths(booster: lightgbm.Booster, features: int) -> Iterator[np.ndarray]:
    for tree in booster.dump_model()["tree_info"]:
        yield mask_of(list(_leaves(tree["tree_structure"])), features)


def _leaves(root: dict) -> Iterator[tuple[int, frozenset[int]]]:
    stack = [(root, frozenset[int]())]
    while stack:
        node, above = stack.pop()
        if "split_feature" in node:
            above |= {node["split_feature"]}
            stack += [(node["left_child"], above), (node["right_child"], above)]
        else:
            yield node.get("leaf_index", 0), above


def cuts(data: Data, penalty: str) -> tuple[int, ...]:
    return TREES[penalty][:1] if data.classes > MANY else TREES[penalty]
