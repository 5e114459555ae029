"""Prices, groups, exact money, and the price list as CSV."""

import io
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugal.models import (
    BudgetForestClassifier,
    CostModel,
    Ensemble,
    Feature,
    GreedyTreeClassifier,
    Leaf,
    Price,
    PricedBoostingClassifier,
    Schema,
    Split,
)
from frugal.models.costs import millionths, money, price_gaps

HEART = Path(__file__).parents[2] / "examples" / "heart" / "costs.csv"
amounts = st.integers(0, 10**15).map(money)
sums = st.integers(0, 8 * 10**15)


def test_the_heart_price_list():
    costs = CostModel.from_csv(HEART)
    assert len(costs) == 13
    assert costs.groups == ("blood", "stress", "exercise")
    assert costs["cholesterol"] == Price("cholesterol", 7.27, "blood", 5.17, True, "mg/dl", "What is the serum cholesterol?")
    assert costs.marginal("cholesterol") == 7.27
    assert costs.marginal("cholesterol", ["fasting_sugar"]) == 5.17
    assert costs.marginal("thal", {"max_heart_rate", "age"}) == 1.0
    assert "thal" in costs.delayed
    assert "age" not in costs.delayed
    assert costs.total(["cholesterol", "fasting_sugar"]) == costs.total(["fasting_sugar", "cholesterol"]) == 10.37


def test_csv_round_trip(tmp_path):
    costs = CostModel.from_csv(HEART)
    costs.to_csv(tmp_path / "costs.csv")
    assert CostModel.from_csv(tmp_path / "costs.csv") == costs
    assert CostModel.from_csv(io.StringIO(costs.to_csv())) == costs


@given(
    st.lists(
        st.tuples(amounts, st.none() | amounts, st.booleans(), st.sampled_from(['a, "b"', "line\nbreak", "lone\rreturn", "é", None])),
        max_size=5,
    )
)
def test_any_price_list_survives_csv(rows):
    costs = CostModel(
        Price(f"f{i}", cost, "g" if inside is not None else None, inside, delayed, question=question)
        for i, (cost, inside, delayed, question) in enumerate(rows)
    )
    assert CostModel.from_csv(io.StringIO(costs.to_csv(), newline="")) == costs


@given(st.lists(amounts, max_size=7))
def test_money_never_drifts(costs):
    model = CostModel(Price(f"f{i}", cost) for i, cost in enumerate(costs))
    assert millionths(model.total(model.features), "total") == sum(millionths(cost, "cost") for cost in costs)


@given(sums)
def test_every_sum_that_is_allowed_survives_being_a_float(amount):
    assert millionths(money(amount), "sum") == amount


def test_numbers_are_rounded_to_six_decimals():
    assert Price("a", 0.1 + 0.2).cost == 0.3
    assert Price("a", 1 / 3).cost == 0.333333


def test_costs_from_sequence_mapping_and_nothing():
    assert CostModel.of([1, 2], ["a", "b"]) == CostModel.of({"b": 2, "a": 1}, ["a", "b"]) == CostModel([Price("a", 1), Price("b", 2)])
    assert CostModel.of(None, ["a", "b"]) == CostModel.of([1, 1], ["a", "b"])
    assert CostModel.of(CostModel.of([1, 2], ["a", "b"]), ["b", "a"]).features == ("b", "a")


def test_what_is_not_named_costs_1_and_is_told():
    features = ["age", "sex", "cholesterol"]
    for costs in ({"age": 2}, CostModel([Price("age", 2)])):
        with pytest.warns(UserWarning, match="^no price for 'sex', 'cholesterol': each costs 1$"):
            assert CostModel.of(costs, features) == CostModel.of([2, 1, 1], features)
    with pytest.warns(UserWarning, match="^no price for 'sex': it costs 1$"):
        assert CostModel.of({"age": 2, "cholesterol": 0}, features).prices[2].cost == 0


def test_nothing_is_told_where_everything_or_nothing_is_priced():
    """Warnings are errors here."""
    assert CostModel.of({}, ["a", "b"]) == CostModel.of(None, ["a", "b"])
    assert CostModel.of({"b": 2, "a": 1}, ["a", "b"]).features == ("a", "b")


def test_a_price_without_a_column_is_told_with_the_column_that_was_meant():
    with pytest.warns(UserWarning, match="^(no|a) price for ") as told:
        costs = CostModel.of({"age": 2, "chol": 7, "foot": 3}, ["age", "sex", "cholesterol"])
    assert [str(warning.message) for warning in told] == [
        "no price for 'sex', 'cholesterol': each costs 1",
        "a price for 'chol' (did you mean 'cholesterol'?), which is no column: it is not used",
        "a price for 'foot', which is no column: it is not used",
    ]
    assert costs == CostModel.of([2, 1, 1], ["age", "sex", "cholesterol"])


def test_a_column_that_has_its_price_is_not_what_was_meant():
    assert price_gaps(["cholesterol", "chol"], ["cholesterol"]) == ["a price for 'chol', which is no column: it is not used"]


def test_of_many_prices_without_a_column_some_are_named():
    gaps = price_gaps(["a", *(f"stranger number {i}" for i in range(15))], ["a"])
    assert len(gaps) == 13
    assert gaps[-1] == "3 more prices are for names that are no columns"


def test_a_group_without_a_discount_keeps_its_price():
    costs = CostModel([Price("a", 3, "g"), Price("b", 2, "g")])
    assert costs.marginal("a", ["b"]) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CostModel.of([1, -2], ["a", "b"]), "the cost of 'b' is -2: expected a number from 0 to 1,000,000,000"),
        (lambda: CostModel.of([float("nan")], ["a"]), "the cost of 'a' is nan"),
        (lambda: CostModel.of([float("inf")], ["a"]), "the cost of 'a' is inf"),
        (lambda: CostModel.of([10**400], ["a"]), "the cost of 'a' is"),
        (lambda: CostModel.of([1e9 + 1], ["a"]), "the cost of 'a' is 1000000001.0"),
        (lambda: CostModel.of(["3"], ["a"]), "the cost of 'a' is '3': expected a number"),
        (lambda: CostModel.of([True], ["a"]), "the cost of 'a' is True: expected a number"),
        (lambda: CostModel.of([1], ["a", "b"]), "1 costs for 2 features"),
        (lambda: CostModel.of({"z": 1}, ["a", "b"]), "prices for 'z', and none of them is a column: the columns are 'a', 'b'"),
        (lambda: CostModel.of([1], ["a"]).arranged(["a", "b", "c"]), "no cost for 'b', 'c'"),
        (lambda: CostModel.of([1, 1], ["a", "z"]).arranged(["a"]), "costs for 'z', which the data does not have: its features are 'a'"),
        (lambda: CostModel([Price("a", 1), Price("a", 2)]), "priced more than once: 'a'"),
        (lambda: Price("a", 1, cost_in_group=1), "'a' has a cost_in_group but no group"),
        (lambda: Price("a", 1, "g", -1), "the cost_in_group of 'a' is -1"),
        (lambda: Price("", 1), "feature '': expected a name"),
        (lambda: Price("a ", 1), "feature 'a ': expected a name, printable and without blanks around it"),
        (lambda: Price("a", 10**5000), "the cost of 'a' is a number of many digits: expected"),
        (lambda: Price("a", 1, question="\ud800"), "the question of 'a' is '\\ud800': expected text or None"),
        (lambda: CostModel.of([1], ["a"]).marginal("b"), "no price for 'b': priced are 'a'"),
        (lambda: CostModel.of([1], ["a"]).marginal("a", ["b"]), "no price for 'b'"),
        (lambda: CostModel(Price(f"f{i}", 1e9) for i in range(9)), "the costs of all features together are above"),
    ],
)
def test_wrong_prices_are_named(make, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the price list has no column 'feature', 'cost'"),
        (f"feature,cost\n{'n' * 201},1\n", "line 2 of the price list"),
        (
            f"feature,cost,group\na,1,{'g' * 201}\n",
            "line 2 of the price list ('a'): the group of 'a' has 201 characters",
        ),
        ("feature\na\n", "the price list has no column 'cost'"),
        (
            "feature,cost,colour\na,1,red\n",
            "the price list's columns are 'feature', 'cost', 'colour': allowed, once each, are feature",
        ),
        ("feature,cost,cost\na,1,2\n", "the price list's columns are"),
        ("feature,cost\na,1\nb\n", "line 3 of the price list has 1 cells, the first line 2"),
        ("feature,cost\na,cheap\n", "line 2 of the price list ('a'): cost is 'cheap': expected a number"),
        ("feature,cost\na,1_0\n", "line 2 of the price list ('a'): cost is '1_0': expected a number"),
        ("feature,cost\na,-1\n", "line 2 of the price list ('a'): the cost of 'a' is -1.0"),
        ("feature,cost\na,nan\n", "line 2 of the price list ('a'): the cost of 'a' is nan"),
        ("feature,cost\na,\n", "line 2 of the price list ('a'): cost is ''"),
        ("feature,cost\na,1\na,2\n", "priced more than once: 'a'"),
        (
            "feature,cost,delayed\na,1,perhaps\n",
            "line 2 of the price list ('a'): delayed is 'perhaps': expected true or false",
        ),
        ('feature,cost\n"a,1\n', "line 2 of the price list: unexpected end of data"),
    ],
)
def test_a_wrong_price_list_says_where(text, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        CostModel.from_csv(io.StringIO(text))


def test_a_price_list_from_a_spreadsheet(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_bytes(b"\xef\xbb\xbffeature,cost\r\nage,1\r\n\r\n")
    assert CostModel.from_csv(path) == CostModel([Price("age", 1)])
    path.write_bytes(b"feature,cost\n\xff,1\n")
    with pytest.raises(ValueError, match="is not UTF-8 text: invalid start byte at byte 13"):
        CostModel.from_csv(path)


def test_what_has_no_price_is_never_to_be_bought(tmp_path):
    costs = CostModel([Price("age", 1), Price("biopsy", None, question="?"), Price("sugar", 5, "blood", 3), Price("fat", 7, "blood", 5)])
    assert costs.total(["age", "biopsy", "sugar", "fat"]) == 11
    assert costs.marginal("biopsy") == math.inf
    assert costs.served.floor == CostModel([Price("age", 1), Price("sugar", 5), Price("fat", 7)]).served.floor
    costs.to_csv(tmp_path / "costs.csv")
    assert "biopsy,never,,,false,,?" in (tmp_path / "costs.csv").read_text()
    assert CostModel.from_csv(tmp_path / "costs.csv") == costs
    assert CostModel.of({"age": None, "sex": 2}, ["age", "sex"]).prices[0].cost is None
    with pytest.raises(ValueError, match="'biopsy' has a cost_in_group but no cost"):
        Price("biopsy", None, "g", 2)
    with pytest.raises(ValueError, match="cost is '': expected a number of at least 0, or never: it is not to be bought"):
        CostModel.from_csv(io.StringIO("feature,cost\nage,\n"))


def test_no_tree_asks_for_what_has_no_price():
    tree = Split("age", [1, 1], threshold=3, children=[Leaf([1, 0]), Leaf([0, 1])])
    with pytest.raises(ValueError, match="a tree asks for 'age', priced None"):
        Ensemble.of([tree], Schema([Feature("age")]), [None], classes=["a", "b"], vote="counts")


@pytest.mark.parametrize("kind", [BudgetForestClassifier, GreedyTreeClassifier, PricedBoostingClassifier])
def test_no_learner_uses_what_has_no_price(kind):
    X = np.array([[i, i % 7] for i in range(200)], float)
    learner = kind(costs=[None, 3], random_state=0).fit(X, (X[:, 0] + 20 * X[:, 1] > 160).astype(int))
    assert learner.ensemble_.used == {"x1"}
    assert learner.acquire(X).cost.max() == 3
