"""GreedyTree: against its naive twin, the paper's examples, the theorem's bound, and scikit-learn's checks."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import check_estimator

from frugal.models import CostModel, Feature, GreedyTreeClassifier, Price, Schema
from tests.models.growing.engine import Case
from tests.naive import growing as naive

WORDS = tuple(f"w{k:02}" for k in range(40))


@st.composite
def tables(draw):
    """(rows as dicts, features) with categories, missing values and weights; big enough now and then for histograms."""
    kinds = draw(st.lists(st.sampled_from([None, None, WORDS[:2], WORDS[:3]]), min_size=1, max_size=4))
    features = {f"x{i}": kind for i, kind in enumerate(kinds)}
    size = draw(st.sampled_from([1, 3, 8, 20, 80]))
    values = {
        name: st.one_of(st.integers(0, 5) if kind is None else st.sampled_from(kind), st.none() if draw(st.booleans()) else st.nothing())
        for name, kind in features.items()
    }
    row = st.fixed_dictionaries(values | {"class": st.integers(0, 2), "weight": st.sampled_from([1, 1, 2])})
    return draw(st.lists(row, min_size=size, max_size=size)), features


def large_table(seed, rows, kinds, noise, missing, skew):
    """The same kind of table drawn at once: categories in shares as uneven as `skew`, a class that hangs on all columns but for noise."""
    rng = np.random.default_rng(seed)
    features = {f"x{i}": None if kind is None else WORDS[:kind] for i, kind in enumerate(kinds)}
    codes = [rng.integers(0, 12, rows) if kind is None else (kind * rng.random(rows) ** skew).astype(int) for kind in kinds]
    classes = np.where(rng.random(rows) < noise, rng.integers(0, 3, rows), (sum(codes) // 2) % 3)
    gone = rng.random((len(kinds), rows)) < missing
    columns = [
        [None if absent else (int(code) if kind is None else kind[code]) for code, absent in zip(codes[f], gone[f], strict=True)]
        for f, kind in enumerate(features.values())
    ]
    weights = rng.choice([0.25, 1.0, 1.0, 3.0], rows).tolist()
    cells = zip(*columns, classes.tolist(), weights, strict=True)
    return [dict(zip((*features, "class", "weight"), row, strict=True)) for row in cells], features


def as_frame(rows, features):
    return pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object if kind else float) for name, kind in features.items()})


def assert_equals_its_twin(rows, features, impurity, alpha, expected, on_path):
    costs = CostModel([Price(name, 1 + i % 3, "g" if i > 1 else None, 0.5 if i > 1 else None) for i, name in enumerate(features)])
    for name in features:
        if not any(row[name] is not None for row in rows):
            features[name] = None
    present = sorted({row["class"] for row in rows})
    many = len(present)
    rows = [row | {"class": present.index(row["class"])} for row in rows]
    learner = GreedyTreeClassifier(
        impurity=impurity,
        alpha=alpha,
        power=3,
        split="expected" if expected else "minimax",
        price="path" if on_path else "constant",
        costs=costs,
    )
    learner.fit(as_frame(rows, features), [row["class"] for row in rows], [row["weight"] for row in rows])
    floor = sum(price.cost for price in costs.prices) / len(costs) / 100
    measure = {
        "threshold-pairs": lambda counts: naive.threshold_pairs(counts, alpha),
        "clipped-pairs": lambda counts: naive.clipped_pairs(counts, alpha),
        "powers": lambda counts: naive.powers(counts, 3),
        "polynomial": lambda counts: naive.polynomial(counts, 3),
    }[impurity]
    case = Case(rows, {name: "cut" if kind is None else "every" for name, kind in features.items()})
    twin = naive.Engine(
        case.features,
        (naive.mean if expected else naive.worst)(measure, many),
        naive.divided,
        lambda name, bought, _: max(costs.marginal(name, bought if on_path else ()), floor),
        lambda some: naive.counts_of(some, many),
    )
    assert case.nested(learner.ensemble_.flat, many) == twin.grow(rows)
    return learner


@given(
    tables(),
    st.sampled_from(["threshold-pairs", "clipped-pairs", "powers", "polynomial"]),
    st.sampled_from([0, 1]),
    st.booleans(),
    st.booleans(),
)
def test_equals_its_naive_twin(drawn, impurity, alpha, expected, on_path):
    assert_equals_its_twin(*drawn, impurity, alpha, expected, on_path)


@pytest.mark.timeout(300, method="thread")  # a signal does not stop a kernel that never ends
@pytest.mark.parametrize(
    ("rows", "kinds", "noise", "missing", "skew", "impurity", "expected", "on_path"),
    [
        (4000, [3, 3, 3, 3, 3], 1.0, 0.0, 1.0, "threshold-pairs", False, False),  # three like children a level, four levels of histograms
        (9000, [4, 3, 3, 4, None], 0.3, 0.0, 1.2, "threshold-pairs", False, True),
        (6000, [3, 7, 40, None], 0.3, 0.02, 1.5, "threshold-pairs", False, True),
        (5000, [None, 12, None, 5, 3], 0.2, 0.02, 1.5, "powers", False, False),
        (3000, [40, 25, 4, 3], 0.6, 0.02, 1.5, "polynomial", True, False),
        (4000, [4, None, 9, 3, 3], 0.4, 0.2, 1.0, "clipped-pairs", True, True),
    ],
)
def test_equals_its_naive_twin_on_thousands_of_rows_with_many_categories(rows, kinds, noise, missing, skew, impurity, expected, on_path):
    table, features = large_table(len(kinds), rows, kinds, noise, missing, skew)
    assert_equals_its_twin(table, features, impurity, 1.5 if impurity == "threshold-pairs" else 0, expected, on_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_equals_its_naive_twin_on_many_large_tables(seed):
    rng = np.random.default_rng(seed)
    kinds = [None if rng.random() < 0.2 else int(rng.choice([3, 4, 6, 12, 40])) for _ in range(rng.integers(3, 7))]
    table, features = large_table(seed, int(rng.integers(3000, 9000)), kinds, rng.random(), seed % 3 / 20, 1 + seed % 2)
    impurity = ["threshold-pairs", "clipped-pairs", "powers", "polynomial"][seed % 4]
    assert_equals_its_twin(table, features, impurity, float(rng.integers(0, 4)), bool(seed & 4), bool(seed & 8))


def synthetic_1024():
    """The 1024 examples of Figure 2: ten binary features, four classes, four odd ones."""
    numbers = np.arange(1024)
    X = (numbers[:, None] >> np.arange(9, -1, -1)) & 1
    y = numbers // 256 + 1
    y[[0, 256, 512, 768]] = [2, 3, 4, 1]
    return X, y


def test_the_1024_examples_at_depth_two_have_an_error_of_0_39_percent():
    X, y = synthetic_1024()
    shallow = GreedyTreeClassifier(alpha=2.0).fit(X, y)
    found = shallow.acquire(X)
    assert found.cost.max() == 2
    assert np.mean(found.labels != y) == 4 / 1024 == pytest.approx(0.0039, abs=5e-5)


def test_the_1024_examples_without_error_need_a_cost_of_ten():
    X, y = synthetic_1024()
    found = GreedyTreeClassifier(stop="leaf").fit(X, y).acquire(X)
    assert (found.labels == y).all()
    assert found.cost.max() == 10


def optimal_max_cost(rows, costs):
    """By brute force: the least max-cost of any tree that separates the classes."""
    if len({label for _, label in rows}) < 2:
        return 0.0
    best = math.inf
    for f, cost in enumerate(costs):
        sides = [[r for r in rows if r[0][f] == v] for v in (0, 1)]
        if all(sides):
            rest = [0.0 if k == f else c for k, c in enumerate(costs)]
            best = min(best, cost + max(optimal_max_cost(side, rest) for side in sides))
    return best


@given(st.lists(st.sampled_from(list(itertools.product((0, 1), repeat=4))), min_size=2, max_size=9, unique=True), st.data())
def test_the_max_cost_stays_within_the_theorems_bound(points, data):
    labels = [data.draw(st.integers(0, 1)) for _ in points]
    costs = [data.draw(st.sampled_from([1.0, 2.0, 5.0])) for _ in range(4)]
    if len(set(labels)) < 2:
        return
    learner = GreedyTreeClassifier(costs=costs, stop="leaf").fit(points, labels)
    pairs = labels.count(0) * labels.count(1)
    optimum = optimal_max_cost(list(zip(points, labels, strict=True)), costs)
    assert learner.acquire(points).cost.max() <= optimum * (math.log(pairs) + 1) + 1e-9


def test_check_estimator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(
            GreedyTreeClassifier(),
            expected_failed_checks={"check_class_weight_classifiers": "pure leaves, where a weight moves no label: alpha would stop"},
        )


def test_random_stumps_grow_a_tree_and_the_same_one_twice():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 4)), rng.integers(0, 2, 3000)
    texts = [GreedyTreeClassifier(stumps="random", alpha=3, random_state=s).fit(X, y).ensemble_.text(0) for s in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_sensible_models_of_odd_tables():
    one_class = GreedyTreeClassifier().fit([[1.0], [2.0]], ["a", "a"])
    assert one_class.predict([[5.0]]).tolist() == ["a"]
    one_row = GreedyTreeClassifier().fit([[1.0]], ["a"])
    assert one_row.predict_proba([[5.0]]).tolist() == [[1.0]]
    constant = GreedyTreeClassifier().fit([[1.0, 2.0]] * 4, [0, 1, 1, 1])
    assert constant.predict([[1.0, 2.0]]).tolist() == [1]
    twins = GreedyTreeClassifier().fit([[0, 0], [1, 1], [0, 0], [1, 1]], [0, 1, 0, 1])
    assert twins.ensemble_.used == {"x0"}
    empty = GreedyTreeClassifier().fit([[math.nan, 0], [math.nan, 1]], ["no", "yes"])
    assert empty.predict([[math.nan, 1]]).tolist() == ["yes"]
    assert GreedyTreeClassifier().fit([[0], [1]], ["no", "yes"]).predict([[1]]).tolist() == ["yes"]


def test_data_frames_with_words_categories_booleans_and_missing():
    frame = pd.DataFrame(
        {
            "colour": pd.Categorical(["red", "blue", None, "red"] * 5),
            "word": ["a", "b", "a", None] * 5,
            "flag": [True, False, True, False] * 5,
            "size": [1.0, 2.0, None, 4.0] * 5,
        }
    )
    learner = GreedyTreeClassifier(costs={"colour": 1, "word": 1, "flag": 3, "size": 2}).fit(frame, ["x", "y", "x", "z"] * 5)
    assert learner.ensemble_.schema["colour"] == Feature("colour", "categorical", ("blue", "red"))
    assert learner.predict(frame).tolist() == ["x", "y", "x", "z"] * 5
    assert learner.feature_names_in_.tolist() == ["colour", "word", "flag", "size"]
    unseen = frame.assign(colour="green", word="q")
    assert len(learner.predict(unseen)) == 20


def test_columns_named_categorical():
    X = [[3, 1], [3, 2], [7, 1], [7, 3]]
    learner = GreedyTreeClassifier(categorical=[0, 1]).fit(X, [0, 0, 1, 1])
    assert learner.ensemble_.schema == Schema([Feature("x0", "categorical", (3, 7)), Feature("x1", "categorical", (1, 2, 3))])
    assert learner.predict(X).tolist() == [0, 0, 1, 1]


def test_three_hundred_categories_share_the_last_bin():
    X = np.arange(600).reshape(-1, 1) % 300
    y = X[:, 0] % 2
    learner = GreedyTreeClassifier(categorical=[0]).fit(X, y)
    assert np.mean(learner.predict(X) == y) > 0.8


@pytest.mark.parametrize(
    ("settings", "X", "y", "message"),
    [
        ({"alpha": -1}, [[0], [1]], [0, 1], "alpha is -1: expected a number of at least 0"),
        ({"alpha": []}, [[0], [1]], [0, 1], "alpha is an empty grid"),
        ({"costs": [1, 2]}, [[0], [1]], [0, 1], "2 costs for 1 features"),
        ({"costs": {"y": 1}}, [[0], [1]], [0, 1], "prices for 'y', and none of them is a column: the columns are 'x0'"),
        ({"price": "full"}, [[0], [1]], [0, 1], "price is 'full': expected 'constant' or 'path'"),
        ({"max_bins": 1}, [[0], [1]], [0, 1], "max_bins is 1: expected a whole number from 2 to 255"),
        ({"categorical": ["z"]}, [[0], [1]], [0, 1], "categorical names 'z'"),
        ({"categorical": [4]}, [[0], [1]], [0, 1], "categorical names column 4"),
        ({"random_state": -1}, [[0], [1]], [0, 1], "random_state is -1"),
        ({}, [[0], [math.inf]], [0, 1], "Input X contains infinity in row 1, column 'x0'"),
        ({}, [[0], [1]], [0], "Found input variables with inconsistent numbers of samples: 2 rows, 1 labels"),
        ({}, [[0], [1]], [0, math.nan], "Input y contains NaN"),
        ({}, [[0], [1]], ["a", None], "Input y contains NaN or None"),
    ],
)
def test_wrong_input_is_named(settings, X, y, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        GreedyTreeClassifier(**settings).fit(X, np.array(y, object) if None in y else y)
