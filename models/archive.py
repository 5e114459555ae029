"""Ensemble to bytes and back: a safetensors file with a JSON manifest. Never pickle; everything is checked before it is used."""

import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, overload

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import CostModel, Price, is_text
from frugal.models.ensemble import Ensemble
from frugal.models.flat import Flat
from frugal.models.schema import Feature, Schema
from frugal.models.tensors import DTYPES, BadArchive, NotArchive, find_places, from_json, read_header, seal, write_header

FORMAT = 3
PIECE = 1024 * 1024
TYPES = {  # what each array may be: the first that holds it is written
    "feature": ("I8", "I16", "I32"),
    "kind": ("U8",),
    "low": ("F64",),
    "threshold": ("F64",),
    "first_child": ("I32",),
    "missing": ("I8", "I16"),
    "outcomes": ("I8", "I16"),
    "value_count": ("U8", "U16", "U32"),  # instead of value_start: a byte for most nodes
    "value_class": ("U8", "U16"),
    "values": ("U8", "U16", "U32", "F64"),
    "roots": ("I32",),
    "weights": ("F64",),
}
READER = "reader_"  # before the names of the arrays of an ensemble's reader
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
    "sureness",
    "delayed",
    "penalties",
    "smoothing",
    "calibration",
    "blend",
    "frontier",
    "metrics",
)


@overload
def dump(ensemble: Ensemble) -> bytes: ...


@overload
def dump(ensemble: Ensemble, target: "str | os.PathLike[str] | BinaryIO") -> None: ...


def dump(ensemble: Ensemble, target: "str | os.PathLike[str] | BinaryIO | None" = None) -> bytes | None:
    """The archive of an ensemble: written to a path or an open binary file, or as bytes if none is given."""
    parts = archived(ensemble)
    if target is None:
        return b"".join(parts)
    if isinstance(target, (str, os.PathLike)):
        _write_whole(Path(target), parts)
    else:
        target.writelines(parts)
    return None


def archived(ensemble: Ensemble) -> list[memoryview]:
    """The archive in parts, for those who pass a large one on: the arrays are not copied where their types are the smallest already."""
    flat = _columns(ensemble.flat) | ({} if ensemble.reader is None else _columns(ensemble.reader, READER))
    types = {name: next(kind for kind in kinds if _holds(kind, flat[name])) for name, kinds in _types(ensemble.reader is not None).items()}
    arrays = {name: np.ascontiguousarray(flat[name], DTYPES[kind]) for name, kind in types.items()}
    header = write_header({name: (types[name], array.shape) for name, array in arrays.items()}, _manifest(ensemble))
    parts = [array.data.cast("B") for array in arrays.values() if array.size]
    return [memoryview(seal(header, parts)), *parts]


def _columns(flat: Flat, before: str = "") -> dict[str, NDArray[Any]]:
    columns = flat._asdict()
    columns["value_count"] = np.diff(columns.pop("value_start"))
    return {before + name: column for name, column in columns.items()}


def _types(reads: bool) -> dict[str, tuple[str, ...]]:
    """What each array of a file may be: those of the trees that ask, then those of the reader, if there is one."""
    return TYPES | ({READER + name: kinds for name, kinds in TYPES.items()} if reads else {})


def _holds(kind: str, array: NDArray[Any]) -> bool:
    dtype = DTYPES[kind]
    if dtype.kind == "f":
        return True
    limits = np.iinfo(dtype)
    return array.dtype.kind != "f" and (not array.size or bool(limits.min <= array.min() and array.max() <= limits.max))


def load(source: "bytes | bytearray | memoryview | str | os.PathLike[str] | BinaryIO") -> Ensemble:
    """Read an archive from bytes, a path or an open binary file; BadArchive says what is wrong with it."""
    if isinstance(source, (str, os.PathLike)):
        with _opened(source) as (file, size):
            return _load(file, size)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _load(io.BytesIO(source), len(source))
    start = source.tell()
    size = source.seek(0, os.SEEK_END) - start
    source.seek(start)
    return _load(source, size)


def check_file(path: "str | os.PathLike[str]") -> None:
    """BadArchive where a file does not begin as a model does, or is damaged; whether it holds one that can be served is not looked at."""
    with _opened(path) as (file, size):
        read_header(file, size)


@contextmanager
def _opened(path: "str | os.PathLike[str]") -> Iterator[tuple[BinaryIO, int]]:
    """A file and its size; who named it is told of it by name."""
    with open(path, "rb") as file:
        try:
            yield file, os.fstat(file.fileno()).st_size
        except NotArchive:
            raise BadArchive(f"{os.fspath(path)} is not a model file, or it is cut off") from None


def _load(file: BinaryIO, size: int) -> Ensemble:
    header, text, room = read_header(file, size)
    manifest = _read_manifest(text)
    places = find_places(header, room, {name: (kinds, 1) for name, kinds in _types(manifest["blend"] is not None).items()})
    arrays = {name: _read_array(file, place.dtype, place.shape) for name, place in places.items()}
    try:
        return _build(manifest, arrays)
    except BadArchive:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise BadArchive(f"the archive does not hold an ensemble that can be served: {str(error)[:1000]}") from None


def _read_array(file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(shape, dtype)
    room = array.data.cast("B") if array.size else memoryview(b"")
    for start in range(0, len(room), PIECE):  # no second copy of a large array
        data = file.read(min(PIECE, len(room) - start))
        if len(data) != min(PIECE, len(room) - start):
            raise BadArchive("the archive is cut off")
        room[start : start + len(data)] = data
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
        "sureness": ensemble.sureness,
        "delayed": ensemble.delayed,
        "penalties": None if ensemble.penalties is None else ensemble.penalties.tolist(),
        "smoothing": ensemble.smoothing,
        "calibration": ensemble.calibration,
        "blend": None if ensemble.reader is None else ensemble.blend,
        "frontier": None if ensemble.frontier is None else ensemble.frontier.as_dict(),
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
    manifest = from_json(text.encode(), "manifest")
    if not isinstance(manifest, dict) or set(manifest) != set(WANTED):
        raise BadArchive(f"the manifest must hold {', '.join(WANTED)}")
    if manifest["format"] != FORMAT:
        raise BadArchive(f"the archive has format {manifest['format']!r}: this version of frugal reads format {FORMAT}")
    return manifest


def _build(manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Ensemble:
    settings = {name: manifest[name] for name in WANTED if name not in ("format", "schema", "costs")}
    if settings["blend"] is None:
        settings.pop("blend")
    else:
        settings["reader"] = _flat(arrays, READER)
    return Ensemble(
        _flat(arrays),
        Schema(Feature(**entry) for entry in manifest["schema"]),
        CostModel(Price(**entry) for entry in manifest["costs"]),
        **settings,
    )


def _flat(arrays: dict[str, NDArray[Any]], before: str = "") -> Flat:
    columns = {name: arrays[before + name] for name in TYPES}
    counts = columns.pop("value_count")
    if counts.sum(dtype=np.uint64) != len(columns["values"]):
        raise BadArchive(f"{before}value_count adds up to {counts.sum(dtype=np.uint64):,}: there are {len(columns['values']):,} values")
    columns["value_start"] = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, dtype=np.int32, out=columns["value_start"][1:])
    return Flat(**columns)


def _write_whole(path: Path, parts: Iterable[memoryview]) -> None:
    """All of it or nothing: a reader never meets half a file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    draft = Path(name)
    try:
        with open(handle, "wb") as file:
            file.writelines(parts)
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
