"""Archives: bit-exact round trips, readable by others, and every kind of damage refused."""

import io
import json
import re
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from frugal.models import CostModel, Ensemble, Feature, Leaf, Price, Schema, Split, acquire, decide, dump, load
from frugal.models.ensemble import SETTINGS
from frugal.models.tensors import DTYPES, LARGEST_HEADER, NO_DIGEST, BadArchive, sealed
from tests import strategies
from tests.forging import forged


def example():
    schema = Schema([Feature("size", unit="cm", question="How big?"), Feature("colour", "categorical", ("röd", "grön"))])
    colour = Split("colour", [1, 3], branches={"röd": 0, "grön": 1}, children=[Leaf([1, 0]), Leaf([0, 3])])
    tree = Split("size", [6, 4], threshold=0.1, children=[Leaf([5, 5e-324]), colour])
    costs = CostModel([Price("size", 0.3, "g", 0.1, True), Price("colour", 2)])
    return Ensemble.of(
        [tree, Leaf([-0.0, 1 / 3])],
        schema,
        costs,
        classes=["a", "b"],
        vote="weighted",
        weights=[0.5, 2],
        order="sequential",
        stop="leaf",
        delayed="ahead",
        penalties=[[0, 2.5], [1, 0]],
        smoothing=0.5,
        calibration={"slope": -0.25, "end_bias": 0.125, "bias": [0.5, -1.0]},
        learner="budget-forest",
        parameters={"alpha": 4.0},
        metrics={"error": 0.125},
    )


ARCHIVE = dump(example())
SEAL = f'"sha256":"{NO_DIGEST}"'.encode()


def same(a, b):
    settings = ("schema", "costs", "classes", *(name for name in SETTINGS if name not in ("penalties", "reader")))
    assert all(getattr(a, name) == getattr(b, name) for name in settings)
    assert (a.penalties is None) == (b.penalties is None)
    assert (a.reader is None) == (b.reader is None)
    for one, other in zip((*a.flat, *(a.reader or ())), (*b.flat, *(b.reader or ())), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


@given(strategies.models())
def test_a_round_trip_is_bit_exact(model):
    ensemble = strategies.ensemble_of(model)
    archive = dump(ensemble)
    same(load(archive), ensemble)
    assert dump(load(archive)) == archive


def test_bytes_paths_and_open_files(tmp_path):
    path = tmp_path / "model.safetensors"
    assert dump(example(), path) is None
    assert path.read_bytes() == ARCHIVE
    same(load(path), example())
    same(load(str(path)), example())
    with open(path, "rb") as file:
        same(load(file), example())
    copy = io.BytesIO()
    dump(example(), copy)
    same(load(memoryview(copy.getvalue())), example())
    assert list(tmp_path.iterdir()) == [path]


def test_any_reader_of_safetensors_can_read_it(tmp_path):
    arrays = safetensors.numpy.load(ARCHIVE)
    assert (arrays["values"] == example().flat.values).all()
    assert (np.cumsum(arrays["value_count"]) == example().flat.value_start[1:]).all()
    dump(example(), tmp_path / "model.safetensors")
    with safetensors.safe_open(tmp_path / "model.safetensors", "numpy") as file:
        manifest = json.loads(file.metadata()["manifest"])
    assert manifest["format"] == 3
    assert manifest["costs"][0]["cost"] == 0.3
    assert manifest["learner"] == "budget-forest"


def test_every_truncation_is_refused():
    for size in range(len(ARCHIVE)):
        with pytest.raises(BadArchive):
            load(ARCHIVE[:size])
    with pytest.raises(BadArchive):
        load(ARCHIVE + b"\0")


def test_every_flipped_bit_is_refused():
    for place in range(len(ARCHIVE)):
        damaged = bytearray(ARCHIVE)
        damaged[place] ^= 1 << (place % 8)
        with pytest.raises(BadArchive):
            load(damaged)


@given(strategies.models(), st.data())
def test_an_array_with_any_byte_changed_is_refused_or_can_be_served(model, data):
    """Nothing that passes the checks leads a walk astray: what is left is another model, which decides as others do."""

    def change(header, manifest, body):
        for _ in range(data.draw(st.integers(1, 3))):
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    try:
        ensemble = load(forged(dump(strategies.ensemble_of(model)), change))
    except BadArchive:
        return
    rows = [data.draw(strategies.rows_of(model.schema))]
    assert len(acquire(ensemble, model.schema.encode_rows(rows)).labels) == 1
    decide(ensemble, rows[0])
    for tree in range(len(ensemble)):
        ensemble.text(tree)


@pytest.mark.parametrize("greatest", [200, 40_000, 3_000_000, 2**40, 0.5, -1.0])
def test_counts_take_the_fewest_bytes_and_come_back_as_they_were(greatest):
    ensemble = Ensemble.of([Leaf([1, 0]), Leaf([0, greatest])], Schema([]), classes=["a", "b"], vote="additive")
    again = load(dump(ensemble))
    same(again, ensemble)
    arrays = safetensors.numpy.load(dump(ensemble))
    expected = next((t for t, most in ((np.uint8, 2**8), (np.uint16, 2**16), (np.uint32, 2**32)) if 0 < greatest < most), np.float64)
    assert arrays["values"].dtype == again.flat.values.dtype == (np.float64 if greatest == 0.5 else expected)
    assert [arrays[name].itemsize for name in ("feature", "kind", "missing", "value_count", "value_class")] == [1] * 5
    assert decide(again, {}) == decide(ensemble, {})


@given(st.binary(max_size=300))
def test_noise_is_refused(noise):
    for archive in (noise, ARCHIVE[:8] + noise, len(noise).to_bytes(8, "little") + noise):
        with pytest.raises(BadArchive):
            load(archive)


def too_deep_to_write(header, manifest, body):
    """Just so deep that it can be written here and not a few calls further down, however deep the test itself is called."""
    frame, calls = sys._getframe(), 0
    while frame is not None:
        frame, calls = frame.f_back, calls + 1
    manifest["parameters"] = {"p": deep(sys.getrecursionlimit() - calls - 14)}


def deep(levels):
    nested = []
    for _ in range(levels):
        nested = [nested]
    return nested


def put(name, index, value):
    """Overwrite one element of an array."""

    def change(header, manifest, body):
        start = header[name]["data_offsets"][0]
        dtype = DTYPES[header[name]["dtype"]]
        item = np.array([value], dtype).tobytes()
        body[start + index * len(item) : start + (index + 1) * len(item)] = item

    return change


def say(**values):
    return lambda header, manifest, body: manifest.update(values)


def tell(part, index, **values):
    """Say something else of one feature."""
    return lambda header, manifest, body: manifest[part][index].update(values)


def head(name, **values):
    return lambda header, manifest, body: header[name].update(values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("first_child", 0, 0), "node 0 has a child that is not further on in the same tree: a cycle"),
        (
            put("first_child", 0, 77),
            "node 0 has a child that is not further on in the same tree: a cycle, or an index out of range",
        ),
        (put("feature", 0, 9), "node 0 splits on a feature that the schema does not have"),
        (put("threshold", 0, np.nan), "node 0 has a threshold or value that is not a finite number"),
        (put("values", 3, np.inf), "node 1 has a threshold or value that is not a finite number"),
        (put("roots", 1, 99), "roots must start at 0, rise, and be nodes"),
        (put("roots", 1, -1), "roots must start at 0, rise, and be nodes"),
        (put("weights", 0, -1.0), "every tree's weight must be a finite number above 0"),
        (put("value_count", 2, 200), "value_count adds up to 207: there are 9 values"),
        (put("value_class", 1, 200), "node 0 has values whose classes do not rise, or that the ensemble does not have"),
        (put("kind", 0, 200), "node 0 has a test that its feature cannot take"),
        (put("missing", 0, 100), "node 0 sends missing to an outcome that it does not have"),
        (put("outcomes", 0, 100), "node 2 has a child that is not further on in the same tree"),
        (say(format=2), "the archive has format 2: this version of frugal reads format 3"),
        (say(surprise=1), "the manifest must hold format, schema"),
        (
            say(classes=["a"], penalties=None, calibration=None),
            "node 0 has values whose classes do not rise, or that the ensemble does not have",
        ),
        (say(classes=3), "'int' object is not iterable"),
        (say(vote="loudest"), "vote is 'loudest': expected one of"),
        (say(schema=[]), "costs for 'size', 'colour', which the data does not have"),
        (say(schema=["size"]), "argument after ** must be a mapping"),
        (say(penalties=[[0, 1]]), "penalties: expected a 2 x 2 matrix"),
        (say(penalties=[[0, 10**400], [1, 0]]), "int too large to convert to float"),
        (say(parameters=[1]), "parameters is [1]: expected a mapping"),
        (say(smoothing=-1), "smoothing is -1: expected a number from 0 to 1e+100"),
        (say(smoothing="1"), "smoothing is '1': expected a number from 0"),
        (say(smoothing=True), "smoothing is True: expected a number from 0"),
        (say(calibration=[1]), "calibration is [1]: expected slope, end_bias, bias, or None"),
        (say(calibration={"slope": 1}), "calibration is {'slope': 1}: expected slope, end_bias, bias, or None"),
        (say(calibration={"slope": 0, "end_bias": 0, "bias": [0]}), "the bias of the calibration is [0]: expected one number per class, 2"),
        (say(calibration={"slope": 0, "end_bias": 0, "bias": 3}), "the bias of the calibration is 3: expected one number per class, 2"),
        (say(calibration={"slope": -1, "end_bias": 0, "bias": [0, 0]}), "the calibration has -1: expected a number from -0.95 to 20"),
        (say(calibration={"slope": 0, "end_bias": 0, "bias": [0, 21]}), "the calibration has 21: expected a number from -20 to 20"),
        (say(calibration={"slope": 0, "end_bias": "1", "bias": [0, 0]}), "the calibration has 1: expected a number from -20 to 20"),
        (too_deep_to_write, "maximum recursion depth exceeded"),
        (say(learner="\ud800"), "learner is '\\ud800': not a name that can be written"),
        (say(metrics={"a": "\ud800"}), "metrics must hold only what JSON can"),
        (say(metrics={"a": float("1e400")}), "not the JSON of an archive"),
        (say(parameters={"p": deep(19)}), "parameters must be nested no more than 20 levels deep"),
        (say(parameters={"p": deep(300)}), "parameters must be nested no more than 20 levels deep"),
        (say(metrics={"m": {"p": deep(19)}}), "metrics must be nested no more than 20 levels deep"),
        (say(parameters={"p" * 201: 1}), "parameters must have names of at most 200 characters"),
        (say(parameters={"p": [{"q\0": 1}]}), "parameters must have names of at most 200 characters"),
        (say(parameters={"p": ["x" * 1001]}), "parameters must have texts of at most 1,000 characters"),
        (say(metrics={"p": "x\0"}), "metrics must have texts of at most 1,000 characters"),
        (say(learner="l" * 201), "of at most 200 characters"),
        (say(classes=["a", "b" * 201]), "expected text of at most 200 characters"),
        (say(classes=["a", 10**200]), "expected text of at most 200 characters"),
        (say(classes=["a", "b\0"]), "expected text of at most 200 characters"),
        (tell("schema", 0, name="s" * 201), "has 201 characters: at most 200 are possible"),
        (tell("schema", 1, categories=["röd", "g" * 201]), "expected text of at most 200 characters"),
        (tell("schema", 0, unit="u" * 1001), "the unit of 'size' has 1,001 characters: at most 1,000 are possible"),
        (tell("schema", 0, question="q" * 1001), "the question of 'size' has 1,001 characters: at most 1,000 are possible"),
        (tell("costs", 0, feature="s" * 201), "has 201 characters: at most 200 are possible"),
        (tell("costs", 0, group="g" * 201), "the group of 'size' has 201 characters: at most 200 are possible"),
        (tell("costs", 0, question="q" * 1001), "the question of 'size' has 1,001 characters: at most 1,000 are possible"),
        (head("values", dtype="F32"), "the array 'values' is described as"),
        (head("values", dtype=["F64"]), "the array 'values' is described as"),
        (head("values", dtype="U8"), "the array 'values' does not fit the file"),
        (head("values", shape=[10**18]), "the array 'values' has the shape"),
        (head("values", shape=[5, 2]), "the array 'values' has the shape [5, 2]: expected 1 whole numbers"),
        (head("values", shape=[-6]), "the array 'values' has the shape [-6]: expected 1 whole numbers"),
        (head("values", shape=[2**31 - 1]), "the array 'values' does not fit the file"),
        (head("feature", data_offsets=[8, 32]), "the array 'feature' does not fit the file"),
        (head("roots", shape=[True]), "the array 'roots' has the shape [True]: expected 1 whole numbers"),
        (lambda header, manifest, body: header.pop("low"), "the arrays are"),
        (lambda header, manifest, body: header.update(more=3), "the arrays are"),
        (lambda header, manifest, body: body.extend(b"\0" * 8), "the arrays end 8 bytes before the file does"),
    ],
)
def test_a_forged_archive_is_refused(change, message):
    with pytest.raises(BadArchive, match=re.escape(message)):
        load(forged(ARCHIVE, change))


def test_names_and_depths_that_can_be_shown_are_kept():
    def most(header, manifest, body):
        manifest |= {"parameters": {"p" * 200: deep(18)}, "learner": "l" * 200, "classes": ["a", "b" * 200]}
        for entry in (manifest["schema"][0], manifest["costs"][0]):
            entry["question"] = "q" * 1000
        manifest["schema"][0]["name"] = manifest["costs"][0]["feature"] = "s" * 200
        manifest["schema"][1]["categories"] = ["röd", "g" * 200]

    kept = load(forged(ARCHIVE, most))
    assert load(dump(kept)).schema == kept.schema
    assert kept.parameters == {"p" * 200: deep(18)}


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (b"", "this is not one of frugal's archives, or it is cut off"),
        ((2**63).to_bytes(8, "little") + b"{}", "this is not one of frugal's archives, or it is cut off"),
        ((10**9).to_bytes(8, "little") + b"{}", "this is not one of frugal's archives, or it is cut off"),
        ((2).to_bytes(8, "little") + b"{}", "this is not one of frugal's archives"),
        (sealed(b"[NaN]" + SEAL, b""), "the header is not the JSON of an archive"),
        (sealed(b"[" * 100_000 + SEAL, b""), "the header is not the JSON of an archive"),
        (sealed(b"9" * 6_000 + SEAL, b""), "the header is not the JSON of an archive"),
        (sealed(b"{" + SEAL + b',"a":1,"a":2}', b""), "a name stands twice"),
        (sealed(b"[{" + SEAL + b"}]", b""), "this is not one of frugal's archives"),
        (sealed(b"{" + SEAL + b"," + SEAL + b"}", b""), "this is not one of frugal's archives"),
        (sealed(b'{"__metadata__":{"manifest":"\\ud800",' + SEAL + b"}}", b""), "the manifest is not text"),
    ],
)
def test_what_is_no_archive_says_so(archive, message):
    with pytest.raises(BadArchive, match=re.escape(message)):
        load(archive)


def test_nothing_large_is_allocated_for_a_lie():
    lies = [
        (2**40).to_bytes(8, "little") + b"{}" * 100,
        forged(ARCHIVE, head("values", shape=[2**31 - 1])),
        forged(ARCHIVE, head("outcomes", shape=[2**31 - 1])),
        forged(ARCHIVE, put("value_count", 2, 255)),
    ]
    tracemalloc.start()
    for lie in lies:
        with pytest.raises(BadArchive):
            load(lie)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_writers_of_one_path_never_show_half_a_file(tmp_path):
    path = tmp_path / "model.safetensors"
    dump(example(), path)
    with ThreadPoolExecutor(4) as pool:
        written = [pool.submit(dump, example(), path) for _ in range(40)]
        read = [pool.submit(load, path) for _ in range(40)]
        assert all(future.exception() is None for future in [*written, *read])
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_an_archive_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(FileNotFoundError):
        dump(example(), tmp_path / "nowhere" / "model.safetensors")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        dump(example(), tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_model_whose_words_no_reader_would_take_is_not_written():
    words = tuple(f"{k:06}" + "w" * 194 for k in range(90_000))
    schema = Schema([Feature("name", "categorical", words)])
    ensemble = Ensemble.of([Leaf([1, 0])], schema, CostModel([Price("name", 1)]), classes=["a", "b"], vote="majority")
    with pytest.raises(ValueError, match="leave out columns with many or long words") as caught:
        dump(ensemble)
    assert f"{LARGEST_HEADER:,}" in str(caught.value)
