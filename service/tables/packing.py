"""Columns to bytes and back, lossless and small: a safetensors file with a JSON manifest, as our models are.

Column number k is the array "k" in its own type, or as bits where it holds only 0 and 1; its words are "k.words", UTF-8 one after the
other, and "k.ends", where each ends.
"""

import mmap
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import check_name
from frugal.models.schema import CATEGORICAL, NUMERIC
from frugal.models.tensors import DTYPES, BadArchive, Place, find_places, from_json, read_header, seal, write_header
from frugal.service.tables.columns import Column, Columns, number_range

FORMAT = 1
PIECE = 1024 * 1024
BITS = "bits"
TYPES = {dtype: name for name, dtype in DTYPES.items()}
STORED = {NUMERIC: (BITS, "U8", "I8", "U16", "I16", "I32", "F32", "F64"), CATEGORICAL: (BITS, "I8", "I16", "I32")}


def pack(columns: Columns) -> Iterator[bytes]:
    """A table as one file, in pieces of at most a mebibyte."""
    arrays: dict[str, NDArray[Any]] = {}
    about = []
    for k, column in enumerate(columns.by_name.values()):
        stored = _stored(column)
        arrays[str(k)] = np.packbits(column.values.view(np.uint8)) if stored == BITS else np.ascontiguousarray(column.values)
        if column.kind == CATEGORICAL:
            words = [word.encode() for word in column.categories]
            arrays[f"{k}.words"] = np.frombuffer(b"".join(words), np.uint8)
            arrays[f"{k}.ends"] = np.cumsum([len(word) for word in words], dtype=np.int64)
        about.append({"name": column.name, "kind": column.kind, "stored": stored})
    manifest = {"format": FORMAT, "rows": len(columns), "columns": about}
    header = write_header({name: (TYPES[array.dtype], array.shape) for name, array in arrays.items()}, manifest)
    parts = [array.data.cast("B") for array in arrays.values() if array.size]
    for part in (memoryview(seal(header, parts)), *parts):
        for start in range(0, len(part), PIECE):
            yield bytes(part[start : start + PIECE])


def _stored(column: Column) -> str:
    bits = (
        column.values.dtype.itemsize == 1
        and not column.missing
        and len(column) > 0
        and 0 <= column.values.min() <= column.values.max() <= 1
    )
    return BITS if bits else TYPES[column.values.dtype]


def unpack(data: "bytes | memoryview | mmap.mmap") -> Columns:
    """The table in a packed file; BadArchive, a ValueError, if it is not whole. The columns are views of `data`."""
    view = memoryview(data).cast("B")
    header, text, room = read_header(_file(data), len(view))
    manifest = from_json(text.encode(errors="replace"), "manifest")
    about, rows = _described(manifest)
    places = find_places(header, room, _wanted(about))
    body = view[len(view) - room :]
    return Columns.of([_column(k, entry, rows, places, body) for k, entry in enumerate(about)])


def _file(data: "bytes | memoryview | mmap.mmap") -> BinaryIO:
    if isinstance(data, mmap.mmap):
        data.seek(0)
        return data  # type: ignore[return-value]  # it reads and seeks as files do
    return BytesIO(data)


def _described(manifest: Any) -> tuple[list[dict[str, Any]], int]:
    if not isinstance(manifest, dict) or set(manifest) != {"format", "rows", "columns"} or manifest["format"] != FORMAT:
        raise BadArchive(f"this is no table packed in format {FORMAT}, which this version of frugal reads")
    about, rows = manifest["columns"], manifest["rows"]
    if not isinstance(about, list) or type(rows) is not int or rows < 0:
        raise BadArchive("the manifest must say the number of rows and describe the columns")
    for entry in about:
        if (
            not isinstance(entry, dict)
            or set(entry) != {"name", "kind", "stored"}
            or entry["stored"] not in STORED.get(str(entry["kind"]), ())
        ):
            raise BadArchive(f"a column is described as {str(entry)[:120]}: expected its name, kind and stored type")
        try:
            check_name(entry["name"])
        except ValueError as error:
            raise BadArchive(str(error)) from None
    if len({entry["name"] for entry in about}) < len(about):
        raise BadArchive("two columns have the same name")
    return about, rows


def _wanted(about: list[dict[str, Any]]) -> dict[str, tuple[list[str], int]]:
    wanted = {}
    for k, entry in enumerate(about):
        wanted[str(k)] = (["U8" if entry["stored"] == BITS else entry["stored"]], 1)
        if entry["kind"] == CATEGORICAL:
            wanted |= {f"{k}.words": (["U8"], 1), f"{k}.ends": (["I64"], 1)}
    return wanted


def _column(k: int, entry: dict[str, Any], rows: int, places: dict[str, Place], body: memoryview) -> Column:
    name, kind = entry["name"], entry["kind"]
    values = _array(places[str(k)], body)
    if len(values) != ((rows + 7) // 8 if entry["stored"] == BITS else rows):
        raise BadArchive(f"the column {name!r} has {len(values):,} values for {rows:,} rows")
    if entry["stored"] == BITS:
        values = np.unpackbits(values, count=rows).view(np.int8 if kind == CATEGORICAL else np.uint8)
    if kind == NUMERIC:
        missing = int(np.isnan(values).sum()) if values.dtype.kind == "f" else 0
        if np.isinf(values).any():
            raise BadArchive(f"the column {name!r} has an infinity")
        return Column(name, NUMERIC, values, (), missing, *number_range(values, missing))
    words = _words(name, _array(places[f"{k}.words"], body), _array(places[f"{k}.ends"], body))
    if rows and not -1 <= values.min() <= values.max() < len(words):
        raise BadArchive(f"the column {name!r} has a code that stands for no word")
    return Column(name, CATEGORICAL, values, words, int((values < 0).sum()))


def _array(place: Place, body: memoryview) -> NDArray[Any]:
    return np.frombuffer(body, place.dtype, place.shape[0], place.start) if place.shape[0] else np.empty(0, place.dtype)


def _words(name: str, letters: NDArray[Any], ends: NDArray[Any]) -> tuple[str, ...]:
    if not (np.diff(ends, prepend=0) > 0).all() or (ends[-1] if len(ends) else 0) != len(letters):
        raise BadArchive(f"the words of the column {name!r} do not fit together")
    text, starts = letters.tobytes(), [0, *ends.tolist()]
    try:
        words = tuple(text[start:end].decode() for start, end in pairwise(starts))
    except UnicodeDecodeError:
        raise BadArchive(f"the words of the column {name!r} are not text") from None
    if list(words) != sorted(set(words)):
        raise BadArchive(f"the words of the column {name!r} are not in order")
    return words
