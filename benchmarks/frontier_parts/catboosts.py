"""CatBoost with its penalties: per object and for the first use by the model.

Scale: with the score function L2 its gain is a sum of squared gradients over cases, a quarter of LightGBM's for two classes, so that the
tradeoffs end at 2; a penalty per object is the tradeoff times the price as a share of everything, one for the first use that times the
number of training cases. Penalties per object need trees whose branches ask for different features (Lossguide); in a symmetric tree,
CatBoost's own kind, every case is asked every question of the model.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier

from benchmarks.frontier_parts.curves import Point
from benchmarks.frontier_parts.paths import mask_of, met
from benchmarks.frontier_parts.tables import Data, Rows

TRADEOFFS = np.geomspace(0.005, 2, 6).round(6).tolist()
KINDS = {  # parameter, the trees it suits, whether it counts once for all cases
    "per_object_feature_penalties": ({"grow_policy": "Lossguide", "max_leaves": 31}, False),
    "first_feature_use_penalties": ({"grow_policy": "SymmetricTree"}, True),
}


def points(data: Data, threads: int) -> list[Point]:
    return [_point(data, trained(data, kind, tradeoff, threads)) for kind in KINDS for tradeoff in TRADEOFFS]


def trained(data: Data, kind: str, tradeoff: float, threads: int) -> CatBoostClassifier:
    trees, once = KINDS[kind]
    scale = tradeoff * (len(data.train.codes) if once else 1)
    model = CatBoostClassifier(
        iterations=100,
        learning_rate=0.1,
        score_function="L2",
        cat_features=data.categorical,
        thread_count=threads,
        random_seed=data.seed,
        verbose=False,
        allow_writing_files=False,
        **trees,
        **{kind: (data.shares * scale).tolist()},
    )
    return model.fit(words(data, data.train), data.train.classes)


def words(data: Data, rows: Rows) -> pd.DataFrame:
    """Categories as text, missing ones as one more."""
    frame = data.frame(rows.codes)
    for i in data.categorical:
        codes = rows.codes[:, i]
        frame[data.names[i]] = pd.Series(np.where(np.isnan(codes), -1, codes).astype(int)).astype(str)
    return frame


def _point(data: Data, model: CatBoostClassifier) -> Point:
    parts = [
        (data.spent(rows, asked(data, model, rows)), said(model, words(data, rows)) != rows.classes)
        for rows in (data.validation, data.test)
    ]
    (known, missed), (cost, wrong) = parts
    return Point(known.mean(), missed.mean(), cost.mean(), wrong)


def said(model: CatBoostClassifier, frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(model.predict(frame)).ravel().astype(int)


def asked(data: Data, model: CatBoostClassifier, rows: Rows) -> np.ndarray:
    """Rows x features."""
    told = as_json(model)
    features = features_of_splits(told["features_info"])
    found = np.zeros(rows.codes.shape, bool)
    if told["trees"]:
        leaves = model.calc_leaf_indexes(words(data, rows))
        masks = (mask_of([(k, above) for k, (above, _) in enumerate(leaves_of(tree, features))], len(data.names)) for tree in told["trees"])
        *_, found = met(masks, leaves, len(data.names))
    for tree in told["oblivious_trees"]:
        for split in tree["splits"] or ():
            found[:, list(features[split["split_index"]])] = True
    return found


def as_json(model: CatBoostClassifier) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        told = json.loads(path.read_text())
    return told | {kind: told.get(kind) or [] for kind in ("trees", "oblivious_trees")}


def features_of_splits(told: dict[str, Any]) -> list[frozenset[int]]:
    """Per `split_index` what it asks for: cuts of numbers come first, then single categories, then statistics of categories."""
    place = {kind: {each["feature_index"]: each["flat_feature_index"] for each in told.get(f"{kind}_features", [])} for kind in KINDS_OF}
    found = [frozenset([each["flat_feature_index"]]) for each in told.get("float_features", []) for _ in each["borders"]]
    found += [frozenset([each["flat_feature_index"]]) for each in told.get("categorical_features", []) for _ in each.get("values", [])]
    for statistic in told.get("ctrs", []):
        asks = frozenset(place[kind][part[key]] for part in statistic["elements"] for kind, key in KINDS_OF.items() if key in part)
        found += [asks] * len(statistic["borders"])
    return found


KINDS_OF = {"float": "float_feature_index", "categorical": "cat_feature_index"}


def leaves_of(node: dict[str, Any], features: list[frozenset[int]], above: frozenset[int] = frozenset()) -> Iterator[tuple[frozenset, Any]]:
    """(the features above it, its values) of each leaf in CatBoost's order: from the left, but a leaf whose sibling is none comes first."""
    if "split" not in node:
        yield above, node["value"]
        return
    above |= features[node["split"]["split_index"]]
    sides = [node["left"], node["right"]]
    if "split" in node["left"] and "split" not in node["right"]:
        sides.reverse()
    for side in sides:
        yield from leaves_of(side, features, above)
