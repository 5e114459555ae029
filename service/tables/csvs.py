"""CSV as it arrives: cut into blocks at row ends, parsed in threads while the next bytes come, gathered in order."""

import csv
import io
import re
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from frugal.models.costs import LONGEST_NAME, check_name
from frugal.service.tables.blocks import NOT_TEXT, NUL, Block, Scratch, Trouble, read_block
from frugal.service.tables.choices import Choices, planned
from frugal.service.tables.columns import Columns
from frugal.service.tables.gathering import Gathered
from frugal.service.tables.kernels import parsing
from frugal.service.tables.limits import Limits, Rejected, field_too_long, named, too_many_columns

BLOCK = 1024 * 1024  # bytes of text parsed at a time; its cells stay in the processor's cache
ROWS = 1024  # bytes per column that a block has at least: some hundred rows, or every piece of a column would be tiny
THREADS = 2
IN_FLIGHT = 3  # blocks that wait or are parsed: what is held beyond the columns
LONGEST_HEADER = 3 * 1024 * 1024  # bytes of all names: packed, where some characters take four bytes, they are still within a header
UTF8 = "save the table as UTF-8"


class CsvReader:
    """Takes the bytes of a CSV file in pieces and gives its columns."""

    def __init__(self, limits: Limits, choices: Choices | None = None) -> None:
        self._limits = limits
        self._choices = choices or Choices()
        self._pending = bytearray()
        self._block = BLOCK
        self._scanned, self._state = 0, (0, 0, 0)  # bytes of pending that were scanned; where in a row, a cell and quotes they end
        self._gathered: Gathered | None = None
        self._started = False
        self._threads: ThreadPoolExecutor | None = None
        self._flying: deque[tuple[Future[Block | Trouble], Scratch]] = deque()
        self._scratch = [Scratch() for _ in range(IN_FLIGHT)]

    def feed(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        for start in range(0, len(view), BLOCK):
            self._pending += view[start : start + BLOCK]
            self._skip_mark()
            if self._gathered is None:
                self._read_header()
            if self._gathered is not None and len(self._pending) >= self._block:
                self._cut()

    def finish(self) -> Columns:
        if self._gathered is None:
            self._pending += b"\n"
            self._scanned, self._state = 0, (0, 0, 0)
            self._read_header(last=True)
        if self._gathered is None:
            raise Rejected("the file is empty: send a table whose first line names its columns")
        if self._pending:
            self._submit(bytes(self._pending) + (b"" if self._pending.endswith(b"\n") else b"\n"))
        self._collect(0)
        if not self._gathered.rows:
            raise Rejected("there are no rows below the first line, which names the columns: send some", row=2)
        gathered = self._gathered
        self.close()  # room, before blocks and columns stand beside each other
        return gathered.columns()

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
            self._threads = None
        self._flying.clear()
        self._scratch.clear()
        self._pending = bytearray()
        self._gathered = None

    def _skip_mark(self) -> None:
        """The byte order mark that some programs put before UTF-8."""
        if not self._started and len(self._pending) >= 3:
            self._started = True
            if self._pending.startswith(b"\xef\xbb\xbf"):
                del self._pending[:3]

    def _read_header(self, last: bool = False) -> None:
        """The first line that is not blank, once it is whole."""
        self._skip_blank_lines()
        if not self._pending:
            return
        found, longest = self._scan(first=True)
        if longest > self._limits.field:
            raise field_too_long(self._limits.field, 1, None)
        if self._state[2] + 1 > self._limits.columns:
            raise too_many_columns(self._limits.columns)
        if found:
            line = bytes(memoryview(self._pending)[:found])
            del self._pending[:found]
            self._scanned, self._state = 0, (0, 0, 0)
            names = read_names(line, self._limits)
            self._gathered = Gathered(names, self._limits, planned(self._choices, names))
            self._block = max(BLOCK, ROWS * len(self._gathered.names))
        elif last and self._state[0] == 2:
            raise Rejected("the first line has a quote that is never closed: close it, or write it twice inside quotes", row=1)
        elif self._scanned > LONGEST_HEADER:
            raise header_too_long()

    def _skip_blank_lines(self) -> None:
        """All at once: a file can be made of them. A carriage return that no line feed ends is left for the header to be refused."""
        if not self._pending.startswith((b"\r", b"\n")):
            return
        size = len(self._pending) - len(self._pending.lstrip(b"\r\n"))
        end = self._pending.rfind(b"\n", 0, size) + 1
        if end:
            del self._pending[:end]
            self._scanned, self._state = 0, (0, 0, 0)

    def _scan(self, first: bool = False) -> tuple[int, int]:
        """Read on: (where the last row ends, or the first; the longest cell)."""
        with memoryview(self._pending) as view, view[self._scanned :] as part:
            found, *state, longest = parsing.row_end(np.frombuffer(part, np.uint8), *self._state, first)
        found = found + self._scanned if found else 0
        self._scanned, self._state = len(self._pending), (state[0], state[1], state[2])
        return found, longest

    def _cut(self) -> None:
        """Hand over the whole rows."""
        assert self._gathered is not None
        longest = 0
        found = self._pending.rfind(b"\n") + 1
        scanned = not found or self._scanned > 0 or b'"' in self._pending
        if scanned:  # where quotes are, a line feed need not end a row; and a row without end is watched
            found, longest = self._scan()
        if found:
            self._submit(bytes(memoryview(self._pending)[:found]))
            del self._pending[:found]
            self._scanned = len(self._pending) if scanned else 0
            if b'"' not in self._pending:  # from here on line feeds can be trusted again
                self._scanned, self._state = 0, (0, 0, 0)
        if longest > self._limits.field or self._state[2] >= len(self._gathered.names):
            self._refuse_row()

    def _refuse_row(self) -> None:
        """The row that has begun is too long, unless one before it is refused first."""
        self._collect(0)
        gathered = self._gathered
        assert gathered is not None
        row, column = gathered.rows + 2, self._state[2]
        if column >= len(gathered.names):
            raise _explained(Trouble(parsing.TOO_MANY, 0, len(gathered.names) - 1), gathered)
        if self._state[1] > self._limits.field + 1:  # one for the carriage return that may end it
            raise field_too_long(self._limits.field, row, gathered.names[column])

    def _submit(self, data: bytes) -> None:
        assert self._gathered is not None
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="reading")
        self._collect(IN_FLIGHT - 1)
        scratch = self._scratch.pop()
        keep = self._gathered.keep.copy()
        self._flying.append((self._threads.submit(read_block, data, keep, self._limits.field, scratch, self._gathered.plan), scratch))

    def _collect(self, most: int) -> None:
        """Wait until at most so many blocks are in flight."""
        gathered = self._gathered
        assert gathered is not None
        while len(self._flying) > most:
            future, scratch = self._flying.popleft()
            block = future.result()
            self._scratch.append(scratch)
            if isinstance(block, Trouble):
                raise _explained(block, gathered)
            gathered.add(block)


def read_names(line: bytes, limits: Limits) -> list[str]:
    """The names of the columns in the first line; Rejected if they will not do."""
    try:
        rows = list(csv.reader(io.StringIO(line.decode(), newline=""), strict=True))
    except UnicodeDecodeError:
        raise Rejected(f"the first line is not UTF-8: {UTF8}", row=1) from None
    except csv.Error:
        raise Rejected("the first line cannot be read as CSV: look at its quotes, which are written twice inside quotes", row=1) from None
    if len(rows) != 1:
        raise Rejected("the first line has a carriage return without a line feed: end lines with one of LF or CRLF", row=1)
    names = [name.strip() for name in rows[0]]
    if len(names) == 1 and (mark := re.search(r"[;\t]", names[0])):
        raise Rejected(
            f"the first line has no comma but a {'semicolon' if mark[0] == ';' else 'tab'}: save the table with commas between cells", row=1
        )
    check_names(names, limits)
    return names


def check_names(names: list[str], limits: Limits) -> None:
    """Names that a model's features can have, each once."""
    if len(names) > limits.columns:
        raise too_many_columns(limits.columns)
    if sum(len(name.encode()) for name in names) > LONGEST_HEADER:
        raise header_too_long()
    seen = set()
    for number, name in enumerate(names, 1):
        if not name:
            raise Rejected(f"the first line must name every column: column {number:,} has no name", row=1)
        if len(name) > LONGEST_NAME:
            raise Rejected(f"the name {named(name)} has more than {LONGEST_NAME:,} characters: shorten it", row=1, column=name[:100])
        if name in seen:
            raise Rejected(f"the column {named(name)} is there more than once: give each a name of its own", row=1, column=name)
        seen.add(name)
        try:
            check_name(name)
        except ValueError:
            raise Rejected(f"the name of column {number:,} has characters that cannot be printed: take them out", row=1) from None


def header_too_long() -> Rejected:
    return Rejected(
        f"the names of the columns have more than {LONGEST_HEADER:,} bytes: shorten them, or leave columns out",
        row=1,
        limit=LONGEST_HEADER,
        too_large=True,
    )


def _explained(trouble: Trouble, gathered: Gathered) -> Rejected:
    row, column, names = gathered.rows + trouble.row + 2, gathered.names[trouble.column], gathered.names
    if row - 1 > gathered.limits.rows:
        return Rejected(
            f"the table has more than {gathered.limits.rows:,} rows: send fewer", row=row, limit=gathered.limits.rows, too_large=True
        )
    if trouble.what == parsing.TOO_LONG:
        return field_too_long(gathered.limits.field, row, column)
    where = f"row {row:,}, column {named(column)}"
    say = {
        parsing.TOO_FEW: f"row {row:,} has {trouble.column + 1:,} cells, the first line {len(names):,}: write a comma for empty cells too",
        parsing.TOO_MANY: f"row {row:,} has more cells than the {len(names):,} of the first line: put quotes around cells with a comma",
        parsing.AFTER_QUOTE: f"{where}: text after a closing quote: write a comma there, and quotes inside quotes twice",
        parsing.UNCLOSED: f"{where}: a quote is opened and never closed: close it",
        parsing.LONE_CR: f"{where}: a carriage return without a line feed: end rows with LF or CRLF, or put quotes around the cell",
        NOT_TEXT: f"{where}: not UTF-8: {UTF8}",
        NUL: f"{where}: a byte of zero, which no text has: {UTF8}, or take it out",
    }
    return Rejected(say[trouble.what], row=row, column=None if trouble.what in (parsing.TOO_FEW, parsing.TOO_MANY) else column)
