"""The learners that can be asked for are those that there are, with their own parameters."""

import inspect

import pytest

from frugal.models.learners import LEARNERS
from frugal.models.learners.parameters import Aside, parameters_of
from frugal.service.errors import InvalidRequest
from frugal.service.training.learners import catalogue, checked_params, shown_learners

CATALOGUE = catalogue()


def test_every_learner_can_be_asked_for() -> None:
    assert set(CATALOGUE) == set(LEARNERS)
    assert all(CATALOGUE[name].kind is kind for name, kind in LEARNERS.items())


@pytest.mark.parametrize("name", CATALOGUE)
def test_names_and_defaults_are_the_constructors(name: str) -> None:
    constructor = {parameter: about.default for parameter, about in inspect.signature(LEARNERS[name]).parameters.items()}
    shown = CATALOGUE[name].params().model_dump()
    aside = {each.name for each in parameters_of(LEARNERS[name]) if isinstance(each.kind, Aside)}
    assert list(constructor) == [each.name for each in parameters_of(LEARNERS[name])] == list(LEARNERS[name]().get_params())
    listed = {parameter: list(default) if isinstance(default, tuple) else default for parameter, default in constructor.items()}
    assert shown == {parameter: default for parameter, default in listed.items() if parameter not in aside}
    assert CATALOGUE[name].takes_budget == ("budget" in constructor)


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_schema_has_a_sentence_and_a_default_for_everything(name: str) -> None:
    about = next(learner for learner in shown_learners() if learner["name"] == name)
    properties = about["parameters"]["properties"]
    assert set(properties) == set(CATALOGUE[name].params.model_fields)
    assert all(prop["description"] and "default" in prop for prop in properties.values())
    assert about["parameters"]["additionalProperties"] is False
    assert "20" in about["paper"]


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_defaults_can_be_given(name: str) -> None:
    defaults = CATALOGUE[name].params().model_dump()
    assert checked_params(name, defaults) == defaults
    CATALOGUE[name].kind(**defaults)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"depth": 3}, "it knows impurity, alpha"),
        ({"alpha": -1}, "params.alpha: Input should be greater than or equal to 0"),
        ({"alpha": []}, "params.alpha"),
        ({"alpha": "0"}, "params.alpha: Input should be a valid number"),
        ({"max_trees": 0}, "params.max_trees"),
        ({"max_trees": 2.5}, "params.max_trees"),
        ({"max_trees": True}, "params.max_trees"),
        ({"split": "best"}, "params.split: Input should be 'minimax' or 'expected'"),
        ({"max_bins": 256}, "params.max_bins"),
        ({"validation_fraction": 1}, "params.validation_fraction"),
        ({"costs": {}}, "it knows"),
        ({"n_jobs": 64}, "it knows"),
    ],
)
def test_what_the_schema_forbids_is_refused_by_name(params: dict, said: str) -> None:
    with pytest.raises(InvalidRequest, match="params") as caught:
        checked_params("budget-forest", params)
    assert said in caught.value.detail


def test_an_unknown_learner_is_told_the_known_ones() -> None:
    with pytest.raises(InvalidRequest) as caught:
        checked_params("random-forest", {})
    assert caught.value.more["allowed"] == list(CATALOGUE)
    assert "budget-forest" in caught.value.detail
