"""Cells of CSV by the kernel alone: forms, entries, and where it stops."""

import numpy as np
import pytest

from frugal.service.tables.kernels import parsing
from frugal.service.tables.kernels.parsing import CODED, EMPTY, LOST, NAN, NUMBER, WORD


def parse(text: bytes, columns: int, keep: bool = True, room: int = 512):
    values, forms = np.full((columns, text.count(b"\n")), np.nan), np.zeros((columns, text.count(b"\n")), np.uint8)
    entries, numbers, slots = np.zeros((room, 6), np.int64), np.zeros(room), np.full(2 * room, -1)
    with np.errstate(over="ignore"):  # without numba the hash is seen to wrap
        end = parsing.parse_rows(
            np.frombuffer(text, np.uint8), 0, 0, 100, np.full(columns, keep, np.uint8), values, forms, slots, entries, numbers, 0
        )
    return values, forms, entries[: end[3]], numbers, end


@pytest.mark.parametrize(
    ("cell", "value", "form"),
    [
        (b"0", 0, 0), (b"7", 7, 0), (b"-12", -12, 0), (b"1.50", 1.5, 2), (b"-0.25", -0.25, 2), (b" 3 ", 3, 0), (b'"42"', 42, 0),
        (b'" 4.5 "', 4.5, 1), (b"123456789012345", 123456789012345, 0), (b"0.00000000000001", 1e-14, 14), (b"\xc2\xa08", 8, 0),
    ],
)  # fmt: skip
def test_plain_numbers_have_their_decimals_as_form(cell, value, form):
    for end in (b"\n", b"\r\n"):
        values, forms, entries, _, stop = parse(cell + b",1" + end, 2)
        assert (values[0, 0], forms[0, 0], len(entries), stop[4]) == (value, form, 0, parsing.FINE)
        assert format(values[0, 0], f".{form}f") == cell.decode().strip('" \u00a0')


@pytest.mark.parametrize(
    ("cell", "kind", "value"),
    [
        (b"007", NUMBER, 7), (b"+1", NUMBER, 1), (b".5", NUMBER, 0.5), (b"5.", NUMBER, 5), (b"1e3", NUMBER, 1000),
        (b"-1E-2", NUMBER, -0.01),
        (b"1234567890123456", NUMBER, 1234567890123456), (b"nan", NAN, None), (b"-NaN", NAN, None), (b"inf", WORD, None),
        (b"1_0", WORD, None), (b"0x1", WORD, None), (b"1e", WORD, None), (b"1e+", WORD, None), (b".", WORD, None), (b"-", WORD, None),
        (b"1e400", WORD, None), (b"1 2", WORD, None), (b"1.2.3", WORD, None), (b"\xd9\xa1", WORD, None), (b"1" * 20, parsing.HARD, None),
    ],
)  # fmt: skip
def test_all_else_is_an_entry(cell, kind, value):
    values, forms, entries, numbers, _ = parse(cell + b",1\n" + cell + b",2\n", 2)
    assert forms[0].tolist() == [CODED, CODED]
    assert values[0].tolist() == [0, 0]
    assert entries[:, parsing.KIND].tolist() == [kind]
    assert numbers[0] == value or value is None


def test_texts_of_odd_numbers_are_kept_only_where_wanted():
    values, forms, entries, _, _ = parse(b"1e3,x\n", 2, keep=False)
    assert (values[0, 0], forms[0, 0], forms[1, 0], len(entries)) == (1000, LOST, CODED, 1)


def test_quotes_belong_to_the_text_and_the_same_text_is_one_entry():
    _, forms, entries, _, _ = parse(b'"a""b",x\n"a""b",x\na""b,"x"\n,""\n', 2)
    assert len(entries) == 3  # a""b in quotes and bare are two texts; x with and without quotes is one
    assert forms[:, 3].tolist() == [EMPTY, EMPTY]


@pytest.mark.parametrize(
    ("text", "what", "row", "column"),
    [
        (b"1,2\n3\n", parsing.TOO_FEW, 1, 0),
        (b"1,2\n3,4,5\n", parsing.TOO_MANY, 1, 1),
        (b'"1"2,3\n', parsing.AFTER_QUOTE, 0, 0),
        (b'1,"2\n3,4\n', parsing.UNCLOSED, 0, 1),
        (b"1,2\r3,4\n", parsing.LONE_CR, 0, 1),
        (b"1," + b"x" * 101 + b"\n", parsing.TOO_LONG, 0, 1),
        (b"1," + b"x" * 100 + b"\n", parsing.FINE, 1, 0),
    ],
)
def test_trouble_is_found_where_it_is(text, what, row, column):
    _, found, at, _, trouble = parse(text, 2)[4]
    assert (trouble, found, at) == (what, row, column)


def test_a_full_dictionary_stops_before_a_row_and_goes_on_from_there():
    text = b"".join(b"w%d,v%d\n" % (i, i) for i in range(10))
    place, rows, _, used, what = parse(text, 2, room=8)[4]
    assert (what, rows, used) == (parsing.FULL, 4, 8)
    assert text[place:].startswith(b"w4")


def test_rows_end_where_quotes_are_closed():
    def end(text: bytes, state: int = 0):
        return parsing.row_end(np.frombuffer(text, np.uint8), state, 0, 0, False)

    assert end(b"a,b\nc")[0] == 4
    assert end(b'a,"b\nc')[:2] == (0, 2)
    assert end(b'x"y\n"')[:2] == (4, 2)
    assert end(b'"a""b\n"\nc')[0] == 8
    assert end(b'b"\nc', 2)[0] == 3
    assert end(b"a,bb,ccc")[2:] == (3, 2, 3)


def test_the_first_row_end_is_found_where_it_is_asked_for():
    text = np.frombuffer(b'a,"b\n""c"\n1,2\n', np.uint8)
    assert parsing.row_end(text, 0, 0, 0, True)[0] == 10
    assert parsing.row_end(text, 0, 0, 0, False)[0] == 14
