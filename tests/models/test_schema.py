"""Raw values to codes and back, and what is refused."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugal.models import CostModel, Feature, Price, Schema

SCHEMA = Schema(
    [
        Feature("age", unit="years"),
        Feature("sex", "categorical", ("female", "male")),
        Feature("grade", "categorical", (1, 2, 3)),
    ]
)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_their_own_codes(number):
    assert SCHEMA.encode("age", number) == number
    assert SCHEMA.decode("age", number) == number


def test_categories_round_trip():
    for feature in SCHEMA.features[1:]:
        for code, category in enumerate(feature.categories):
            assert SCHEMA.encode(feature.name, category) == code
            assert SCHEMA.decode(feature.name, code) == category
    assert SCHEMA.decode("age", math.nan) is None
    assert math.isnan(SCHEMA.encode("sex", None))


def test_numpy_numbers_and_equal_numbers_are_taken():
    assert SCHEMA.encode("age", np.float32(1.5)) == 1.5
    assert SCHEMA.encode("age", np.int64(7)) == 7
    assert SCHEMA.encode("grade", 2.0) == 1
    assert Feature("a", "categorical", np.array([1, 2])).categories == (1, 2)
    truths = Schema([Feature("b", "categorical", (False, True))])
    assert truths.encode("b", True) == 1
    for other in (1, 0, 1.0, "True"):
        with pytest.raises(ValueError, match="expected one of False, True"):
            truths.encode("b", other)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("age", "63", "'age' is '63': expected a finite number (years)"),
        ("age", True, "'age' is True: expected a finite number (years)"),
        ("age", math.inf, "'age' is inf: expected a finite number"),
        ("age", math.nan, "'age' is nan: expected a finite number"),
        ("age", 10**400, "'age' is a number of many digits: expected a finite number"),
        ("age", [1], "'age' is [1]: expected a finite number"),
        ("sex", "m", "'sex' is 'm': expected one of 'female', 'male'"),
        ("sex", ["male"], "'sex' is ['male']: expected one of 'female', 'male'"),
        ("sex", "x" * 1000, "'sex' is 'xxxxx"),
        ("grade", True, "'grade' is True: expected one of 1, 2, 3"),
        ("grade", "1", "'grade' is '1': expected one of 1, 2, 3"),
        ("pulse", 1, "no feature 'pulse': the features are 'age', 'sex', 'grade'"),
    ],
)
def test_a_wrong_value_says_what_is_allowed(name, value, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)) as caught:
        SCHEMA.encode(name, value)
    assert len(str(caught.value)) < 200


def test_many_categories_are_not_all_listed():
    schema = Schema([Feature("postcode", "categorical", tuple(map(str, range(10_000))))])
    assert schema.encode("postcode", "9999") == 9999
    with pytest.raises(ValueError, match=re.escape("'11', ... (10,000 in all)")):
        schema.encode("postcode", "10000")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Feature("a", "ordinal"), "'a' has kind 'ordinal': expected 'numeric' or 'categorical'"),
        (lambda: Feature("a", "categorical"), "'a' is categorical: name its categories"),
        (lambda: Feature("a", "numeric", ("x",)), "'a' is numeric but has categories"),
        (lambda: Feature("a", "categorical", ("x", "y", "x")), "'a' has the category 'x' more than once"),
        (lambda: Feature("a", "categorical", (None,)), "'a' has the category None"),
        (lambda: Feature("a", "categorical", (math.nan,)), "'a' has the category nan"),
        (lambda: Feature("a", "categorical", (math.inf,)), "'a' has the category inf"),
        (lambda: Feature("a", "categorical", ("\ud800",)), "'a' has the category '\\ud800'"),
        (lambda: Feature(" "), "feature ' ': expected a name"),
        (lambda: Feature("a", "categorical", "xyz"), "the categories of 'a' are 'xyz': expected a sequence of them"),
        (lambda: Feature("a", unit=3), "the unit of 'a' is 3: expected text or None"),
        (lambda: Schema([Feature("a"), Feature("a")]), "the feature 'a' is there more than once"),
        (lambda: SCHEMA.decode("sex", 2), "'sex' has no category with the code 2: codes go from 0 to 1"),
        (lambda: SCHEMA.encode_rows([{}, {"sex": "m"}]), "row 1: 'sex' is 'm': expected one of 'female', 'male'"),
    ],
)
def test_wrong_schemas_are_named(make, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        make()


def test_rows_become_a_matrix_with_nan_for_what_is_missing():
    table = SCHEMA.encode_rows([{"age": 3, "sex": "male"}, {"grade": None}])
    assert np.array_equal(table, [[3, 1, math.nan], [math.nan] * 3], equal_nan=True)


def test_a_price_list_brings_units_and_questions():
    costs = CostModel([Price("age", 1, question="How old?"), Price("sex", 1), Price("grade", 1, unit="points")])
    described = SCHEMA.described_by(costs)
    assert described["age"] == Feature("age", unit="years", question="How old?")
    assert described["grade"].unit == "points"


@pytest.mark.parametrize(
    "column",
    [
        [1.5, None, 2, -0.0],
        [1, 2**60, None],
        [10**400],
        [math.nan],
        [math.inf],
        [True],
        ["1"],
        [1.0, "x"],
        [[1]],
    ],
)
def test_a_column_of_rows_is_encoded_as_its_values_one_by_one(column: list) -> None:
    schema = Schema([Feature("n"), Feature("c", "categorical", ("a", 1, "b"))])
    _assert_same(schema, "n", column)


@pytest.mark.parametrize("column", [["a", None, "b"], [1, "a"], [True], ["z"], [1.0], [None], [{}]])
def test_a_column_of_categories_is_encoded_as_its_values_one_by_one(column: list) -> None:
    _assert_same(Schema([Feature("n"), Feature("c", "categorical", ("a", 1, "b"))]), "c", column)


def _assert_same(schema: Schema, name: str, column: list) -> None:
    rows = [{} if value is None else {name: value} for value in column]
    try:
        expected = [schema.encode(name, value) for value in column]
    except ValueError as error:
        with pytest.raises(ValueError, match=r"row \d: " + re.escape(str(error))):
            schema.encode_rows(rows)
        np.testing.assert_array_equal(schema.encode_rows(rows, only=()), np.full((len(rows), 2), np.nan))
        return
    np.testing.assert_array_equal(schema.encode_rows(rows)[:, schema.position(name)], expected)
