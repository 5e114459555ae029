"""A slow obvious twin of service.reading: CSV one character at a time, every cell a string, numbers by float()."""

import math
import re

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOTHING = re.compile(r"[+-]?nan", re.IGNORECASE)


def read(data: bytes, drop=(), numeric=(), missing=(), words=()) -> dict[str, list]:
    """name -> values, None where missing; ValueError where the table cannot be taken."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode()
    if "\0" in text:
        raise ValueError("a byte of zero")
    rows = [row for row in records(text) if row != [""]]
    names = [name.strip() for name in rows[0]] if rows else []
    if not all(names) or len(set(names)) < len(names) or not all(name.isprintable() for name in names):
        raise ValueError("names")
    if len(rows) < 2 or any(len(row) != len(names) for row in rows):
        raise ValueError("rows")
    table = {}
    for i, name in enumerate(names):
        cells = ["" if means_nothing(row[i].strip(), missing) else row[i].strip() for row in rows[1:]]
        if name in numeric:
            cells = [cell if is_number(cell) else "" for cell in cells]
        if name not in drop:
            table[name] = [cell or None for cell in cells] if name in words else typed(cells)
    return table


def is_number(cell: str) -> bool:
    return bool(NUMBER.fullmatch(cell)) and math.isfinite(float(cell))


def means_nothing(cell: str, missing) -> bool:
    """As it is written; a number by its value."""
    return cell in missing or (is_number(cell) and any(is_number(text) and float(text) == float(cell) for text in missing))


def records(text: str) -> list[list[str]]:
    """Rows of cells; a blank line is [""], an empty cell in quotes is " ": it is there."""
    rows, row, cell, place = [], [], "", 0
    quoted = closed = False
    fresh = True  # nothing of this cell has been seen
    if text and not text.endswith("\n"):
        text += "\n"
    while place < len(text):
        char = text[place]
        if quoted:
            if char == '"' and text[place + 1 : place + 2] == '"':
                cell, place = cell + '"', place + 1
            elif char == '"':
                quoted, closed = False, True
            else:
                cell += char
        elif char == '"' and fresh:
            quoted, fresh = True, False
        elif char == "\r" and text[place + 1] != "\n":
            raise ValueError("a carriage return alone")
        elif char in ",\n":
            row, cell, fresh = [*row, cell if not closed or cell else " "], "", True
            closed = False
            if char == "\n":
                rows, row = [*rows, row], []
        elif char != "\r":
            if closed:
                raise ValueError("after a closing quote")
            cell, fresh = cell + char, False
        place += 1
    if quoted:
        raise ValueError("a quote never closed")
    return rows


def typed(cells: list[str]) -> list:
    """Numbers where every cell is one or nothing, else the cells as they are."""
    if all(not cell or NOTHING.fullmatch(cell) or is_number(cell) for cell in cells):
        return [float(cell) if NUMBER.fullmatch(cell) else None for cell in cells]
    return [cell or None for cell in cells]
