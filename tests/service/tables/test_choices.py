"""Columns left out, columns that are numbers or words whatever they hold, cells that mean nothing: as the naive twin, and told."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugal.service.tables import Choices, Columns, Limits, Reader, Rejected, csvs, parquet_child, read_file
from frugal.service.tables.parquet_child import read_parquet
from frugal.service.tables.remarks import Remark
from tests.naive import reading as naive
from tests.service.tables.test_csv import same, tables

MISSING = st.lists(st.sampled_from(["x", "nan", "?", "0", "1", "007", "1.0", "-0.00", "a", "é", "-", "1e5", 'a"']), max_size=3)
SOME = st.lists(st.sampled_from(["c0", "c1", "c2"]), max_size=2)


def read(text: str | bytes, limits: Limits | None = None, **choices) -> Columns:
    with Reader(limits, choices=Choices(**choices)) as reader:
        reader.feed(text if isinstance(text, bytes) else text.encode())
        return reader.finish()


def refusal(text: str, **choices) -> Rejected:
    with pytest.raises(Rejected) as caught:
        read(text, **choices)
    return caught.value


def taken(data: bytes) -> bool:
    try:
        naive.read(data)
    except ValueError:
        return False
    return True


@given(tables().filter(taken), SOME, SOME, MISSING, SOME, st.sampled_from([5, 64, 1 << 20]))
def test_random_choices_equal_the_naive_twin(data, drop, numeric, missing, words, block):
    width = data.split(b"\n")[0].count(b",") + 1
    there = [f"c{i}" for i in range(width)]
    drop, numeric, words = ([name for name in names if name in there] for names in (drop, numeric, words))
    words = [name for name in words if name not in numeric]
    if len(set(drop)) == width:
        drop = []
    before, csvs.BLOCK = csvs.BLOCK, block
    try:
        expected = naive.read(data, drop, numeric, missing, words)
        same(read(data, drop=drop, numeric=numeric, missing=missing, kinds=dict.fromkeys(words, "categorical")), expected)
    except Rejected as error:
        emptied = [name for name in numeric if name in expected and expected[name].count(None) == len(expected[name])]
        assert error.column in emptied  # noqa: PT017 - it may be refused, for this alone
    finally:
        csvs.BLOCK = before


def test_cells_that_mean_nothing_leave_a_column_of_numbers():
    table = read("age,sex\n31,f\n?,NA\nNA,m\n44.50,f\n", missing=["NA,?"])
    assert table["age"].tolist() == [31, None, None, 44.5]
    assert (table["age"].kind, table["age"].missing, table["age"].low, table["age"].high) == ("numeric", 2, 31, 44.5)
    assert (table["sex"].tolist(), table["sex"].categories) == (["f", None, "m", "f"], ("f", "m"))
    assert table.remarks == ()


def test_numbers_that_mean_nothing_are_known_by_their_value():
    table = read("a,b\n-999,x\n-999.0,-999\n-9.99e2,y\n1,-999.00\n", missing=["-999"])
    assert (table["a"].tolist(), table["b"].tolist()) == ([None, None, None, 1], ["x", None, "y", None])


def test_a_cell_said_to_mean_missing_that_is_nowhere_is_told():
    assert read("a,b\n1,NA\n2,7\n", missing=["NA", "N/A", "7.0", "8"]).remarks == (
        Remark("unseen", "", values=("N/A",)),
        Remark("unseen", "", values=("8",)),
    )


@pytest.mark.parametrize("block", [5, 1 << 20])
def test_words_in_a_column_that_is_to_hold_numbers_are_missing_and_told(monkeypatch, block):
    monkeypatch.setattr(csvs, "BLOCK", block)
    text = "age,note\n" + "".join(f"{age},x\n" for age in (1, "two", 3, "four", "two", "", "nan", "five", 9))
    table = read(text, numeric=["age"])
    assert table["age"].tolist() == [1, None, 3, None, None, None, None, None, 9]
    assert table.remarks == (Remark("strays", "age", 4, 3, (3, 5, 6), ("five", "four", "two")),)


def test_what_means_missing_is_no_stray():
    table = read("age\n1\n?\nx\n", numeric=["age"], missing=["?"])
    assert table.remarks == (Remark("strays", "age", 1, 1, (4,), ("x",)),)
    assert read("age\n1\n?\n", numeric=["age"], missing=["?"]).remarks == ()


def test_a_column_without_numbers_is_not_read_as_numbers():
    error = refusal("a,b\nx,1\ny,2\n", numeric=["a"])
    assert (error.message, error.choice, error.column) == ("no cell of the column 'a' is a number", "numeric", "a")
    assert read("a,b\n,1\n,2\n", numeric=["a"])["a"].missing == 2  # empty is not wrong


def test_what_is_left_out_counts_towards_no_limit():
    """An id of more words than a column may have, and of more letters than all may have."""
    text = "id,age\n" + "".join(f"case number {i},{i % 7}\n" for i in range(200))
    with pytest.raises(Rejected, match="more than 100 different words"):
        read(text, Limits(categories=100))
    assert read(text, Limits(categories=100, words=100), drop=["id"]).columns == ["age"]


def test_a_column_of_numbers_with_a_word_may_have_more_numbers_than_a_column_may_have_words():
    text = "a\n" + "".join(f"{i}.25\n" for i in range(200)) + "?\n"
    with pytest.raises(Rejected, match="more than 100 different words"):
        read(text, Limits(categories=100))
    for choice in ({"missing": ["?"]}, {"numeric": ["a"]}):
        assert read(text, Limits(categories=100), **choice)["a"].missing == 1


def test_lists_have_commas_and_so_may_names():
    text = '"a,b",c,d\n1,2,3\n'
    assert read(text, drop=["a,b"]).columns == ["c", "d"]
    assert read(text, drop=["c, d,"]).columns == ["a,b"]
    assert read(text, drop=["c", "d"]).columns == ["a,b"]


def test_a_name_that_is_no_column_is_refused_with_the_one_that_was_meant():
    error = refusal("age,cholesterol\n1,2\n", drop=["age", "chol"])
    assert (error.choice, error.message) == ("drop", "name 2 of 2 is no column of the table (did you mean 'cholesterol'?)")
    assert error.local == "drop 'chol': no such column (did you mean 'cholesterol'?); the columns are 'age', 'cholesterol'"
    assert "chol," not in error.message.replace("cholesterol", "")
    assert refusal("age,cholesterol\n1,2\n", numeric=["weight"]).message == "name 1 of 1 is no column of the table"
    assert refusal("a,b\n1,2\n", drop=["a,b"]).choice == "drop"
    assert refusal("a\n1\n", missing=[",".join(map(str, range(101)))]).limit == 100


def test_a_wrong_name_is_refused_before_the_rows_are_read():
    with Reader(choices=Choices(drop=["z"])) as reader, pytest.raises(Rejected, match="no column"):
        reader.feed(b"a,b\n1")


def test_only_what_is_wanted_is_read_and_as_what_it_is_wanted():
    text = "id,age,zip,note\n007,31,02139,x\n008,?,94103,y\n"
    table = read(text, only=["age", "zip", "id"], kinds={"zip": "categorical", "id": "categorical", "age": "numeric"})
    assert table.columns == ["id", "age", "zip"]
    assert (table["id"].tolist(), table["age"].tolist(), table["zip"].tolist()) == (["007", "008"], [31, None], ["02139", "94103"])
    assert [remark.kind for remark in table.remarks] == ["strays"]
    with pytest.raises(
        Rejected, match=r"lacks the column 'zipcode' \(did you mean 'zip'\?\), 'sex', which is needed: its columns are 'id', 'age'"
    ):
        read(text, only=["age", "zipcode", "sex"])


def test_a_column_to_copy_may_be_meant_that_is_wanted_anyway():
    with pytest.raises(Rejected, match=r"lacks the column 'agee' \(did you mean 'age'\?\), which is needed"):
        read("age,zip\n1,2\n", only=["age", "agee"], copied=["agee"])


# Parquet


@pytest.fixture
def no_limit_on_this_process(monkeypatch):
    monkeypatch.setattr(parquet_child.resource, "setrlimit", lambda *_: None)


def parquet(table: pa.Table, limits: Limits | None = None, **choices) -> Columns:
    out = io.BytesIO()
    pq.write_table(table, out)
    return read_parquet(out, limits or Limits(), Choices(**choices))


WORDY = pa.table({"age": ["31", "?", None, "four", "44.5"], "size": [1, -999, 3, None, -999], "sex": ["f", "NA", "m", "f", "?"]})


@pytest.mark.usefixtures("no_limit_on_this_process")
def test_parquet_is_read_with_the_same_choices():
    table = parquet(WORDY, missing=["NA,?", "-999", "none"], numeric=["age"])
    assert table["age"].tolist() == [31, None, None, None, 44.5]
    assert table["size"].tolist() == [1, None, 3, None, None]
    assert table["sex"].tolist() == ["f", None, "m", "f", None]
    assert table.remarks == (Remark("strays", "age", 1, 1, (5,), ("four",)), Remark("unseen", "", values=("none",)))


@pytest.mark.usefixtures("no_limit_on_this_process")
def test_columns_of_parquet_are_left_out_before_their_types_are_judged():
    table = pa.table({"when": pa.array([1, 2], pa.date32()), "a": [1, 2], "b": [True, False]})
    assert parquet(table, drop=["when"]).columns == ["a", "b"]
    assert parquet(table, drop=["when"], numeric=["b"])["b"].tolist() == [1, 0]
    with pytest.raises(Rejected, match="holds dates"):
        parquet(table)
    with pytest.raises(Rejected, match="is a number"):
        parquet(pa.table({"a": ["x", "y"]}), numeric=["a"])
    typed = parquet(pa.table({"i": [7, None], "f": [7.0, 0.5]}), kinds={"i": "categorical", "f": "categorical"})
    assert (typed["i"].tolist(), typed["f"].tolist()) == (["7", None], ["7.0", "0.5"])


@pytest.mark.usefixtures("no_limit_on_this_process")
def test_numbers_written_as_words_may_be_many():
    table = pa.table({"a": [f"{i}.5" for i in range(200)]})
    assert parquet(table, Limits(categories=100), numeric=["a"])["a"].high == 199.5


def test_choices_and_remarks_go_to_the_process_and_back(tmp_path):
    pq.write_table(WORDY, tmp_path / "t.parquet")
    table = read_file(tmp_path / "t.parquet", choices=Choices(drop=["sex"], numeric=["age"], missing=["?"]))
    assert table.columns == ["age", "size"]
    assert table.remarks == (Remark("strays", "age", 1, 1, (5,), ("four",)),)
    with pytest.raises(ValueError, match=r"t\.parquet: drop 'ages': no such column \(did you mean 'age'\?\)"):
        read_file(tmp_path / "t.parquet", choices=Choices(drop=["ages"]))
