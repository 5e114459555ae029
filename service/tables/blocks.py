"""A block of whole rows of CSV, from bytes to numbers and texts by column. Blocks are read beside each other, each in a thread."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from frugal.service.tables.blanks import NOTHING, Blanked, blank_out
from frugal.service.tables.choices import Plan
from frugal.service.tables.columns import smallest
from frugal.service.tables.kernels import parsing
from frugal.service.tables.kernels.parsing import CODED, HARD, NUMBER, SKIPPED, WORD

NOT_TEXT, NUL = 100, 101  # troubles beside the kernel's
PIECE, ENTRY = 256, 48  # bytes that a piece takes beside its cells, and an entry beside its letters


class Trouble(NamedTuple):
    """What is wrong, and in which row and column, both counted from 0."""

    what: int
    row: int
    column: int


class Piece(NamedTuple):
    """The cells of one column in one block.

    Without `texts`, numbers in a small type, nan where there is none; `forms` says how they were written, all the same or one by one, None
    where that is not known any more. With `texts`, floats and forms as the kernel gives them.
    """

    values: NDArray[Any]
    forms: NDArray[np.uint8] | int | None
    texts: "Texts | None" = None

    @property
    def nbytes(self) -> int:
        """What it takes in memory, without its texts, which it may share."""
        return int(PIECE + self.values.nbytes + (self.forms.nbytes if isinstance(self.forms, np.ndarray) else 0))


@dataclass(frozen=True)
class Texts:
    """A block's dictionary: the letters of words and of oddly written numbers, which column each is of, and the numbers."""

    letters: bytes
    ends: NDArray[np.int64]
    doubled: NDArray[np.int64]
    columns: NDArray[np.int64]
    kinds: NDArray[np.int64]
    marks: NDArray[np.int64]
    numbers: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        return len(self.letters) + ENTRY * len(self.ends)

    def of(self, column: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.columns == column)

    def __getitem__(self, e: int) -> str:
        text = self.letters[self.ends[e - 1] if e else 0 : self.ends[e]].decode()
        return text.replace('""', '"') if self.doubled[e] else text


@dataclass(frozen=True)
class Block:
    """What a block holds. Per column and over its plain numbers: how many cells are empty, their range, whether all are whole numbers,
    whether 32 bits hold each; and how many are words. What is left out has no piece."""

    rows: int
    pieces: list[Piece | None]
    texts: Texts
    words: NDArray[np.int64]
    empty: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    whole: NDArray[np.bool_]
    single: NDArray[np.bool_]
    blanked: Blanked


class Scratch:
    """Room for cells that is used again and again: fresh pages cost three times what parsing does."""

    def __init__(self) -> None:
        self._values = np.empty(0)
        self._forms = np.empty(0, np.uint8)

    def take(self, columns: int, rows: int) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        size = columns * rows
        if size > len(self._values):
            self._values, self._forms = np.empty(size), np.empty(size, np.uint8)
        return self._values[:size].reshape(columns, rows), self._forms[:size].reshape(columns, rows)


def read_block(data: bytes, keep: NDArray[np.uint8], longest: int, scratch: Scratch, plan: Plan) -> Block | Trouble:
    """The columns of rows that end with a line feed; `keep` and `longest` as the kernel takes them."""
    place = _not_text(data)
    if place >= 0:
        return _located(data, place, keep, longest, scratch)
    columns = len(keep)
    most = min(data.count(b"\n"), len(data) // columns + 1)  # a row has a byte per column: rows of nothing claim no memory
    values, forms = scratch.take(columns, most)
    rows, entries, numbers, trouble = _parse(data, keep, longest, values, forms)
    if trouble is not None:
        return trouble
    texts = _texts(data, entries, numbers)
    blanked = blank_out(values[:, :rows], forms[:, :rows], texts, plan) if plan.missing or plan.numeric.any() else NOTHING
    counts = np.empty((columns, 6), np.int64)
    low, high = np.empty(columns), np.empty(columns)
    whole, single = np.empty(columns, np.bool_), np.empty(columns, np.bool_)
    parsing.sum_up(values, forms, rows, texts.kinds, counts, low, high, whole, single)
    kinds = [
        smallest(low[c], high[c]) if whole[c] and not counts[c, 0] else np.dtype("f4") if single[c] else np.dtype("f8")
        for c in range(columns)
    ]
    pieces = [None if keep[c] == SKIPPED else _piece(values[c, :rows], forms[c, :rows], counts[c], kinds[c], texts) for c in range(columns)]
    return Block(rows, pieces, texts, counts[:, 2].copy(), counts[:, 0].copy(), low, high, whole, single, blanked)


def _not_text(data: bytes) -> int:
    """The place of the first byte that is no text, or -1."""
    place = data.find(0)
    if place < 0 and not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            return error.start
    return place


def _located(data: bytes, place: int, keep: NDArray[np.uint8], longest: int, scratch: Scratch) -> Trouble:
    """The row and column of a byte that is no text; or what is wrong before it."""
    before = data[:place] + b"x\n"  # the cell that holds it ends the table, so that parsing stops there
    values, forms = scratch.take(len(keep), before.count(b"\n"))
    rows, _, _, trouble = _parse(before, keep, longest, values, forms)
    what = NUL if data[place] == 0 else NOT_TEXT
    if trouble is None:
        return Trouble(what, rows - 1, len(keep) - 1)
    here = trouble.what in (parsing.TOO_FEW, parsing.UNCLOSED, parsing.AFTER_QUOTE)
    return Trouble(what, trouble.row, trouble.column) if here else trouble


def _parse(
    data: bytes, keep: NDArray[np.uint8], longest: int, values: NDArray[np.float64], forms: NDArray[np.uint8]
) -> tuple[int, NDArray[np.int64], NDArray[np.float64], Trouble | None]:
    """(rows, entries, their numbers, what is wrong), with room for as many entries as there turn out to be."""
    size = 1 << (max(512, len(keep)) - 1).bit_length()
    entries, numbers = np.empty((size, 6), np.int64), np.empty(size)
    array = np.frombuffer(data, np.uint8)
    place = row = used = 0
    while True:
        slots = np.full(2 * len(entries), -1, np.int64)
        parsing.place_entries(slots, entries, used)
        place, row, column, used, what = parsing.parse_rows(array, place, row, longest, keep, values, forms, slots, entries, numbers, used)
        if what != parsing.FULL:
            return row, entries[:used], numbers[:used], None if what == parsing.FINE else Trouble(what, row, column)
        entries, numbers = np.concatenate([entries, np.empty_like(entries)]), np.concatenate([numbers, np.empty_like(numbers)])


def _texts(data: bytes, entries: NDArray[np.int64], numbers: NDArray[np.float64]) -> Texts:
    ends = np.cumsum(entries[:, parsing.STOP] - entries[:, parsing.START])
    letters = np.empty(ends[-1] if len(ends) else 0, np.uint8)
    parsing.gather_texts(np.frombuffer(data, np.uint8), entries, ends, letters)
    doubled, columns, kinds, marks = (entries[:, field].copy() for field in (parsing.DOUBLED, parsing.COLUMN, parsing.KIND, parsing.HASH))
    texts = Texts(letters.tobytes(), ends, doubled, columns, kinds, marks, numbers.copy())
    for e in np.flatnonzero(kinds == HARD).tolist():
        texts.numbers[e] = float(texts[e])
        kinds[e] = WORD if np.isinf(texts.numbers[e]) else NUMBER
    return texts


def _piece(values: NDArray[np.float64], forms: NDArray[np.uint8], counts: NDArray[np.int64], kind: np.dtype[Any], texts: Texts) -> Piece:
    empty, coded, _, lost, least, greatest = counts.tolist()
    if coded:
        return Piece(values.copy(), forms.copy(), texts)
    small = values.astype(kind)
    if lost:
        return Piece(small, None)
    return Piece(small, least if least == greatest or empty == len(values) else forms.copy())


def resolved(piece: Piece) -> NDArray[Any]:
    """The numbers of a piece, nan where there is none."""
    if piece.texts is None:
        return piece.values
    coded = piece.forms == CODED
    numbers = piece.values.copy()
    numbers[coded] = piece.texts.numbers[piece.values[coded].astype(np.int64)]
    return numbers
