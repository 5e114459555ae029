"""How large a table may be, and what is said of one that cannot be taken."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The most that a table may have."""

    bytes: int = 2 * 1024**3  # after decompression
    rows: int = 20_000_000
    columns: int = 4_096
    categories: int = 10_000  # different words of one column
    field: int = 65_536  # bytes of one cell
    memory: int = 4 * 1024**3  # bytes that its columns take while they are read, and then
    words: int = 8 * 1024**2  # bytes of all different words of all columns: they are described together


class Rejected(ValueError):  # noqa: N818 - its name says what happened
    """A table that cannot be taken: a sentence for whoever sent it, which never repeats a cell.

    `row` counts records, blank lines left out: the header is row 1, the first row of data is row 2. `column` is the column's name where it
    is known. `limit` is the limit that was passed; `too_large` says that bytes, rows, columns, a field
    or memory passed theirs. `choice` is what is wrong where it is no fault of the table's but of how it was to be read, and `local` the
    same sentence for whoever may see what was typed.
    """

    def __init__(
        self,
        message: str,
        *,
        row: int | None = None,
        column: str | None = None,
        limit: int | None = None,
        too_large: bool = False,
        choice: str | None = None,
        local: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.row = row
        self.column = column
        self.limit = limit
        self.too_large = too_large
        self.choice = choice
        self.local = local


def named(column: str) -> str:
    """A column's name as a message can hold it."""
    return repr(column if len(column) <= 100 else column[:100] + "...")


def too_many_bytes(limit: int) -> Rejected:
    return Rejected(f"the table has more than {limit:,} bytes once unpacked: send fewer rows or columns", limit=limit, too_large=True)


def too_much_memory(limit: int) -> Rejected:
    return Rejected(
        f"the columns take more than {limit:,} bytes of memory, empty cells too: send fewer rows or columns", limit=limit, too_large=True
    )


def too_many_letters(column: str, limit: int) -> Rejected:
    return Rejected(
        f"the different words of all columns have more than {limit:,} bytes together, most of them in the column {named(column)}: "
        "leave it out if it is a name or a number of a case, or group or shorten its words",
        column=column,
        limit=limit,
    )


def too_many_rows(limit: int) -> Rejected:
    return Rejected(f"the table has more than {limit:,} rows: send fewer", row=limit + 2, limit=limit, too_large=True)


def too_many_columns(limit: int) -> Rejected:
    return Rejected(f"the table has more than {limit:,} columns: leave out those that are not needed", row=1, limit=limit, too_large=True)


def too_many_categories(column: str, limit: int, row: int | None = None) -> Rejected:
    return Rejected(
        f"the column {named(column)} has more than {limit:,} different words: leave it out if it is a name or a number of a case, "
        "or group its words",
        row=row,
        column=column,
        limit=limit,
    )


def field_too_long(limit: int, row: int | None, column: str | None) -> Rejected:
    where = f"row {row:,}" if row is not None else "a row"
    of = f" of the column {named(column)}" if column is not None else ""
    return Rejected(
        f"a cell{of} in {where} has more than {limit:,} bytes: shorten it, or look for a quote that is never closed",
        row=row,
        column=column,
        limit=limit,
        too_large=True,
    )
