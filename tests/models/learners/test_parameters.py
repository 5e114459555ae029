"""A learner's parameters are declared once: the constructor, get_params, checks, the wire, --set and the docs say the same."""

import inspect
from pathlib import Path

import pytest

from frugal.models.learners import LEARNERS
from frugal.models.learners.describing import rewritten
from frugal.models.learners.parameters import Aside, Number, Whole, learned, learner, parameter, parameters_of
from frugal.service.commands.main import main
from frugal.service.training.learners import shown_learners

ROOT = Path(__file__).parents[3]
NAMES = list(LEARNERS)
SETTABLE = {name: [each.name for each in parameters_of(kind) if not isinstance(each.kind, Aside)] for name, kind in LEARNERS.items()}


@learner
class Small:
    size: int = parameter(Whole(1), "how large", default=3)
    seed: int = parameter(Aside(), "seed", default=0, kw_only=True)
    made_: int = learned()


@learner
class Larger(Small):
    share: float = parameter(Number(0, 1), "how much", default=0.5)
    budget: float = parameter(Number(0), "how dear", default=1.0, before="size")


def test_parameters_stand_where_they_are_declared_to() -> None:
    assert str(inspect.signature(Larger)) == "(budget=1.0, size=3, share=0.5, *, seed=0) -> None"
    made = Larger(2.0, share=0.25)
    assert (made.budget, made.size, made.share, made.seed) == (2.0, 3, 0.25, 0)
    assert str(inspect.signature(Small)) == "(size=3, *, seed=0) -> None"


def test_what_is_learned_is_not_there_before() -> None:
    assert not hasattr(Larger(), "made_")


@pytest.mark.parametrize("given", [{"nose": 1}, {"made_": 1}])
def test_what_is_not_declared_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(TypeError, match=next(iter(given))):
        Larger(**given)  # type: ignore[arg-type]


def test_the_same_parameter_twice_is_refused() -> None:
    with pytest.raises(TypeError, match="budget"):
        Larger(1.0, budget=2.0)  # type: ignore[misc]


@pytest.mark.parametrize("name", NAMES)
def test_the_constructor_and_get_params_have_them(name: str) -> None:
    declared = {each.name: each.default for each in parameters_of(LEARNERS[name])}
    signature = inspect.signature(LEARNERS[name]).parameters
    assert {parameter.name: parameter.default for parameter in signature.values()} == declared
    assert LEARNERS[name]().get_params() == declared
    assert list(signature) == list(declared)


@pytest.mark.parametrize("name", NAMES)
def test_the_wire_has_them(name: str) -> None:
    schema = next(shown["parameters"] for shown in shown_learners() if shown["name"] == name)
    assert list(schema["properties"]) == SETTABLE[name]
    for each in parameters_of(LEARNERS[name]):
        if each.name in schema["properties"]:
            listed = list(each.default) if isinstance(each.default, tuple) else each.default  # JSON has arrays only
            assert schema["properties"][each.name]["default"] == listed
            assert schema["properties"][each.name]["description"] == each.text


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_has_them(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--data", str(ROOT / "examples/heart/heart.csv"), "--label", "disease", "--learner", name, "--set", "nose=1"]
    assert main([*command, "--out", str(tmp_path / "model.safetensors")]) == 2
    assert f"{name} knows {', '.join(SETTABLE[name])}" in capsys.readouterr().err


def test_the_docs_have_them() -> None:
    page = (ROOT / "docs" / "learners.md").read_text()
    assert rewritten(page) == page, "run make docs"
    assert all(f"<!-- parameters of {name} -->" in page for name in NAMES)
