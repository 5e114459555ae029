"""Columns as learners take them: labels, rows, schemas and codes as a data frame of plain values would give."""

import json

import numpy as np
import pytest

from frugal.models import BudgetForestClassifier
from frugal.models.table import Coded, read_table
from frugal.service.tables import Columns, Reader


def table_of(text: str) -> Columns:
    with Reader() as reader:
        reader.feed(text.encode())
        return reader.finish()


class Frame:
    """The same table as arrays of plain objects: what learners took before columns were coded."""

    def __init__(self, table: Columns) -> None:
        self.columns = table.columns
        self.values = {name: np.array(table[name].tolist(), object) for name in table.columns}

    def __getitem__(self, name):
        return self.values[name]


MIXED = table_of("n,w,k,e\n1,b,0.5,\n2,a,,\n3,,1.25,\n4,b,7,\n")


def test_schema_and_codes_are_those_of_plain_values():
    for table in (MIXED, MIXED.rows(np.array([0, 2, 3])), MIXED.rows(np.array([2]))):
        ours, theirs = read_table(table), read_table(Frame(table))
        assert ours.schema == theirs.schema
        np.testing.assert_array_equal(ours.codes, theirs.codes)


def test_codes_follow_a_schema_of_other_categories():
    schema = read_table(MIXED).schema
    other = table_of("n,w,k,e\n1,z,2,\n2,b,3,5\n")
    np.testing.assert_array_equal(read_table(other, schema=schema).codes, read_table(Frame(other), schema=schema).codes)


def test_words_for_a_number_are_refused_as_before():
    schema = read_table(MIXED).schema
    with pytest.raises(TypeError, match="holds 'x'"):
        read_table(table_of("n,w,k,e\nx,b,2,1\n"), schema=schema)


def test_a_named_column_of_numbers_is_categorical():
    ours, theirs = read_table(MIXED, ["n"]), read_table(Frame(MIXED), ["n"])
    assert ours.schema == theirs.schema
    np.testing.assert_array_equal(ours.codes, theirs.codes)


def test_learners_fit_columns():
    forest = BudgetForestClassifier(max_trees=2, random_state=0).fit(MIXED.only(["n", "w"]), ["a", "b", "a", "b"])
    assert forest.ensemble_.schema.names == ("n", "w")
    assert len(forest.predict(MIXED.only(["n", "w"]))) == 4


def test_coded_columns_are_arrays_of_words():
    assert np.asarray(Coded(("a", "b"), np.array([1, -1, 0]))).tolist() == ["b", None, "a"]
    assert MIXED["w"][1] == "a"
    assert MIXED["w"][2] is None
    assert MIXED["w"][np.array([0, 1])].tolist() == ["b", "a"]
    assert MIXED["n"][-1] == 4
    assert (len(MIXED), MIXED.shape, MIXED.columns) == (4, (4, 4), ["n", "w", "k", "e"])


def test_labels_are_text_and_whole_numbers_have_no_point():
    table = table_of("a,b,c,d\n1,0.5,x,1\n-2,3,y,\n")
    assert table.labels("a").tolist() == ["1", "-2"]
    assert table.labels("c").tolist() == ["x", "y"]
    with pytest.raises(ValueError, match="1 rows have no 'd'"):
        table.labels("d")
    with pytest.raises(ValueError, match="no column 'q'"):
        table.labels("q")
    with pytest.raises(ValueError, match="more than 200 characters"):
        table_of("a\n" + "x" * 201 + "\n").labels("a")


def test_a_regression_target_is_no_label():
    table = table_of("price,size,rooms\n" + "".join(f"{i}.5,{1000 + i},{i % 7}\n" for i in range(300)))
    with pytest.raises(
        ValueError, match=r"^'price' cannot be the label: its values are numbers with fractions, as a regression target has\. "
    ):
        table.labels("price")
    with pytest.raises(ValueError, match=r"^'size' cannot be the label: its values are 300 different numbers in 300 rows, as a regression"):
        table.labels("size")
    assert set(table.labels("rooms").tolist()) == set("0123456")
    mixed = table_of("price,grade\n?,4+\n" + "".join(f"{i}.5,{i % 4}\n" for i in range(300)))
    with pytest.raises(
        ValueError, match=r"^'price' cannot be the label: its values are 300 different numbers in 301 rows, as a regression"
    ):
        mixed.labels("price")
    assert set(mixed.labels("grade").tolist()) == {"0", "1", "2", "3", "4+"}


def test_what_is_described_is_json():
    described = json.loads(json.dumps(MIXED.describe(), allow_nan=False))
    assert described[0] == {"name": "n", "kind": "numeric", "missing": 0, "distinct": None, "categories": None, "low": 1.0, "high": 4.0}
    assert described[1]["categories"] == ["a", "b"]
    assert (described[1]["missing"], described[1]["distinct"]) == (1, 2)
    assert (described[3]["low"], described[3]["missing"]) == (None, 4)


def test_rows_recount_what_is_missing_and_the_range():
    part = MIXED.rows(np.array([False, True, True, False]))
    assert part["k"].describe() | {"low": part["k"].low} == {
        "name": "k", "kind": "numeric", "missing": 1, "distinct": None, "categories": None, "low": 1.25, "high": 1.25,
    }  # fmt: skip
    assert part["w"].missing == 1


def test_words_that_name_cases_are_no_label():
    table = table_of("id,x\n" + "".join(f"case {i},{i}\n" for i in range(300)))
    with pytest.raises(ValueError, match=r"^'id' has 300 different words in 300 rows: it names cases, it is no class$"):
        table.labels("id")
