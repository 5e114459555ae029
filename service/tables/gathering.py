"""Blocks in their order to columns: what a column is, numbers or words, is known only when its last block is.

A column that has been numbers and meets a word becomes words, all of them as they were written. Numbers are kept by value and by how they
were written; only texts of oddly written ones (007, 1e5, more than 15 digits) are kept themselves, and only while there are no more of them
than a column may have words: beyond that the column can only be numbers.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.service.tables.blanks import Tallied, check_numeric
from frugal.service.tables.blocks import Block, Piece, resolved
from frugal.service.tables.choices import Plan
from frugal.service.tables.columns import Column, Columns, numbers_column, numeric_column, smallest, words_column
from frugal.service.tables.kernels.parsing import CODED, PLAIN, SKIPPED, WORD, recode
from frugal.service.tables.limits import Limits, Rejected, named, too_many_categories, too_many_rows
from frugal.service.tables.tally import Tally

MOST_SPELLINGS = 10_000  # texts kept of a column's oddly written numbers


class Gathered:
    """The columns of the blocks so far."""

    def __init__(self, names: list[str], limits: Limits, plan: Plan) -> None:
        self.names = names
        self.limits = limits
        self.plan = plan
        self.rows = 0
        # what a block is told: whether texts of odd numbers are still wanted, or nothing of the column is
        self.keep = np.where(plan.taken, ~plan.numeric, SKIPPED).astype(np.uint8)
        self._blanked = Tallied(names, plan)
        self._pieces: list[list[Piece]] = [[] for _ in names]
        self._tally = Tally(limits)
        self._holders: Counter[int] = Counter()  # how many pieces hold a block's texts, by the texts' id
        self._words: list[dict[str, int] | None] = [{} if words else None for words in plan.words]
        self._odd = [np.empty(0, np.int64) for _ in names]  # hashes of the texts of odd numbers
        self._empty = np.zeros(len(names), np.int64)
        self._low, self._high = np.full(len(names), np.inf), np.full(len(names), -np.inf)
        self._whole, self._single = np.ones(len(names), np.bool_), np.ones(len(names), np.bool_)

    def add(self, block: Block) -> None:
        if self.rows + block.rows > self.limits.rows:
            raise too_many_rows(self.limits.rows)
        coded = set(np.unique(block.texts.columns).tolist())
        self._blanked.add(block.blanked, self.rows)
        for c, piece in enumerate(block.pieces):
            if piece is None:
                continue
            if self._words[c] is not None or block.words[c]:
                self._hold(c, self._as_words(c, piece, block))
                continue
            if piece.texts is not None and not self.keep[c]:  # read before its texts were let go
                piece = Piece(resolved(piece), None)
            self._hold(c, piece)
            if c in coded:
                self._remember(c, piece)
        self._empty += block.empty
        np.minimum(self._low, block.low, out=self._low)
        np.maximum(self._high, block.high, out=self._high)
        self._whole &= block.whole
        self._single &= block.single
        self.rows += block.rows

    def _hold(self, c: int, piece: Piece) -> None:
        self._pieces[c].append(piece)
        self._tally.take(piece.nbytes)
        if piece.texts is not None:
            self._holders[id(piece.texts)] += 1
            if self._holders[id(piece.texts)] == 1:
                self._tally.take(piece.texts.nbytes)

    def _let_go(self, c: int) -> Iterator[Piece]:
        """A column's pieces, each counted no more once the next one is asked for."""
        pieces, self._pieces[c] = self._pieces[c], []
        for piece in pieces:
            yield piece
            self._tally.give_back(piece.nbytes)
            if piece.texts is not None:
                self._holders[id(piece.texts)] -= 1
                if not self._holders[id(piece.texts)]:
                    del self._holders[id(piece.texts)]
                    self._tally.give_back(piece.texts.nbytes)

    def _remember(self, c: int, piece: Piece) -> None:
        """Count the spellings of odd numbers; too many, and the column's texts are let go."""
        if self.keep[c] and piece.texts is not None:
            self._odd[c] = np.union1d(self._odd[c], piece.texts.marks[piece.texts.of(c)])
            if len(self._odd[c]) > min(MOST_SPELLINGS, self.limits.categories):
                self.keep[c] = 0
                self._odd[c] = self._odd[c][:0]
                for before in self._let_go(c):
                    self._hold(c, Piece(resolved(before), None))

    def _as_words(self, c: int, piece: Piece, block: Block) -> Piece:
        if self._words[c] is None:
            self._words[c] = {}
            self._refuse_lost(c, block)
            for before in self._let_go(c):
                self._hold(c, self._coded(c, before))
        return self._coded(c, piece)

    def _refuse_lost(self, c: int, block: Block) -> None:
        """A word in a column of which more spellings were seen than it may have words."""
        if self.keep[c]:
            return
        piece = block.pieces[c]
        assert piece is not None
        assert piece.texts is not None
        codes = np.where(piece.forms == CODED, piece.values, 0).astype(np.int64)
        row = int(np.argmax((piece.forms == CODED) & (piece.texts.kinds[codes] == WORD))) + self.rows + 2
        most = min(MOST_SPELLINGS, self.limits.categories)
        raise Rejected(
            f"the column {named(self.names[c])} has a word in row {row:,} after more than {most:,} different numbers: write numbers only, "
            "and leave the cell empty where one is missing",
            row=row,
            column=self.names[c],
            limit=most,
        )

    def _coded(self, c: int, piece: Piece) -> Piece:
        """A piece as codes of words, -1 where there is none."""
        codes = np.full(len(piece.values), -1, np.int32)
        left = len(codes)
        if piece.texts is not None:
            mine = piece.texts.of(c)
            code = np.empty(len(piece.texts.columns), np.int32)
            code[mine] = [self._code(c, piece.texts[e]) for e in mine.tolist()]
            left = recode(piece.values, piece.forms, code, codes)
        for form, which in _by_form(piece) if left else ():
            # as whole numbers, bit by bit: 0 and -0 were written differently
            bits, place = np.unique(piece.values[which].astype(np.float64).view(np.int64), return_inverse=True)
            texts = [format(number, f".{form}f") for number in bits.view(np.float64).tolist()]
            codes[which] = np.array([self._code(c, text) for text in texts], np.int32)[place]
        words = self._words[c]
        assert words is not None
        return Piece(codes.astype(smallest(-1, len(words)), copy=False), None)

    def _code(self, c: int, text: str) -> int:
        words = self._words[c]
        assert words is not None
        known = len(words)
        code = words.setdefault(text, known)
        if code >= self.limits.categories:
            raise too_many_categories(self.names[c], self.limits.categories)
        if code == known:
            self._tally.add_word(self.names[c], text)
        return code

    def columns(self) -> Columns:
        """All that are wanted, once the last block is in; each lets go of its pieces."""
        made = Tally(self.limits)  # counted anew: one large number makes all of its column wide
        columns = []
        for c in np.flatnonzero(self.plan.taken).tolist():
            columns.append(self._column(c))
            made.take(columns[-1].values.nbytes)
        remarks = self._blanked.remarks()
        check_numeric(columns, remarks)
        return replace(Columns.of(columns), remarks=remarks, left_out=self.plan.left_out)

    def _column(self, c: int) -> Column:
        pieces, self._pieces[c] = self._pieces[c], []
        words = self._words[c]
        if words is not None:
            return words_column(self.names[c], list(words), _joined(pieces, np.dtype("i4")))
        if any(piece.texts is not None or piece.forms is None for piece in pieces):
            return numbers_column(self.names[c], _joined(pieces, np.dtype("f8")))
        missing = int(self._empty[c])
        if self._whole[c] and not missing:
            kind = smallest(self._low[c], self._high[c])
        else:
            kind = np.dtype("f4") if self._single[c] else np.dtype("f8")
        if kind.kind == "f" and not missing:
            return numbers_column(self.names[c], _joined(pieces, np.dtype("f8")))
        low, high = (float(self._low[c]), float(self._high[c])) if missing < self.rows else (None, None)
        return numeric_column(self.names[c], _joined(pieces, kind), missing, low, high)


def _by_form(piece: Piece) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Which of a piece's plain numbers were written with how many decimals."""
    if isinstance(piece.forms, np.ndarray):
        yield from ((form, piece.forms == form) for form in np.unique(piece.forms).tolist() if form <= PLAIN)
    elif piece.forms is not None:
        yield piece.forms, ~np.isnan(piece.values)


def _joined(pieces: list[Piece], kind: np.dtype[Any]) -> NDArray[Any]:
    whole = np.empty(sum(len(piece.values) for piece in pieces), kind)
    end = len(whole)
    while pieces:
        piece = pieces.pop()
        whole[end - len(piece.values) : end] = resolved(piece)
        end -= len(piece.values)
    return whole
