"""What a table takes so far, in memory and in words, refused as soon as it is too much.

Text says little of it: an empty cell of CSV is one byte of text and four of a column, a null of Parquet none at all.
"""

from collections import Counter

from frugal.service.tables.limits import Limits, too_many_letters, too_much_memory

WORD = 100  # bytes that a word takes beside its letters


class Tally:
    """Bytes held in memory, and bytes of the different words of each column."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._memory = 0
        self._letters: Counter[str] = Counter()
        self._all_letters = 0

    def take(self, size: int) -> None:
        self._memory += size
        if self._memory > self._limits.memory:
            raise too_much_memory(self._limits.memory)

    def give_back(self, size: int) -> None:
        self._memory -= size

    def add_word(self, column: str, word: str) -> None:
        """A word that the column did not have before."""
        size = len(word.encode())
        self._letters[column] += size
        self._all_letters += size
        if self._all_letters > self._limits.words:
            raise too_many_letters(self._letters.most_common(1)[0][0], self._limits.words)
        self.take(size + WORD)
