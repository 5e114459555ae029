"""Tables to codes."""

import datetime

import numpy as np
import pandas as pd
import pytest

from frugal.models import table
from frugal.models.table import read_table


def test_categories_are_looked_at_by_value_not_by_cell(monkeypatch):
    """A Python call for each cell took a minute on covertype's 44 columns of codes."""
    calls, real = [], table._is_missing
    monkeypatch.setattr(table, "_is_missing", lambda value: calls.append(value) or real(value))
    words = np.array(["a", "b", None] * 10_000, object)
    read_table(np.column_stack([words, words]))
    read_table(np.column_stack([np.arange(30_000) % 7, np.arange(30_000) % 2]), categorical=[0, 1])
    assert len(calls) < 100


@pytest.mark.parametrize(
    ("column", "categories", "codes"),
    [
        (np.array([3.0, np.nan, 1.0, 3.0]), (1.0, 3.0), [1, np.nan, 0, 1]),
        (np.array([7, 2, 7]), (2, 7), [1, 0, 1]),
        (np.array(["b", "a", "b"]), ("a", "b"), [1, 0, 1]),
        (np.array([True, False]), (False, True), [1, 0]),
        (np.array(["x", None, float("nan"), "y", "x"], object), ("x", "y"), [0, np.nan, np.nan, 1, 0]),
        (np.array([2, "10", np.int64(2), 1], object), (1, 2, "10"), [1, 2, 1, 0]),
        (np.array([None, None], object), ("(none)",), [np.nan, np.nan]),
    ],
)
def test_a_column_that_is_declared_categorical(column, categories, codes):
    read = read_table(column.reshape(-1, 1), categorical=[0])
    assert read.schema["x0"].categories == categories
    np.testing.assert_array_equal(read.codes[:, 0], codes)
    again = read_table(column.reshape(-1, 1), schema=read.schema)
    np.testing.assert_array_equal(again.codes, read.codes)


COLUMNS = np.tile(np.arange(3), (4, 1))


@pytest.mark.parametrize(
    ("categorical", "chosen"),
    [
        (None, []),
        ([], []),
        ("x1", ["x1"]),
        (2, ["x2"]),
        (np.int64(0), ["x0"]),
        (("x0", 2), ["x0", "x2"]),
        ({"x1"}, ["x1"]),
        (np.array([0, 1]), ["x0", "x1"]),
        ([False, True, True], ["x1", "x2"]),
        (np.array([True, False, False]), ["x0"]),
    ],
)
def test_columns_are_told_by_name_by_position_or_by_a_mask(categorical, chosen):
    schema = read_table(COLUMNS, categorical).schema
    assert [feature.name for feature in schema.features if feature.kind == "categorical"] == chosen


@pytest.mark.parametrize(
    ("categorical", "message"),
    [
        ([True, False], "categorical is a mask of 2 booleans: expected one for each of the 3 columns"),
        (True, "categorical is a mask of 1 booleans"),
        ([True, 1, 2], "categorical has True: expected names or positions of columns, or a boolean for each column"),
        ([1.5], "categorical has 1.5: expected names"),
        ({"x1": True}, "categorical has {'x1': True}: expected names"),
        (np.eye(3), "expected names or positions of columns"),
        (object, "expected names or positions of columns"),
        (3, "categorical names column 3: there are 3, counted from 0"),
        ("X_1", r"categorical names 'X_1' \(did you mean 'x1'\?\): the columns are 'x0', 'x1', 'x2'$"),
    ],
)
def test_what_tells_no_columns_is_refused(categorical, message):
    with pytest.raises(ValueError, match=message):
        read_table(COLUMNS, categorical)


def test_a_long_list_of_columns_ends_with_dots():
    with pytest.raises(ValueError, match=r"'x11', \.\.\. \(30 in all\)$"):
        read_table(np.zeros((2, 30)), "zzz")


class Frame:
    """What a data frame is to learners."""

    def __init__(self, **columns):
        self.columns, self.by_name = list(columns), columns

    def __getitem__(self, name):
        return self.by_name[name]


@pytest.mark.parametrize(
    "dates",
    [
        np.array(["2026-01-01", "2026-01-02"], "M8[ns]"),
        np.array(["2026-01-01", "NaT"], "M8[D]"),
        np.array([datetime.date(2026, 1, 1), None], object),
        np.array([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), None], object),
    ],
)
def test_a_column_of_dates_is_refused_by_name(dates):
    with pytest.raises(ValueError, match=r"^column 't' holds dates: make numbers of them, or leave it out$"):
        read_table(Frame(x=np.array([1, 2]), t=dates))


def test_dates_without_names_and_durations_are_refused_too():
    days = np.array([["2026-01-01"], ["2026-01-02"]], "M8[D]")
    with pytest.raises(ValueError, match=r"^column 'x0' holds dates: make numbers"):
        read_table(days)
    with pytest.raises(ValueError, match=r"^column 't' holds durations: make numbers"):
        read_table(Frame(t=(days - days[0])[:, 0]))


@pytest.mark.parametrize("dtype", ["str", "string", object])
def test_text_of_any_data_type_is_read_alike(dtype):
    words = pd.Series(["b", "a", None, "c", "a", ""], dtype=dtype)
    found = read_table(pd.DataFrame({"words": words, "none": pd.Series([None] * 6, dtype=dtype)}))
    assert found.schema.features[0].categories == ("", "a", "b", "c")
    assert found.schema.features[1].kind == "numeric"
    assert np.array_equal(found.codes, [[2, np.nan], [1, np.nan], [np.nan] * 2, [3, np.nan], [1, np.nan], [0, np.nan]], equal_nan=True)
    backwards = read_table(pd.DataFrame({"words": words[::-1], "none": [None] * 6}), schema=found.schema)
    assert np.array_equal(backwards.codes, found.codes[::-1], equal_nan=True)
