"""Packed tables: lossless, small, in pieces; damaged ones are refused."""

import json
import mmap
import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as load_safetensors

from frugal.models.tensors import BadArchive, sealed
from frugal.service.tables import Columns, pack, unpack
from frugal.service.tables.columns import numbers_column, words_column

FLOATS = st.floats(allow_infinity=False) | st.integers(-300, 70_000).map(float) | st.sampled_from([0.0, 1.0, -0.0, np.nan])


@st.composite
def tables(draw) -> Columns:
    rows = draw(st.integers(1, 30))
    columns = []
    for i in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from([FLOATS, st.sampled_from([0.0, 1.0]), st.integers(0, 255).map(float), None]))
        if kind is not None:
            columns.append(numbers_column(f"n{i}", np.array(draw(st.lists(kind, min_size=rows, max_size=rows)))))
            continue
        text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
        words = sorted(draw(st.sets(text, min_size=1, max_size=5)))
        codes = draw(st.lists(st.integers(-1, len(words) - 1), min_size=rows, max_size=rows))
        columns.append(words_column(f"w{i}", words, np.array(codes)))
    return Columns.of(columns)


def same(a: Columns, b: Columns) -> None:
    assert a.columns == b.columns
    for one, other in zip(a.by_name.values(), b.by_name.values(), strict=True):
        assert one.describe() == other.describe()
        assert one.values.dtype == other.values.dtype
        assert one.values.tobytes() == other.values.tobytes()


@given(tables())
@settings(deadline=None)
def test_what_is_packed_comes_back_bit_for_bit(table):
    same(unpack(b"".join(pack(table))), table)


TABLE = Columns.of([numbers_column("n", np.arange(10.0)), words_column("w", ["b", "a"], np.array([0, 1, -1] * 3 + [0]))])
PACKED = b"".join(pack(TABLE))


def test_a_packed_file_can_be_mapped_and_is_what_others_read(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(PACKED)
    with open(path, "rb") as file:
        same(unpack(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), TABLE)
    same(unpack(memoryview(PACKED)), TABLE)
    assert load_safetensors(PACKED)["0"].tolist() == list(range(10))


def test_pieces_are_small_and_columns_of_two_values_are_bits():
    table = Columns.of([numbers_column("n", np.arange(500_000.0)), numbers_column("b", np.arange(500_000) % 2 * 1.0)])
    pieces = list(pack(table))
    assert max(map(len, pieces)) <= 1024 * 1024
    assert sum(map(len, pieces)) < 500_000 * 4 + 500_000 / 8 + 1000
    same(unpack(b"".join(pieces)), table)


def test_damage_is_refused():
    rng = random.Random(0)
    for _ in range(300):
        bad = bytearray(PACKED)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        with pytest.raises(ValueError, match=r"archive|table|column|array|header"):
            unpack(bytes(bad))
    for size in range(0, len(PACKED), 7):
        with pytest.raises(BadArchive):
            unpack(PACKED[:size])


def made_up(change, body: bytes | None = None) -> bytes:
    """A file whose check sum is right and whose contents are not."""
    size = struct.unpack("<Q", PACKED[:8])[0]
    header = json.loads(PACKED[8 : 8 + size])
    manifest = json.loads(header["__metadata__"]["manifest"])
    change(header, manifest)
    header["__metadata__"] = {"manifest": json.dumps(manifest), "sha256": "0" * 64}
    return sealed(json.dumps(header, separators=(",", ":")).encode(), PACKED[8 + size :] if body is None else body)


def columns(index, **fields):
    return lambda header, manifest: manifest["columns"][index].update(fields)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h, m: m.update(format=2), "packed in format 1"),
        (lambda h, m: m.update(rows=11), "10 values for 11 rows"),
        (lambda h, m: m.update(rows=-1), "number of rows"),
        (lambda h, m: m.update(columns=3), "describe the columns"),
        (columns(0, stored="U64"), "described as"),
        (columns(1, stored="F64"), "described as"),
        (columns(0, name=""), "expected a name"),
        (columns(1, name="n"), "same name"),
        (columns(0, kind="odd"), "described as"),
        (columns(0, kind=["odd"]), "described as"),
        (columns(0, stored={}), "described as"),
        (columns(0, stored="I16"), "expected type I16"),
        (lambda h, m: h.pop("0"), "the arrays are"),
    ],
)
def test_files_that_someone_made_up_are_refused(change, words):
    with pytest.raises(BadArchive, match=words):
        unpack(made_up(change))


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("1", np.array([2] * 10, np.int8), "stands for no word"),
        ("1", np.array([-2] * 10, np.int8), "stands for no word"),
        ("1.words", np.frombuffer(b"ba", np.uint8), "not in order"),
        ("1.words", np.frombuffer(b"a\xff", np.uint8), "not text"),
        ("1.ends", np.array([2, 1]), "do not fit"),
        ("1.ends", np.array([1, 3]), "do not fit"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(name, array, words):
    size = struct.unpack("<Q", PACKED[:8])[0]
    start, end = json.loads(PACKED[8 : 8 + size])[name]["data_offsets"]
    body = bytearray(PACKED[8 + size :])
    body[start:end] = array.tobytes()
    with pytest.raises(BadArchive, match=words):
        unpack(made_up(lambda h, m: None, bytes(body)))


def test_a_table_whose_names_no_reader_would_take_is_not_packed():
    columns = Columns.of([numbers_column(f"{k}" + "n" * 1000, np.zeros(1)) for k in range(17_000)])
    with pytest.raises(ValueError, match="leave out columns"):
        next(pack(columns))
