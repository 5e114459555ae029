"""Tables to codes."""

import numpy as np
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
