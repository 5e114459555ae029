"""Parquet to columns, in a process of its own; damage and lies are refused."""

import datetime
import io
import random
import subprocess
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frugal.service.tables import Columns, Limits, Reader, Rejected, parquet_child, parquets, read_file
from frugal.service.tables.children import PACKAGES, child_environment
from frugal.service.tables.columns import numbers_column
from frugal.service.tables.parquet_child import read_parquet


def written(table: pa.Table, **settings) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **settings)
    return out.getvalue()


@pytest.fixture(autouse=True)
def no_limit_on_this_process(monkeypatch):
    monkeypatch.setattr(parquet_child.resource, "setrlimit", lambda *_: None)


def read(table: pa.Table, limits: Limits | None = None, **settings):
    return read_parquet(io.BytesIO(written(table, **settings)), limits or Limits())


def test_a_file_read_in_its_own_process(tmp_path):
    table = pa.table({"n": [1, None, 300], "w": ["x", " y ", ""], "b": [True, None, True]})
    path = tmp_path / "t.parquet"
    path.write_bytes(written(table))
    found = read_file(path)
    assert found["n"].tolist() == [1, None, 300]
    assert found["w"].tolist() == ["x", "y", None]
    assert found["b"].tolist() == ["true", None, "true"]
    assert found["b"].categories == ("true",)


def test_damage_is_refused_by_the_process(tmp_path):
    data = written(pa.table({"n": [1, 2, 3]}))
    for bad in (data[:-9], b"PAR1", b"PAR1" + bytes(100), data[:30] + bytes(20) + data[50:]):
        with Reader(folder=str(tmp_path)) as reader:
            reader.feed(bad)
            with pytest.raises(Rejected):
                reader.finish()
    assert list(tmp_path.iterdir()) == []


def test_the_process_is_told_no_secrets_and_runs_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("FRUGAL_ADMIN_KEY", "secret")
    monkeypatch.setenv("OTHER", "kept")
    monkeypatch.chdir(tmp_path)
    assert "secret" not in child_environment().values()
    assert child_environment()["OTHER"] == "kept"
    told = {}
    run = subprocess.run
    monkeypatch.setattr(parquets.subprocess, "run", lambda *given, **settings: told.update(settings) or run(*given, **settings))
    with Reader() as reader:
        reader.feed(written(pa.table({"n": [1, 2, 3]})))
        assert reader.finish()["n"].tolist() == [1, 2, 3]
    assert not any(name.startswith("FRUGAL_") for name in told["env"])
    assert told["cwd"] == PACKAGES


def test_a_process_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(parquets, "SECONDS", 0.05)
    with Reader() as reader:
        reader.feed(written(pa.table({"n": [1, 2, 3]})))
        with pytest.raises(Rejected, match="seconds to read"):
            reader.finish()


def test_refusals_come_through(tmp_path):
    with Reader(Limits(rows=2)) as reader:
        reader.feed(written(pa.table({"n": [1, 2, 3]})))
        with pytest.raises(Rejected, match="more than 2 rows") as caught:
            reader.finish()
    assert (caught.value.limit, caught.value.too_large) == (2, True)


@pytest.mark.parametrize("kind", ["int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"])
def test_numbers_of_every_width(kind):
    values = [0, 1, 100, None]
    array = (
        pa.array([np.float16(v) if v is not None else None for v in values], pa.float16()) if kind == "float16" else pa.array(values, kind)
    )
    found = read(pa.table({"n": array}))
    assert found["n"].tolist() == values
    assert found["n"].missing == 1
    assert read(pa.table({"n": array[:3]}))["n"].values.dtype == "uint8"


def test_nan_and_null_are_missing_and_infinity_is_refused():
    assert read(pa.table({"n": [1.5, float("nan"), None]}))["n"].tolist() == [1.5, None, None]
    with pytest.raises(Rejected, match="infinity in row 3") as caught:
        read(pa.table({"n": [1.5, float("inf")]}))
    assert (caught.value.row, caught.value.column) == (3, "n")


@pytest.mark.parametrize("settings", [{}, {"use_dictionary": False}, {"row_group_size": 3}, {"compression": "zstd", "version": "1.0"}])
def test_words_however_they_are_stored(settings):
    words = ["a", None, "b", "", " a", "ü"] * 4
    expected = [None if word is None else word.strip() or None for word in words]
    for array in (pa.array(words), pa.array(words, pa.large_string()), pa.array(words).dictionary_encode()):
        found = read(pa.table({"w": array}), **settings)
        assert found["w"].tolist() == expected
        assert found["w"].categories == ("a", "b", "ü")


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (pa.array([[1], [2]]), "lists or structures"),
        (pa.array([{"a": 1}]), "lists or structures"),
        (pa.array([datetime.date(2020, 1, 1)]), "dates or times"),
        (pa.array([datetime.datetime(2020, 1, 1)]), "dates or times"),
        (pa.array([Decimal("1.5")]), "decimals"),
        (pa.array([b"x"]), "neither numbers nor text"),
        (pa.array(["x"], pa.string_view()), "neither numbers nor text"),
    ],
)
def test_other_columns_are_refused_by_name(array, words):
    with pytest.raises(Rejected, match=words) as caught:
        read(pa.table({"n": pa.array([1] * len(array)), "odd": array}))
    assert (caught.value.column, caught.value.too_large) == ("odd", False)


@pytest.mark.parametrize(
    ("limits", "too_large"),
    [
        ({"rows": 2}, True),
        ({"columns": 1}, True),
        ({"bytes": 50}, True),
        ({"field": 3}, True),
        ({"categories": 2}, False),
        ({"memory": 5}, True),
        ({"memory": 8}, True),
        ({"words": 10}, False),
    ],
)
def test_limits_are_kept(limits, too_large):
    with pytest.raises(Rejected) as caught:
        read(pa.table({"n": [1, 2, 3], "w": ["long word", "b", "c"]}), Limits(**limits))
    assert (caught.value.limit, caught.value.too_large) == (next(iter(limits.values())), too_large)


def test_columns_of_nothing_are_refused_before_they_are_made(monkeypatch):
    nothing = pa.table({f"c{k}": pa.nulls(200_000) for k in range(100)})
    data = written(nothing)
    monkeypatch.setattr(parquet_child, "_column", None)
    with pytest.raises(Rejected, match="memory") as caught:
        read_parquet(io.BytesIO(data), Limits(memory=79_999_999))
    assert (caught.value.limit, caught.value.too_large) == (79_999_999, True)


def test_the_process_gets_no_more_memory_than_columns_may_take(monkeypatch):
    given = []
    monkeypatch.setattr(parquet_child.resource, "setrlimit", lambda which, room: given.append(room[0]))
    monkeypatch.setattr(parquet_child, "_address_space", lambda: 0)
    read(pa.table({f"c{k}": [1.0] * 1000 for k in range(50)}), Limits(memory=300_000))
    assert given[0] == parquet_child.SPARE + 300_000 + 64 * 1000


def test_more_names_than_are_packed_is_said(monkeypatch):
    with pytest.raises(Rejected, match="names and words take"):
        parquet_child._write(io.BytesIO(), Columns.of([numbers_column(f"{k}" + "n" * 1000, np.zeros(1)) for k in range(17_000)]))


def test_a_table_of_no_rows_or_names_twice_is_refused():
    with pytest.raises(Rejected, match="no rows"):
        read(pa.table({"n": pa.array([], pa.int64())}))
    with pytest.raises(Rejected, match="more than once"):
        read(pa.table([[1], [2]], names=["a", "a"]))


def test_fuzzed_files_are_read_or_refused_and_nothing_else(monkeypatch):
    rng = random.Random(0)
    data = written(pa.table({"n": list(range(50)), "w": [f"w{k % 5}" for k in range(50)], "f": [k / 7 for k in range(50)]}))
    for _ in range(300):
        bad = bytearray(data)
        for _ in range(rng.choice([1, 2, 8])):
            bad[rng.randrange(4, len(bad) - 8)] = rng.randrange(256)
        try:
            read_parquet(io.BytesIO(bytes(bad)), Limits())
        except Exception as error:
            assert not isinstance(error, (SystemError, MemoryError))  # noqa: PT017 - any other is refused by the process's main
