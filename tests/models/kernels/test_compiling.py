"""Where compiled kernels are kept, and that an edit is noticed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from frugal.models.kernels import compiling

ROOT = Path(__file__).parents[3]
DECIDE = """
from frugal.models import Ensemble, Feature, Leaf, Schema, Split, decide
from frugal.models.kernels.serving import deciding
tree = Split("size", [1, 1], threshold=1.0, children=[Leaf([1, 0]), Leaf([0, 1])])
print(decide(Ensemble.of([tree], Schema([Feature("size")]), classes=["a", "b"], vote="majority"), {"size": 1.0}).label)
print(sum(deciding.decide.stats.cache_hits.values()))
"""
jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def run(folder, **environment):
    return subprocess.run(
        [sys.executable, "-c", DECIDE],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


def test_the_name_of_the_folder_follows_every_edit(tmp_path):
    (tmp_path / "frugal").mkdir()
    for part in ("models", "service"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
        (tmp_path / "frugal" / part).symlink_to(tmp_path / part)
    names = [compiling.sources_hash(tmp_path / "frugal")]
    assert names == [compiling.sources_hash()]
    for edited in ("models/kernels/serving/walking.py", "service/tables/kernels/decimals.py"):
        with open(tmp_path / edited, "a") as source:
            source.write("# edited\n")
        names.append(compiling.sources_hash(tmp_path / "frugal"))
    assert len(set(names)) == 3


@jit
@pytest.mark.slow
def test_an_edit_in_another_file_is_run_and_not_the_cached_kernel(tmp_path):
    for part in ("frugal", "models"):
        shutil.copytree(ROOT / part, tmp_path / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    assert run(tmp_path) == ["a", "0"]
    assert run(tmp_path) == ["a", "1"]  # from the cache
    walking = tmp_path / "models" / "kernels" / "serving" / "walking.py"
    text = walking.read_text()
    edited = text.replace('value <= node["threshold"] and', 'value < node["threshold"] and')
    assert edited != text
    walking.write_text(edited)
    assert run(tmp_path) == ["b", "0"]


@jit
def test_a_second_process_hits_the_cache():
    run(ROOT)
    assert run(ROOT)[1] == "1"


@jit
def test_a_warm_up_says_what_was_compiled_and_what_came_from_the_cache():
    """What a container logs at start, and what keeps an image without its kernels from being built."""
    script = "from frugal.models import warm_up; said = warm_up(); print(said); print(said.loaded, said.compiled)"
    command = [sys.executable, "-c", script]
    for _ in range(2):
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    words, numbers = said.splitlines()
    loaded, compiled = map(int, numbers.split())
    assert loaded > 0
    assert compiled == 0
    assert words == f"kernels: {loaded} from the cache, 0 compiled"


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(blocked))
    found = compiling.cache_folder.__wrapped__()
    assert found is not None
    assert blocked not in found.parents


def test_no_writable_folder_is_said_aloud(monkeypatch):
    monkeypatch.setattr(compiling, "_usable", lambda folder: False)
    with pytest.warns(UserWarning, match=r"every process compiles them again .* set NUMBA_CACHE_DIR to a writable folder"):
        assert compiling.cache_folder.__wrapped__() is None


def test_every_kernel_goes_through_the_one_decorator():
    for source in sorted(compiling.HERE.rglob("*.py")):
        if source.name != "compiling.py":
            assert not re.search(r"\bimport numba|\bnjit|@jit", source.read_text()), source


@jit
@pytest.mark.parametrize("compiled_before", [False, True])
def test_a_part_called_from_python_says_how_to_call_it(compiled_before):
    @compiling.inlined
    def doubled(x):
        return x + x

    @compiling.kernel
    def whole(x):
        return doubled(x)

    if compiled_before:
        assert whole(2.0) == 4.0
    with pytest.raises(TypeError, match=r"doubled is a part of other kernels: from Python call as_python\(doubled\)"):
        doubled(2.0)
    assert compiling.as_python(doubled)(2.0) == 4.0
