"""Cells of CSV to numbers and to codes of words, a block of whole rows at a time.

Every cell becomes a float and a form, one byte that says what the float is:

    0 .. 15   a number written plainly with that many decimals: format(value, f".{form}f") gives the cell's text back
    LOST      a number written in another way, whose text is not wanted any more
    CODED     the number of an entry: the block's dictionary of texts that are words, or numbers written in another way
    EMPTY     nothing: the float is nan

So a column that turns out to hold words can still be given as it was written, and no text is kept for the common numbers.
"""

import numpy as np

from frugal.models.kernels.compiling import inlined, kernel
from frugal.service.tables.kernels.decimals import EXACT, to_float

PLAIN, LOST, CODED, EMPTY = 15, 253, 254, 255
WORD, NUMBER, NAN, HARD = range(
    4
)  # of an entry: NAN is missing among numbers, HARD is a number or an infinity that Python's float must tell
SKIPPED = 2  # of keep: nothing of this column is wanted
FINE, FULL, TOO_FEW, TOO_MANY, AFTER_QUOTE, UNCLOSED, TOO_LONG, LONE_CR = range(8)
COLUMN, START, STOP, DOUBLED, KIND, HASH = range(6)  # fields of an entry: its text is data[START:STOP], quotes doubled or not
LF, CR, SPACE, QUOTE, COMMA, POINT, MINUS, PLUS, ZERO = 10, 13, 32, 34, 44, 46, 45, 43, 48
PRIME, BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)


@kernel
def parse_rows(data, p, row, longest, keep, values, forms, slots, entries, numbers, used):
    """Cells of `data`, which ends with a line feed, from p on into values[column, row] and forms[column, row].

    Gives (where it stands, rows, column, entries used, FINE or why it stopped there: FULL asks for larger `entries` and can go on).
    A cell has at most `longest` bytes; keep[column] says whether the texts of oddly written numbers are wanted, or nothing of it is.
    """
    columns, end = len(keep), len(data)
    while p < end:
        if data[p] == LF:
            p += 1
            continue
        if data[p] == CR and data[p + 1] == LF:
            p += 2
            continue
        if used + columns > len(entries):
            return p, row, 0, used, FULL
        for c in range(columns):
            digit = data[p]
            if data[p + 1] == COMMA and ZERO <= digit <= ZERO + 9:  # half of all cells, in many tables
                values[c, row] = digit - ZERO
                forms[c, row] = 0
                after = p + 1
            else:
                value, form, after = plain(data, p)
                if after >= 0:
                    values[c, row] = value
                    forms[c, row] = form
                else:
                    after, used = other_cell(data, p, row, c, longest, keep, values, forms, slots, entries, numbers, used)
                    if after < 0:
                        return p, row, c, used, -after
            last = c == columns - 1
            if data[after] == COMMA:
                if last:
                    return p, row, c, used, TOO_MANY
                p = after + 1
            else:
                if not last:
                    return p, row, c, used, TOO_FEW
                p = after + (2 if data[after] == CR else 1)
        row += 1
    return p, row, 0, used, FINE


@kernel
def other_cell(data, p, row, c, longest, keep, values, forms, slots, entries, numbers, used):
    """(where the cell ends or minus the trouble, entries used): any cell at all, in quotes, with blanks, a word, an odd number."""
    start, stop, after, doubled = find_cell(data, p, len(data))
    if after < 0:
        return after, used
    if after - p > longest:
        return -TOO_LONG, used
    if keep[c] == SKIPPED:
        values[c, row] = np.nan
        forms[c, row] = EMPTY
        return after, used
    kind, value, form = read_cell(data, start, stop)
    if form == CODED and kind == NUMBER and not keep[c]:
        form = LOST
    elif form == CODED:
        code, slot, mixed = find_entry(data, slots, entries, c, start, stop, doubled)
        if code < 0:
            code = used
            entries[code, COLUMN], entries[code, START], entries[code, STOP] = c, start, stop
            entries[code, DOUBLED], entries[code, KIND], entries[code, HASH] = doubled, kind, mixed
            numbers[code] = value
            slots[slot] = code
            used += 1
        value = float(code)
    values[c, row] = value
    forms[c, row] = form
    return after, used


@inlined
def plain(data, p):
    """(number, decimals, where the cell ends) of a plainly written number of at most 15 digits; the end is -1 for all else."""
    negative = data[p] == MINUS
    if negative:
        p += 1
    first = p
    digits = np.int64(0)
    byte = data[p]
    while ZERO <= byte <= ZERO + 9:
        digits = digits * 10 + (byte - ZERO)
        p += 1
        byte = data[p]
    size, decimals = p - first, 0
    if size == 0 or (size > 1 and data[first] == ZERO):
        return 0.0, 0, -1
    if byte == POINT:
        p += 1
        point = p
        byte = data[p]
        while ZERO <= byte <= ZERO + 9:
            digits = digits * 10 + (byte - ZERO)
            p += 1
            byte = data[p]
        decimals = p - point
        size += decimals
        if decimals == 0:
            return 0.0, 0, -1
    if size > PLAIN or not (byte == COMMA or byte == LF or (byte == CR and data[p + 1] == LF)):
        return 0.0, 0, -1
    value = float(digits)
    if decimals:
        value /= EXACT[decimals]
    return -value if negative else value, decimals, p


@inlined
def find_cell(data, p, end):
    """(start and stop of a cell's text without blanks around it, where the cell ends, whether quotes in it are doubled).

    The end is minus the trouble where the cell is no cell.
    """
    doubled = 0
    start = p
    if data[p] == QUOTE:
        start = p = p + 1
        while True:
            while p < end and data[p] != QUOTE:
                p += 1
            if p >= end:
                return 0, 0, -UNCLOSED, 0
            if data[p + 1] != QUOTE:
                break
            doubled = 1
            p += 2
        stop = p
        p += 1
        if not (data[p] == COMMA or data[p] == LF or (data[p] == CR and data[p + 1] == LF)):
            return 0, 0, -AFTER_QUOTE, 0
    else:
        while data[p] != COMMA and data[p] != LF and data[p] != CR:
            p += 1
        if data[p] == CR and data[p + 1] != LF:
            return 0, 0, -LONE_CR, 0
        stop = p
    while start < stop:
        size = blank_at(data, start, stop)
        if size == 0:
            break
        start += size
    while start < stop:
        size = blank_before(data, start, stop)
        if size == 0:
            break
        stop -= size
    return start, stop, p, doubled


@inlined
def blank_at(data, p, stop):
    """The bytes of the blank at p, as str.strip() sees blanks; 0 if there is none."""
    byte = data[p]
    if byte < 128:
        return 1 if byte == SPACE or 9 <= byte <= 13 or 28 <= byte <= 31 else 0
    if stop - p >= 2 and byte == 0xC2 and (data[p + 1] == 0x85 or data[p + 1] == 0xA0):
        return 2
    return 3 if stop - p >= 3 and wide_blank(byte, data[p + 1], data[p + 2]) else 0


@inlined
def blank_before(data, start, stop):
    byte = data[stop - 1]
    if byte < 128:
        return 1 if byte == SPACE or 9 <= byte <= 13 or 28 <= byte <= 31 else 0
    if stop - start >= 2 and data[stop - 2] == 0xC2 and (byte == 0x85 or byte == 0xA0):
        return 2
    return 3 if stop - start >= 3 and wide_blank(data[stop - 3], data[stop - 2], byte) else 0


@inlined
def wide_blank(a, b, c):
    if a == 0xE2 and b == 0x80:
        return 0x80 <= c <= 0x8A or c == 0xA8 or c == 0xA9 or c == 0xAF
    return (a == 0xE1 and b == 0x9A and c == 0x80) or (a == 0xE2 and b == 0x81 and c == 0x9F) or (a == 0xE3 and b == 0x80 and c == 0x80)


@inlined
def read_cell(data, start, stop):
    """(kind, number, form) of a cell's text."""
    if start == stop:
        return NUMBER, np.nan, EMPTY
    p = start
    signed = data[p] == MINUS or data[p] == PLUS
    negative = data[p] == MINUS
    if signed:
        p += 1
    if stop - p == 3 and data[p] | 32 == 110 and data[p + 1] | 32 == 97 and data[p + 2] | 32 == 110:
        return NAN, np.nan, CODED
    digits, power, significant, seen = np.uint64(0), 0, 0, 0
    first, point, decimals = p, -1, 0
    while p < stop:
        byte = data[p]
        if ZERO <= byte <= ZERO + 9:
            seen += 1
            if significant or byte != ZERO:
                significant += 1
                if significant <= 19:
                    digits = digits * np.uint64(10) + np.uint64(byte - ZERO)
            if point >= 0:
                decimals += 1
        elif byte == POINT and point < 0:
            point = p
        else:
            break
        p += 1
    if seen == 0:
        return WORD, np.nan, CODED
    odd = p < stop or data[start] == PLUS or seen > PLAIN or data[first] == POINT or point == p - 1
    odd = odd or (data[first] == ZERO and p - first > 1 and data[first + 1] != POINT)
    power = -decimals
    if p < stop:
        if data[p] | 32 != 101:
            return WORD, np.nan, CODED
        p += 1
        down = p < stop and data[p] == MINUS
        if p < stop and (down or data[p] == PLUS):
            p += 1
        if p == stop:
            return WORD, np.nan, CODED
        exponent = 0
        while p < stop:
            if not ZERO <= data[p] <= ZERO + 9:
                return WORD, np.nan, CODED
            if exponent < 100_000_000:
                exponent = exponent * 10 + int(data[p]) - ZERO
            p += 1
        power += -exponent if down else exponent
    if significant > 19:
        return HARD, np.nan, CODED
    value = to_float(digits, power)
    if value != value:
        return HARD, np.nan, CODED
    if value == np.inf:
        return WORD, np.nan, CODED
    return NUMBER, -value if negative else value, CODED if odd else decimals


@inlined
def find_entry(data, slots, entries, column, start, stop, doubled):
    """(number of the entry with this text or -1, its slot, its hash)."""
    mixed = (BASIS ^ np.uint64(column * 2 + doubled)) * PRIME
    for k in range(start, stop):
        mixed = (mixed ^ np.uint64(data[k])) * PRIME
    mark = np.int64(mixed >> np.uint64(24))
    mask = len(slots) - 1
    slot = mark & mask
    size = stop - start
    while slots[slot] >= 0:
        e = slots[slot]
        if (
            entries[e, HASH] == mark
            and entries[e, COLUMN] == column
            and entries[e, DOUBLED] == doubled
            and entries[e, STOP] - entries[e, START] == size
        ):
            same = True
            other = entries[e, START]
            for k in range(size):
                if data[other + k] != data[start + k]:
                    same = False
                    break
            if same:
                return e, slot, mark
        slot = (slot + 1) & mask
    return -1, slot, mark


@kernel
def place_entries(slots, entries, used):
    """Fill empty slots, a power of two of them, with the entries."""
    mask = len(slots) - 1
    for e in range(used):
        slot = entries[e, HASH] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = e


@kernel
def sum_up(values, forms, rows, kinds, counts, low, high, whole, single):
    """Of every column: how many cells are empty, coded, words and lost, the least and greatest form of its plain numbers; their range,
    whether all are whole numbers (and none is -0), and whether 32 bits hold each."""
    for c in range(len(counts)):
        empty = coded = words = lost = 0
        least, greatest = 255, 0
        smallest, largest = np.inf, -np.inf
        are_whole = are_single = True
        for r in range(rows):
            form, value = forms[c, r], values[c, r]
            if form >= CODED:
                if form == EMPTY:
                    empty += 1
                else:
                    coded += 1
                    words += kinds[np.int64(value)] == WORD
                continue
            lost += form == LOST
            least, greatest = min(least, form), max(greatest, form)
            smallest, largest = min(smallest, value), max(largest, value)
            are_single = are_single and float(np.float32(value)) == value
            if form or value == 0.0:
                are_whole = are_whole and value == np.floor(value) and (value != 0.0 or 1.0 / value > 0)
        counts[c, 0], counts[c, 1], counts[c, 2], counts[c, 3], counts[c, 4], counts[c, 5] = empty, coded, words, lost, least, greatest
        low[c], high[c], whole[c], single[c] = smallest, largest, are_whole, are_single


@kernel
def gather_texts(data, entries, ends, letters):
    """The texts of the entries, one after the other."""
    start = 0
    for e in range(len(entries)):
        for k in range(entries[e, STOP] - entries[e, START]):
            letters[start + k] = data[entries[e, START] + k]
        start = ends[e]


@kernel
def recode(values, forms, code, codes):
    """The code of every cell by its entry's, -1 where it has none; gives the number of plain numbers among them."""
    plain_numbers = 0
    for r in range(len(values)):
        codes[r] = code[np.int64(values[r])] if forms[r] == CODED else -1
        plain_numbers += forms[r] < CODED
    return plain_numbers


@kernel
def row_end(data, state, cell, cells, first):
    """Where the last whole row ends, or the first if that is asked for (0: none does), and the state, the bytes of the cell and the
    number of whole cells in which the rest stands. States: 0 a cell begins, 1 in a bare cell, 2 in quotes, 3 after a quote in quotes."""
    found = 0
    longest = cell
    for p in range(len(data)):
        byte = data[p]
        if state == 2:
            if byte == QUOTE:
                state = 3
        elif byte == LF:
            state, cell, cells = 0, 0, 0
            found = p + 1
            if first:
                break
            continue
        elif byte == COMMA:
            state, cell = 0, 0
            cells += 1
            continue
        elif byte == QUOTE and state != 1:
            state = 2
        else:
            state = 1
        cell += 1
        longest = max(longest, cell)
    return found, state, cell, cells, longest
