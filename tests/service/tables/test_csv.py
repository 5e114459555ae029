"""CSV to columns: equal to the naive twin, whatever the bytes and however they are cut."""

import csv
import io
import struct
import time
import tracemalloc

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frugal.service.tables import Columns, Limits, Reader, Rejected, csvs, tally
from frugal.service.tables.kernels import parsing
from frugal.service.warming import PARTS
from tests.naive import reading as naive


def read(data: bytes, limits: Limits | None = None, sizes: tuple[int, ...] = ()) -> Columns:
    with Reader(limits or Limits()) as reader:
        start = 0
        for size in sizes:
            reader.feed(data[start : start + size])
            start += size
        reader.feed(memoryview(data)[start:])
        return reader.finish()


def refusal(data: bytes, limits: Limits | None = None) -> Rejected:
    with pytest.raises(Rejected) as caught:
        read(data, limits)
    assert str(caught.value) == caught.value.message
    return caught.value


def feed_on(reader: Reader, piece: bytes) -> None:
    for _ in range(2_000_000_000 // len(piece)):
        reader.feed(piece)


def bits(values: list) -> list:
    return [struct.pack("<d", value) if isinstance(value, (int, float)) else value for value in values]


def same(table: Columns, expected: dict[str, list]) -> None:
    assert table.columns == list(expected)
    for name, values in expected.items():
        assert bits(table[name].tolist()) == bits(values)
        assert table[name].missing == values.count(None)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(csvs, "BLOCK", 7)
    monkeypatch.setattr(csvs, "ROWS", 1)


NUMBERS = st.one_of(
    st.integers(-(10**17), 10**17).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=3).map(str),
    st.sampled_from(
        ["0", "1", "-0", "007", "+5", ".5", "5.", "1e5", "1E-3", "-0.00", "1e400", "1e-400", "0" * 30 + "1", "9" * 30, "0e999"]
    ),
)
WORDS = st.sampled_from(["x", "nan", "NaN", "-nan", "inf", "?", "1_0", "0x1", "é", "日本", "\u00a05", "e5", ".", "-", "+.e1", "1e", "1e+"])
TEXT = st.text(st.sampled_from('ab1,"\n\r \té\u2003.-;'), max_size=6)
CELLS = st.one_of(st.just(""), NUMBERS, WORDS, TEXT)


def written(rows: list[list[str]], end: str, quoting: int, last: bool) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=quoting).writerows(rows)
    text = out.getvalue()
    return (text if last else text.removesuffix(end)).encode()


@st.composite
def tables(draw) -> bytes:
    width = draw(st.integers(1, 4))
    kinds = [draw(st.sampled_from([NUMBERS, st.one_of(NUMBERS, st.just("")), CELLS])) for _ in range(width)]
    rows = draw(st.lists(st.tuples(*kinds), min_size=1, max_size=12))
    header = [f" c{i}" for i in range(width)]
    return written(
        [header, *map(list, rows)],
        draw(st.sampled_from(["\n", "\r\n"])),
        draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        draw(st.booleans()),
    )


@given(tables(), st.lists(st.integers(0, 20), max_size=12), st.sampled_from([5, 64, 1 << 20]))
@settings(deadline=None)
def test_random_tables_equal_the_naive_twin_however_they_are_cut(data, sizes, block):
    before, csvs.BLOCK = csvs.BLOCK, block
    try:
        expected = naive.read(data)
    except ValueError:
        with pytest.raises(Rejected):
            read(data, sizes=tuple(sizes))
    else:
        same(read(data, sizes=tuple(sizes)), expected)
    finally:
        csvs.BLOCK = before


@given(
    st.text(st.sampled_from('a1,,"\n\n\r .é'), max_size=40).map(str.encode),
    st.lists(st.integers(0, 9), max_size=6),
    st.sampled_from([5, 1 << 20]),
)
@settings(deadline=None, max_examples=400)
def test_random_bytes_are_taken_or_refused_as_the_naive_twin_does(data, sizes, block):
    data = b"a,b\n" + data
    before, csvs.BLOCK = csvs.BLOCK, block
    try:
        expected = naive.read(data)
    except ValueError:
        with pytest.raises(Rejected):
            read(data, sizes=tuple(sizes))
    else:
        same(read(data, sizes=tuple(sizes)), expected)
    finally:
        csvs.BLOCK = before


HARD = [
    "2.2250738585072011e-308", "2.2250738585072014e-308", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-330",
    "1.7976931348623157e308", "1e22", "1e23", "9007199254740993", "9007199254740992.5", "123456789012345678901234567890",
    "0.1", "0.30000000000000004", "-0", "-0.0", "1" + "0" * 300, "0." + "0" * 300 + "17", "8.5e-319",
    "6929495644600919.5", "3.518437208883201171875e13",
]  # fmt: skip


def test_hard_numbers_are_rounded_as_float_rounds_them():
    table = read(b"a\n" + "\n".join(HARD).encode())
    assert bits(table["a"].tolist()) == bits([float(text) for text in HARD])


@given(st.lists(NUMBERS.filter(lambda text: abs(float(text)) < 1e308), min_size=1, max_size=40))
@settings(deadline=None)
def test_numbers_equal_float_bit_for_bit(texts):
    table = read(b"a\n" + "\n".join(texts).encode())
    assert bits(table["a"].tolist()) == bits([float(text) for text in texts])


def test_a_word_in_the_last_row_makes_words_as_they_were_written_of_all():
    cells = ["7", "007", "1.0", "1", "1.50", "-0", "0", "", "1e5", "12345678901234567.8", "nan", "x"]
    table = read(b"a,b\n" + b"".join(f"{cell},1\n".encode() for cell in cells))
    assert table["a"].kind == "categorical"
    assert table["a"].tolist() == [cell or None for cell in cells]
    assert table["a"].categories == tuple(sorted(set(cells) - {""}))


def test_nan_is_missing_among_numbers_and_a_word_among_words():
    table = read(b"a,b\nnan,NaN\n1,x\n")
    assert table["a"].tolist() == [None, 1]
    assert table["b"].tolist() == ["NaN", "x"]


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        ("0 255", "uint8"), ("-1 127", "int8"), ("0 256", "uint16"), ("-129 5", "int16"), ("70000 1", "int32"), ("-1 70000", "int32"),
        ("0.5 1", "float32"), ("0.1 1", "float64"), ("-0 1", "float32"), ("16777217 0.5", "float64"), ("4294967296 1", "float32"),
        ("4294967297 1", "float64"), ("1 ,", "float32"),
    ],
)  # fmt: skip
def test_numbers_take_the_smallest_type_that_holds_them(cells, dtype):
    table = read(b"a,b\n" + "".join(f"{cell.strip(',')},1\n" for cell in cells.split(" ")).encode())
    assert table["a"].values.dtype == dtype


def test_types_grow_from_block_to_block(small_blocks):
    table = read(b"a,b,c\n" + b"1,1,\n" * 10 + b"300,0.5,\n" * 10 + b",-70000,\n" * 10)
    assert table["a"].tolist() == [1.0] * 10 + [300.0] * 10 + [None] * 10
    assert table["b"].tolist() == [1.0] * 10 + [0.5] * 10 + [-70000.0] * 10
    assert (table["a"].low, table["a"].high, table["b"].low, table["c"].low) == (1, 300, -70000, None)
    assert (table["c"].kind, table["c"].missing) == ("numeric", 30)


@pytest.mark.parametrize(
    ("data", "row", "column", "words"),
    [
        (b"", None, None, "empty"),
        (b"\n\n", None, None, "empty"),
        (b"a,b\n", 2, None, "no rows"),
        (b"a,b", 2, None, "no rows"),
        (b"a,\n1,2\n", 1, None, "column 2 has no name"),
        (b"a,a\n1,2\n", 1, "a", "more than once"),
        (b"a;b\n1;2\n", 1, None, "semicolon"),
        (b"a\tb\n1\t2\n", 1, None, "tab"),
        (b'"a\n', 1, None, "never closed"),
        (b'"a"b,c\n1,2\n', 1, None, "quotes"),
        (b"a\x01,b\n1,2\n", 1, None, "cannot be printed"),
        (b"a,b\n1,2\n3\n", 3, None, "row 3 has 1 cells, the first line 2"),
        (b"a,b\n1,2\n\n3,4,5\n", 3, None, "row 3 has more cells than the 2"),
        (b'a,b\n1,"2\n3,4\n', 2, "b", "never closed"),
        (b'a,b\n"1"x,2\n', 2, "a", "after a closing quote"),
        (b"a,b\n1,2\n3,\xff\n", 3, "b", "not UTF-8"),
        (b"a,b\n1,2\n\xff,3\n", 3, "a", "not UTF-8"),
        (b'a,b\n1,2\n"\xff",3\n', 3, "a", "not UTF-8"),
        (b"a,b\n1,2\n3,4\x00\n", 3, "b", "zero"),
        (b"\xff\xfea\x00\n\x00", 1, None, "not UTF-8"),
        (b"a,b\n1,2\r3,4\n", 2, "b", "carriage return"),
        (b"a,b\r1,2\r3,4\r", 1, None, "carriage return"),
        (b"PK\x03\x04rest", None, None, "zip"),
    ],
)
def test_what_is_wrong_is_said_with_row_and_column(data, row, column, words):
    error = refusal(data)
    assert (error.row, error.column, error.limit, error.too_large) == (row, column, None, False)
    assert words in error.message


@pytest.mark.parametrize(
    ("data", "limits", "row", "column", "limit", "too_large"),
    [
        (b"a,b\n1,2\n", {"bytes": 7}, None, None, 7, True),
        (b"a,b\n1,2\n3,4\n5,6\n", {"rows": 2}, 4, None, 2, True),
        (b"a,b,c\n1,2,3\n", {"columns": 2}, 1, None, 2, True),
        (b"a,b\n1,2\n3,xxxxxx\n", {"field": 5}, 3, "b", 5, True),
        (b"a,bbbbbbb\n1,2\n", {"field": 5}, 1, None, 5, True),
        (b"a,b\n1,u\n1,v\n1,w\n", {"categories": 2}, None, "b", 2, False),
        (b"a,b\n1,1\n1,2\n1,w\n", {"categories": 2}, None, "b", 2, False),
        (b"a,b\n" + b",\n" * 10_000, {"memory": 70_000}, None, None, 70_000, True),
        (b"a,b\nw,xxxxx\nw,yyyyy\n", {"words": 10}, None, "b", 10, False),
    ],
)
def test_limits_are_kept(data, limits, row, column, limit, too_large):
    error = refusal(data, Limits(**limits))
    assert (error.row, error.column, error.limit, error.too_large) == (row, column, limit, too_large)
    assert f"{limit:,}" in error.message


def test_a_table_that_just_fits_in_memory_is_taken():
    assert len(read(b"a,b\n" + b",\n" * 10_000, Limits(memory=81_000))) == 10_000
    assert read(b"a,b\nw,xxxxx\nw,yyyyy\n", Limits(words=11)).shape == (2, 2)


def test_one_large_number_that_makes_a_column_wide_is_counted(small_blocks):
    rows = b"1,1\n" * 5_000
    limits = Limits(memory=100_000 + 2 * 256 * (len(rows) // csvs.BLOCK + 5))
    assert len(read(b"a,b\n" + rows, limits)) == 5_000
    few = Limits(memory=79_000)
    for large in (b"1e300", b"0.1"):
        assert refusal(b"a,b\n" + rows + large + b"," + large + b"\n", few).too_large


def test_texts_that_are_let_go_are_not_counted_any_more(small_blocks):
    odd = b"".join(b"1e%d,w%d\n" % (i % 300, i % 9) for i in range(3_000))
    limits = Limits(categories=100)
    with Reader(limits) as reader:
        reader.feed(b"a,b\n" + odd)
        reader._format._collect(0)
        gathered = reader._format._gathered
        held = sum(piece.nbytes for pieces in gathered._pieces for piece in pieces)
        words = sum(len(word) + tally.WORD for word in gathered._words[1])
        assert not gathered._holders
        assert gathered._tally._memory == held + words


def test_a_word_after_too_many_odd_numbers_is_refused_with_its_row(small_blocks):
    odd = b"".join(b"%d,1e%d\n" % (i, i) for i in range(20))
    assert read(b"a,b\n" + odd, Limits(categories=8))["b"].kind == "numeric"
    error = refusal(b"a,b\n" + odd + b"1,1\n1,x\n", Limits(categories=8))
    assert (error.row, error.column) == (23, "b")


def test_messages_never_repeat_cells_and_cut_names():
    name = "n" * 500
    error = refusal(f'{name}\n"secret"x\n'.encode())
    assert "secret" not in error.message
    assert len(error.message) < 400


@pytest.mark.parametrize(("first", "cell"), [(b"", b"x" * 100), (b'"', b"x\n," * 100)])
def test_a_field_without_end_is_refused_without_keeping_it(first, cell):
    tracemalloc.start()
    with Reader(Limits(field=1000)) as reader:
        reader.feed(b"a,b\n1,2\n3," + first)
        with pytest.raises(Rejected) as caught:
            feed_on(reader, cell * 100)
    assert (caught.value.row, caught.value.column, caught.value.too_large) == (3, "b", True)
    assert tracemalloc.get_traced_memory()[1] < 40e6
    tracemalloc.stop()


def test_a_row_of_endless_cells_is_refused():
    with Reader() as reader:
        reader.feed(b"a,b\n")
        with pytest.raises(Rejected, match="row 2 has more cells"):
            feed_on(reader, b"1," * 10_000)


def test_blank_rows_claim_no_memory():
    header = ",".join(f"c{i}" for i in range(4000)).encode()
    assert len(read(header + b"\n" + b"\n" * 3_000_000 + b"," * 3999 + b"\n")) == 1


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"\r\r\n"])
@pytest.mark.parametrize("sizes", [(), (1,) * 9, (2_000_000,)])
def test_blank_lines_before_the_names_are_skipped_at_once(blank, sizes):
    start = time.monotonic()
    assert read(blank * 3_000_000 + b"a,b\n1,x\n", sizes=sizes)["b"].tolist() == ["x"]
    assert time.monotonic() - start < 2


def test_a_carriage_return_before_the_names_is_refused_after_blank_lines_too():
    for start in (b"\r", b"\n\r", b"\r\n\n\r"):
        assert "carriage return" in refusal(start + b"a,b\n1,2\n").message
    assert "empty" in refusal(b"\n\r\n\r").message


def test_names_without_end_are_refused():
    with Reader() as reader, pytest.raises(Rejected, match="names of the columns") as caught:
        feed_on(reader, b'"n' + b"\n" * 60_000 + b'",')
    assert (caught.value.row, caught.value.too_large) == (1, True)
    names = ",".join(f"{k}" + "x" * 900 for k in range(4000))
    assert refusal(f"{names}\n".encode()).limit == csvs.LONGEST_HEADER


def test_a_mark_before_the_text_is_left_out_and_names_are_stripped():
    assert read(b"\xef\xbb\xbf a ,b\n1,2\n", sizes=(1, 1, 1, 1)).columns == ["a", "b"]


def test_close_may_come_at_any_time_and_twice():
    reader = Reader()
    reader.feed(b"a\n" + b"1\n" * 3_000_000)
    reader.close()
    reader.close()


def test_blocks_in_threads_give_what_one_block_gives():
    rng = np.random.default_rng(0)
    numbers, words = rng.normal(size=60_000), rng.integers(0, 50, 60_000)
    data = b"n,w,k\n" + "".join(f"{n!r},w{w},{w}\n" for n, w in zip(numbers.tolist(), words.tolist(), strict=True)).encode()
    assert len(data) > 1.5 * csvs.BLOCK
    table = read(data)
    assert (table["n"].values == numbers).all()
    assert table["w"].tolist() == [f"w{w}" for w in words]
    assert (table["k"].values == words).all()


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_after_a_warm_up_reading_compiles_nothing():
    PARTS.warm_up()
    kernels = (parsing.parse_rows, parsing.place_entries, parsing.sum_up, parsing.row_end)
    before = [len(kernel.signatures) for kernel in kernels]
    assert all(before)
    read(b"a,b\n" + b'1,"x"\n' * 400_000)
    assert [len(kernel.signatures) for kernel in kernels] == before
