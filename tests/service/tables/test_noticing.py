"""What is remarkable about a column: told here with its cells, over the wire without."""

import pytest

from frugal.service.tables import Choices, Reader, notice
from frugal.service.tables.remarks import Remark, told, told_anywhere


def noticed(cells, label=None, **choices):
    with Reader(choices=Choices(**choices)) as reader:
        reader.feed(("c,z\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells))).encode())
        return notice(reader.finish(), label)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([f"case-{i:03}" for i in range(40)], "words"),
        ([f"case-{i:03}" for i in range(38)] * 1 + ["case-000", "case-001"], "words"),  # names that a few share
        (range(40), "counter"),
        (range(1001, 1041), "counter"),
        ([(7 * i) % 40 for i in range(40)], "counter"),  # shuffled
        (range(400, 0, -10), "counter"),
        ([f"2026-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(40)], "dates"),
        ([f"{1 + i % 28}/{1 + i % 12}/2026 08:30" for i in range(40)], "dates"),
        ([f"{1 + i % 28}.{1 + i % 12}.26" for i in range(40)], "dates"),
        ([f"2026-01-{1 + i % 28:02}T08:{i:02}:00.5Z" for i in range(40)], "dates"),
        ([f"{1 + i % 28} Nov 2026" for i in range(40)], "dates"),
        ([20260100 + 1 + i % 28 for i in range(40)], "dates"),
        (["same"] * 40, "constant"),
        ([7.5] * 40, "constant"),
        ([""] * 40, "empty"),
        ([*range(38), "?", "?"], "mixed"),
        ([*([1, 2, 3] * 11), *["?"] * 7], "mixed"),  # a fifth of the cells, and all alike
    ],
)
def test_what_is_seldom_meant_is_noticed(cells, kind):
    (remark,) = noticed(cells)
    assert (remark.kind, remark.column) == (kind, "c")
    assert not noticed(cells, label="c")
    assert len(told([remark])) == len(told_anywhere([remark])) == 1


@pytest.mark.parametrize(
    "cells",
    [
        [f"word {i % 20}" for i in range(40)],
        [f"word {i}" for i in range(37)] + ["word 0"] * 3,  # nine in ten
        [f"case-{i:03}" for i in range(19)],  # so few rows may differ by chance
        range(19),
        [i * i for i in range(40)],
        [i + 0.5 for i in range(40)],
        [*range(39), 38],
        [*range(39), ""],
        [20261301 + i % 28 for i in range(40)],  # no month 13
        [*range(10), *["?"] * 30],  # words, with some numbers among them
        [*(["same"] * 39), ""],  # that it is missing may say something
        [*([3.5] * 39), ""],
        ["1", "2", "three", "four", "five", "six"] * 7,
        [*([1, 2, 3] * 5), *["a", "b", "c", "d"] * 6],
        [f"2026-01-{1 + i % 28:02}" for i in range(39)] + ["unknown"],
    ],
)
def test_what_may_well_be_meant_is_not(cells):
    assert not noticed(cells)


def test_a_few_words_among_numbers_are_told_with_their_rows():
    cells = [*map(str, range(200))]
    for row, word in ((17, "n/a"), (20, "?"), (90, "n/a"), (100, "n/a")):
        cells[row - 2] = word
    (remark,) = noticed(cells)
    assert remark == Remark("mixed", "c", 4, 2, (17, 20, 90), ("?", "n/a"))
    assert told([remark]) == [
        "'c' is taken as words, because 4 cells are no numbers: '?', 'n/a' (rows 17, 20, 90, ...); if that means missing, say so with "
        "--missing '?,n/a'; or read the others as numbers with --numeric c"
    ]
    assert told_anywhere([remark]) == [
        "'c' is taken as words, because 4 cells are no numbers: 2 different values (rows 17, 20, 90, ...); delete the data set and send it "
        "again with numeric=c, or with what stands there as missing"
    ]


def test_cells_that_were_made_missing_are_told():
    remarks = noticed([*range(50), "secret"], numeric=["c"])
    assert told(remarks) == ["'c': 1 cell is no number and taken as missing: 'secret' (row 52)"]
    assert told_anywhere(remarks) == ["'c': 1 cell is no number and taken as missing: 1 value (row 52)"]


def test_no_cell_goes_over_the_wire():
    remarks = [
        *noticed([*range(50), "secret"], numeric=["c"]),
        *noticed([*range(50), "secret"]),
        *noticed([f"secret {i}" for i in range(50)]),
        *noticed(["secret"] * 30),
    ]
    sent = [Remark.from_json(remark.column, remark.to_json()) for remark in remarks]
    assert len(sent) == 4
    assert not any("secret" in str(remark.to_json()) for remark in remarks)
    assert not any("secret" in text for text in told_anywhere(remarks))
    assert told_anywhere(sent) == told_anywhere(remarks)


def test_columns_of_a_kind_are_told_together():
    remarks = [Remark("constant", name) for name in ("a", "b c")] + [Remark("empty", "d")]
    assert told(remarks) == [
        "'a', 'b c' have the same value in every row: leave them out with --drop 'a,b c'",
        "'d' has no values: leave it out with --drop d",
    ]
    many = [Remark("mixed", f"c{i}", 1, 1, (2,), ("?",)) for i in range(20)]
    assert len(told(many)) == 13
    assert told(many)[-1] == "8 more columns have cells that are no numbers"
