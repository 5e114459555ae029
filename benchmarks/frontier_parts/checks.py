"""Whether rivals are told right: converted trees say and ask what the originals do. Run by `--check`, on tables with categories, missing
values and several classes."""

from pathlib import Path

import numpy as np

from benchmarks.frontier_parts import catboosts, cegb, forests
from benchmarks.frontier_parts.converting import as_ensemble
from benchmarks.frontier_parts.paths import met
from benchmarks.frontier_parts.settings import Setting
from benchmarks.frontier_parts.tables import Data, draw
from frugal.models import acquire, predict

TABLES = ("adult:rand", "hepatitis:turney", "nursery:rand", "thyroid:turney")
RECIPES = (cegb.Recipe(trees=50), cegb.Recipe(cegb.LAZY, 0.3, trees=50), cegb.Recipe(cegb.COUPLED, 0.1, leaves=8, trees=50))


def check(folder: Path, threads: int) -> None:
    for name in TABLES:
        data = draw(folder, Setting.of(name), seed=0)
        for recipe in RECIPES:
            same_as_lightgbm(data, cegb.trained(data, recipe, threads))
        same_as_forest(data, threads)
        for kind in catboosts.KINDS:
            same_as_catboost(data, kind, threads)
        missing = np.isnan(data.test.codes).mean()
        print(
            f"{name}: {len(data.categorical)} categorical features, {missing:.1%} of the cells missing, {data.classes} classes: as they say"
        )


def same_as_lightgbm(data: Data, booster) -> None:
    """Probabilities and, from the leaves it tells of, what every case was asked and paid."""
    ensemble, codes = as_ensemble(data, booster), data.test.codes
    told = booster.predict(codes)
    told = told if told.ndim > 1 else np.column_stack([1 - told, told])
    np.testing.assert_allclose(predict(ensemble, codes)[1], told, rtol=0, atol=1e-6)
    leaves = booster.predict(codes, pred_leaf=True).astype(int).reshape(len(codes), -1)
    *_, asked = met(cegb.tree_paths(booster, len(data.names)), leaves, len(data.names))
    found = acquire(ensemble, codes)
    np.testing.assert_allclose(found.cost, data.spent(data.test, asked), atol=1e-6)
    unasked = acquire(ensemble, codes, budget=0)
    if min(price.cost for price in data.costs.prices) > 0 and not np.isnan(codes).any():
        shares = np.bincount(data.train.classes, minlength=data.classes) / len(data.train.classes)
        np.testing.assert_allclose(unasked.probabilities, np.tile(shares, (len(codes), 1)), atol=0.02)  # nothing asked: the shares


def same_as_forest(data: Data, threads: int) -> None:
    forest, columns = forests.grown(data, threads)
    table = columns.table(data.test.codes)
    votes = np.zeros((len(table), len(forest.classes_)))
    for tree in forest.estimators_:
        votes[np.arange(len(table)), tree.predict_proba(table).argmax(axis=1)] += 1
    said = acquire(forests.as_ensemble(data, forest, columns), data.test.codes.astype(np.float32)).labels
    assert (said == forest.classes_[votes.argmax(axis=1)]).all(), "a converted forest votes otherwise"


def same_as_catboost(data: Data, kind: str, threads: int) -> None:
    """That leaves are numbered as we think: their values add up to what the model says. Symmetric trees ask everybody the same."""
    model = catboosts.trained(data, kind, 0.02, threads)
    told, frame = catboosts.as_json(model), catboosts.words(data, data.test)
    splits = catboosts.features_of_splits(told["features_info"])
    assert all(split["split_index"] < len(splits) for tree in told["oblivious_trees"] for split in tree["splits"] or ())
    if not told["trees"]:
        return
    leaves = model.calc_leaf_indexes(frame)
    values = [np.array([value for _, value in catboosts.leaves_of(tree, splits)]) for tree in told["trees"]]
    scale, bias = told["scale_and_bias"]
    sums = sum(value[leaf] for value, leaf in zip(values, leaves.T, strict=True)) * scale + np.squeeze(bias)
    np.testing.assert_allclose(sums, model.predict(frame, prediction_type="RawFormulaVal"), atol=1e-6)
