"""The safetensors file that our archives are: named arrays behind a JSON header with a manifest, every claim checked before it is believed.

    8 bytes     size of the header, little-endian
    header      JSON: the name, type, shape and place of every array, and under __metadata__ the manifest and a digest
    arrays      one after the other, little-endian, no gaps

The digest is the SHA-256 of the whole file with the digest's own 64 characters written as zeros, so one flipped bit anywhere is seen. It
guards against damage, not against malice: a file that someone made up is refused only where it could not be used.
"""

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

LARGEST_HEADER = 16 * 1024 * 1024
LARGEST = 2**31  # of any one side of an array
NO_DIGEST = "0" * 64
DIGEST = re.compile(rb'"sha256":"([0-9a-f]{64})"')
NOT_OURS = "this is not one of frugal's archives: its header has no manifest with a check sum"
DTYPES: dict[str, np.dtype[Any]] = {
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}


class BadArchive(ValueError):  # noqa: N818 - its name says what it is
    """A file that is not one of our archives, whole and undamaged."""


class NotArchive(BadArchive):
    """A file that does not begin as our archives do, or ends within its header."""

    def __init__(self) -> None:
        super().__init__("this is not one of frugal's archives, or it is cut off")


class Place(NamedTuple):
    """Where an array stands in a file, counted from the end of its header, and what it is."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int


def write_header(arrays: Mapping[str, tuple[str, tuple[int, ...]]], manifest: Any) -> bytes:
    """The header of arrays, given by type and shape in the order in which they stand, with NO_DIGEST where the check sum goes.
    ValueError if it is larger than readers take."""
    header: dict[str, Any] = {"__metadata__": {"manifest": to_json(manifest), "sha256": NO_DIGEST}}
    place = 0
    for name, (kind, shape) in arrays.items():
        size = math.prod(shape) * DTYPES[kind].itemsize
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [place, place + size]}
        place += size
    text = to_json(header).encode()
    text += b" " * (-len(text) % 8)  # arrays start at a multiple of 8, as readers that map the file expect
    if len(text) > LARGEST_HEADER:  # nothing is written that could not be read
        raise ValueError(
            f"names and words take {len(text):,} bytes in the archive, where {LARGEST_HEADER:,} are possible: "
            "leave out columns with many or long words, or group their words"
        )
    return text


def sealed(text: bytes, body: bytes) -> bytes:
    """The whole file: its header, with the check sum put in where NO_DIGEST stands, and its arrays."""
    return seal(text, [body]) + body


def seal(text: bytes, parts: "Iterable[Any]") -> bytes:
    """What stands before the arrays: the header's size, and the header with the check sum of itself and of the parts that follow."""
    size = len(text).to_bytes(8, "little")
    digest = hashlib.sha256(size + text)
    for part in parts:
        digest.update(part)
    return size + text.replace(f'"sha256":"{NO_DIGEST}"'.encode(), f'"sha256":"{digest.hexdigest()}"'.encode())


def read_header(file: BinaryIO, size: int) -> tuple[dict[str, Any], str, int]:
    """(what it says of the arrays, the manifest's text, the bytes that the arrays take) of a file whose check sum is right; the file then
    stands where the arrays begin."""
    text = _header_text(file, size)
    _check_digest(text, file)
    header = from_json(text, "header")
    metadata = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or set(metadata) != {"manifest", "sha256"} or not all(isinstance(v, str) for v in metadata.values()):
        raise BadArchive(NOT_OURS)
    return header, metadata["manifest"], size - 8 - len(text)


def _header_text(file: BinaryIO, size: int) -> bytes:
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > LARGEST_HEADER or length > size - 8:
        raise NotArchive
    return file.read(length)


def _check_digest(text: bytes, file: BinaryIO) -> None:
    """Refuse a damaged file before anything in it is believed, reading it a mebibyte at a time."""
    found = DIGEST.findall(text)
    if len(found) != 1:
        raise BadArchive(NOT_OURS)
    digest = hashlib.sha256(len(text).to_bytes(8, "little") + text.replace(found[0], NO_DIGEST.encode()))
    start = file.tell()
    while part := file.read(1024 * 1024):
        digest.update(part)
    file.seek(start)
    if f'"sha256":"{digest.hexdigest()}"'.encode() != b'"sha256":"' + found[0] + b'"':
        raise BadArchive("the archive is damaged: its check sum does not fit its contents. Copy or make it again")


def find_places(header: dict[str, Any], room: int, wanted: Mapping[str, tuple[Collection[str], int]]) -> dict[str, Place]:
    """Where the wanted arrays stand, given by the types that each may have and its number of dimensions, once the header's claims fit the
    file: nothing large is allocated before."""
    if set(header) != set(wanted):
        raise BadArchive(f"the arrays are {str(sorted(header))[:200]}: expected {str(sorted(wanted))[:400]}")
    expected = 0
    places = {}
    for name, (kinds, dimensions) in wanted.items():
        entry = header[name]
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"} or entry["dtype"] not in tuple(kinds):
            expected_types = " or ".join(kinds)
            raise BadArchive(
                f"the array {name!r} is described as {str(entry)[:120]}: expected type {expected_types} with shape and data_offsets"
            )
        shape, dtype = entry["shape"], DTYPES[entry["dtype"]]
        if not _whole_numbers(shape, dimensions) or any(n > LARGEST for n in shape):
            raise BadArchive(f"the array {name!r} has the shape {str(shape)[:120]}: expected {dimensions} whole numbers")
        end = expected + math.prod(shape) * dtype.itemsize
        if entry["data_offsets"] != [expected, end] or end > room:
            raise BadArchive(f"the array {name!r} does not fit the file: cut off, or its offsets or shape are wrong")
        places[name] = Place(dtype, tuple(shape), expected)
        expected = end
    if expected != room:
        raise BadArchive(f"the arrays end {room - expected:,} bytes before the file does")
    return places


def _whole_numbers(shape: Any, dimensions: int) -> bool:
    return isinstance(shape, list) and len(shape) == dimensions and all(type(n) is int and n >= 0 for n in shape)


def to_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def from_json(text: bytes, what: str) -> Any:
    """JSON in which no name stands twice and every number is one."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name stands twice")
        return dict(pairs)

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a number")

    try:
        return json.loads(text.decode(), object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadArchive(f"the {what} is not the JSON of an archive: {str(error).partition('; use sys.')[0][:200]}") from None
