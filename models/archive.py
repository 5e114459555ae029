"""Ensemble to bytes and back: a safetensors file with a JSON manifest. Never pickle; everything is checked before it is used.

    8 bytes     size of the header, little-endian
    header      JSON: the name, type, shape and place of every array, and under __metadata__ the manifest and a digest
    arrays      one after the other, little-endian, no gaps

The digest is the SHA-256 of the whole file with the digest's own 64 characters written as zeros, so one flipped bit anywhere is seen. It
guards against damage, not against malice: a file that someone made up is refused only where it could not be walked.
"""

import hashlib
import io
import json
import math
import os
import re
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from models.costs import CostModel, Price, is_text
from models.ensemble import Ensemble
from models.flat import LARGEST, Flat
from models.schema import Feature, Schema

FORMAT = 1
LARGEST_HEADER = 16 * 1024 * 1024
NO_DIGEST = "0" * 64
DIGEST = re.compile(rb'"sha256":"([0-9a-f]{64})"')
NOT_OURS = "this is not one of frugal's archives: its header has no manifest with a check sum"
TYPES = {
    "feature": "I32",
    "low": "F64",
    "threshold": "F64",
    "child_start": "I64",
    "children": "I32",
    "missing_child": "I32",
    "values": "F64",
    "roots": "I32",
    "weights": "F64",
}
DTYPES: dict[str, np.dtype[Any]] = {"I32": np.dtype("<i4"), "I64": np.dtype("<i8"), "F64": np.dtype("<f8")}
WANTED = (
    "format",
    "schema",
    "costs",
    "classes",
    "learner",
    "parameters",
    "order",
    "vote",
    "stop",
    "delayed",
    "penalties",
    "metrics",
)


class BadArchive(ValueError):  # noqa: N818 - its name says what it is
    """A file that is not a whole, undamaged archive of an ensemble."""


def dump(ensemble: Ensemble, target: "str | os.PathLike[str] | BinaryIO | None" = None) -> bytes:
    """The archive of an ensemble as bytes; also written to a path or an open binary file if one is given."""
    arrays = {name: np.ascontiguousarray(array, DTYPES[TYPES[name]]) for name, array in ensemble.flat._asdict().items()}
    header: dict[str, Any] = {"__metadata__": {"manifest": _to_json(_manifest(ensemble)), "sha256": NO_DIGEST}}
    place = 0
    for name, array in arrays.items():
        header[name] = {"dtype": TYPES[name], "shape": list(array.shape), "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    text = _to_json(header).encode()
    text += b" " * (-len(text) % 8)  # arrays start at a multiple of 8, as readers that map the file expect
    body = b"".join(array.tobytes() for array in arrays.values())
    archive = sealed(text, body)
    if isinstance(target, (str, os.PathLike)):
        _write_whole(Path(target), archive)
    elif target is not None:
        target.write(archive)
    return archive


def load(source: "bytes | bytearray | memoryview | str | os.PathLike[str] | BinaryIO") -> Ensemble:
    """Read an archive from bytes, a path or an open binary file; BadArchive says what is wrong with it."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            return _load(file, os.fstat(file.fileno()).st_size)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _load(io.BytesIO(source), len(source))
    start = source.tell()
    size = source.seek(0, os.SEEK_END) - start
    source.seek(start)
    return _load(source, size)


def _load(file: BinaryIO, size: int) -> Ensemble:
    text = _read_header(file, size)
    _check_digest(text, file)
    header = _from_json(text, "header")
    metadata = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or set(metadata) != {"manifest", "sha256"} or not all(isinstance(v, str) for v in metadata.values()):
        raise BadArchive(NOT_OURS)
    places = _places(header, size - 8 - len(text))
    arrays = {name: _read_array(file, *places[name]) for name in TYPES}
    try:
        return _build(_read_manifest(metadata["manifest"]), arrays)
    except BadArchive:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise BadArchive(f"the archive does not hold an ensemble that can be served: {str(error)[:1000]}") from None


def _read_header(file: BinaryIO, size: int) -> bytes:
    start = file.read(8)
    if len(start) < 8:
        raise BadArchive(f"{size} bytes are too few for an archive")
    length = int.from_bytes(start, "little")
    if length > LARGEST_HEADER or length > size - 8:
        raise BadArchive(
            f"the header claims {length:,} bytes: at most {min(LARGEST_HEADER, size - 8):,} are possible. Not an archive, or cut off"
        )
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
        raise BadArchive("the archive is damaged: its check sum does not fit its contents. Copy or train it again")


def _places(header: dict[str, Any], room: int) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Type and shape of every array, once the header's claims fit the file: nothing large is allocated before."""
    if set(header) != set(TYPES):
        raise BadArchive(f"the arrays are {str(sorted(header))[:200]}: expected {sorted(TYPES)}")
    expected = 0
    places = {}
    for name, kind in TYPES.items():
        entry = header[name]
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"} or entry["dtype"] != kind:
            raise BadArchive(f"the array {name!r} is described as {str(entry)[:120]}: expected type {kind} with shape and data_offsets")
        shape, dtype = entry["shape"], DTYPES[kind]
        dimensions = 2 if name == "values" else 1
        if not _whole_numbers(shape, dimensions) or any(n > LARGEST + 1 for n in shape):
            raise BadArchive(f"the array {name!r} has the shape {str(shape)[:120]}: expected {dimensions} whole numbers")
        end = expected + math.prod(shape) * dtype.itemsize
        if entry["data_offsets"] != [expected, end] or end > room:
            raise BadArchive(f"the array {name!r} does not fit the file: cut off, or its offsets or shape are wrong")
        places[name] = (dtype, tuple(shape))
        expected = end
    if expected != room:
        raise BadArchive(f"the arrays end {room - expected:,} bytes before the file does")
    return places


def _whole_numbers(shape: Any, dimensions: int) -> bool:
    return isinstance(shape, list) and len(shape) == dimensions and all(type(n) is int and n >= 0 for n in shape)


def _read_array(file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(shape, dtype)
    data = file.read(array.nbytes)
    if len(data) != array.nbytes:
        raise BadArchive("the archive is cut off")
    array[...] = np.frombuffer(data, dtype).reshape(shape)
    return array


def _manifest(ensemble: Ensemble) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "learner": ensemble.learner,
        "parameters": ensemble.parameters,
        "classes": list(ensemble.classes),
        "vote": ensemble.vote,
        "order": ensemble.order,
        "stop": ensemble.stop,
        "delayed": ensemble.delayed,
        "penalties": None if ensemble.penalties is None else ensemble.penalties.tolist(),
        "schema": [
            {"name": f.name, "kind": f.kind, "categories": list(f.categories), "unit": f.unit, "question": f.question}
            for f in ensemble.schema.features
        ],
        "costs": [
            {"feature": p.feature, "cost": p.cost, "group": p.group, "cost_in_group": p.cost_in_group, "delayed": p.delayed,
             "unit": p.unit, "question": p.question}
            for p in ensemble.costs.prices
        ],
        "metrics": ensemble.metrics,
    }  # fmt: skip


def _read_manifest(text: str) -> dict[str, Any]:
    if not is_text(text):
        raise BadArchive("the manifest is not text")
    manifest = _from_json(text.encode(), "manifest")
    if not isinstance(manifest, dict) or set(manifest) != set(WANTED):
        raise BadArchive(f"the manifest must hold {', '.join(WANTED)}")
    if manifest["format"] != FORMAT:
        raise BadArchive(f"the archive has format {manifest['format']!r}: this version of frugal reads format {FORMAT}")
    return manifest


def _build(manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Ensemble:
    return Ensemble(
        Flat(**arrays),
        Schema(Feature(**entry) for entry in manifest["schema"]),
        CostModel(Price(**entry) for entry in manifest["costs"]),
        **{name: manifest[name] for name in WANTED if name not in ("format", "schema", "costs")},
    )


def _to_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _from_json(text: bytes, what: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name stands twice")
        return dict(pairs)

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a number")

    try:
        return json.loads(text.decode(), object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadArchive(f"the {what} is not the JSON of an archive: {str(error)[:200]}") from None


def sealed(text: bytes, body: bytes) -> bytes:
    """The whole file: its header, with the check sum put in where NO_DIGEST stands, and its arrays."""
    size = len(text).to_bytes(8, "little")
    digest = hashlib.sha256(size + text + body).hexdigest()
    return size + text.replace(f'"sha256":"{NO_DIGEST}"'.encode(), f'"sha256":"{digest}"'.encode()) + body


def _write_whole(path: Path, archive: bytes) -> None:
    """All of it or nothing: a reader never meets half a file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    draft = Path(name)
    try:
        with open(handle, "wb") as file:
            file.write(archive)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o666 & ~_umask())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    """What new files of this process may not allow; asking for it means setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
