"""After a warm-up nothing is left to compile; each part has what its work needs, and a part that is not cached can be left to others."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from frugal.models import (
    BudgetForestClassifier,
    CostModel,
    Ensemble,
    Feature,
    FrontierClassifier,
    GreedyTreeClassifier,
    Leaf,
    Price,
    Schema,
    Split,
    acquire,
    decide,
    predict,
)
from frugal.models.kernels import compiling
from frugal.models.kernels.compiling import taken, turn
from frugal.models.kernels.growth import growing
from frugal.models.kernels.serving import acquiring, deciding, judging, tracing
from frugal.service.warming import PARTS

ROOT = Path(__file__).parents[2]
jit = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
SESSION = """
from frugal.models import load, stand
from frugal.service.example import example_archive
ensemble, answers = load(example_archive()), {}
for confidence in (None, 0.9):
    answers = {}
    while hasattr(decision := stand(ensemble, answers, 60, 0, confidence=confidence).decision, "feature"):
        feature = ensemble.schema[decision.feature]
        answers[feature.name] = feature.categories[0] if feature.categories else 1.0
    stand(ensemble, answers, bought=[], pending=["thal"])
assert answers
"""
TABLE = """
from frugal.service.tables import read_file
assert len(read_file("examples/heart/heart.csv")) == 303
"""
ROWS = """
from frugal.models import acquire, load, predict
from frugal.service.example import example_archive
ensemble = load(example_archive())
acquire(ensemble, [[float("nan")] * len(ensemble.schema)] * 2, 60)
predict(ensemble, [[float("nan")] * len(ensemble.schema)] * 2)
"""
FOREST = """
from examples.heart_model import trained
assert len(trained())
"""
WORK = {("deciding",): SESSION, ("reading",): TABLE, ("predicting",): ROWS, ("reading", "predicting", "growing"): FOREST}


def python(script: str, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=True).stdout


@jit
def test_no_kernel_is_compiled_after_a_warm_up():
    PARTS.warm_up()
    kernels = (deciding.decide, acquiring.acquire, acquiring.predict, judging.judge, tracing.measure, tracing.turns, growing.grow)
    before = [len(kernel.signatures) for kernel in kernels]
    assert all(before)
    schema = Schema([Feature("a"), Feature("b", "categorical", ("x", "y")), Feature("c")])
    costs = CostModel([Price("a", 1), Price("b", 2, "g", 1), Price("c", 3, "g", 1)])
    tree = Split("b", [1, 2, 3], branches={"x": 0, "y": 1}, children=[Leaf([1, 0, 0]), Leaf([0, 2, 3])])
    for vote in ("majority", "counts", "weighted", "additive"):
        for penalties in (None, [[0, 1, 1], [1, 0, 1], [2, 2, 0]]):
            ensemble = Ensemble.of([tree], schema, costs, classes=list("pqr"), vote=vote, delayed="ahead", penalties=penalties)
            decide(ensemble, {"a": 1}, budget=3, pending=["b"], confidence=0.9)
            acquire(ensemble, [[0.0, 1.0, 2.0]], 3, confidence=0.5)
            predict(ensemble, [[0.0, 1.0, 2.0]])
    GreedyTreeClassifier(impurity="polynomial", categorical=[1], stumps="random").fit([[0, 1], [1, 2], [2, 1]], [0, 1, 2], [1, 2, 0.5])
    both = ("priced-boosting", "budget-forest")
    FrontierClassifier(cap=1, learners=both, random_state=0).fit([[0, 1], [1, 2], [2, 1]] * 9, [0, 1, 2] * 9)
    BudgetForestClassifier(max_trees=9, points=True, random_state=0).fit([[0, 1], [1, 2], [2, 1]], [0, 1, 2])
    assert [len(kernel.signatures) for kernel in kernels] == before


@jit
@pytest.mark.parametrize("parts", WORK)
def test_a_part_has_every_kernel_that_its_work_needs(parts):
    script = f"""
import sys
from frugal.service.warming import PARTS
from frugal.models.kernels.compiling import kernels
before = PARTS.warm_up(*sys.argv[1:])
{WORK[parts]}
assert kernels() == before, (before, kernels())
"""
    python(script, *parts)


def test_the_parts_together_are_all_that_a_warm_up_does():
    assert set().union(*WORK) == set(PARTS.work)


@jit
def test_what_is_not_cached_is_told_and_not_compiled(tmp_path):
    script = """
from frugal.models.kernels.compiling import kernels
from frugal.service.warming import PARTS
print(*[PARTS.load_cached(part) for part in ("deciding", "reading", "predicting")], *kernels())
"""
    assert python(script, NUMBA_CACHE_DIR=str(tmp_path)).split() == ["False", "False", "False", "0", "0"]
    PARTS.warm_up("deciding", "reading", "predicting")
    assert python(script).split()[:3] == ["True", "True", "True"]
    assert python(script).split()[4] == "0"


def test_growing_cannot_be_loaded_without_compiling():
    with pytest.raises(ValueError, match="threads"):
        PARTS.load_cached("growing")


@jit
def test_who_compiles_ahead_has_every_turn_from_the_start_and_lets_go_of_each_when_it_is_done(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "cache_folder", lambda: tmp_path)  # other processes take turns at the real one
    seen = []
    for part in ("reading", "predicting"):
        monkeypatch.setitem(PARTS.work, part, lambda: seen.append([taken(each) for each in ("reading", "predicting", "growing")]))
    PARTS.compile_ahead("predicting", "reading")
    assert seen == [[True, True, False], [False, True, False]]


@jit
def test_a_warm_up_holds_one_turn_at_a_time_and_none_for_what_is_cached(monkeypatch, tmp_path):
    """Or a training that waits for its kernels would hold up whoever predicts."""
    PARTS.warm_up("predicting")
    monkeypatch.setattr(compiling, "cache_folder", lambda: tmp_path)  # other processes take turns at the real one
    seen = []
    monkeypatch.setitem(PARTS.work, "growing", lambda: seen.append([taken(each) for each in ("predicting", "growing")]))
    PARTS.warm_up("predicting", "growing")
    assert seen == [[False, True]]
    with turn("predicting"):  # held by somebody slow
        PARTS.warm_up("predicting")


@jit
def test_the_first_kernel_that_is_compiled_is_told_once(tmp_path):
    script = """
import numpy as np
from frugal.models.kernels.serving.checking import first_wrong_code
from frugal.models.kernels.compiling import before_compiling
before_compiling(lambda: print("compiling"))
first_wrong_code(np.zeros((1, 1)), np.zeros(1, np.int32))
first_wrong_code(np.zeros((1, 1), np.float32), np.zeros(1, np.int32))
print("done")
"""
    assert python(script, NUMBA_CACHE_DIR=str(tmp_path)).split() == ["compiling", "done"]
    assert python(script, NUMBA_CACHE_DIR=str(tmp_path)).split() == ["done"]
