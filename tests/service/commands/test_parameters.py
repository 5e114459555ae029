"""Parameters as they are typed."""

import pytest

from frugal.service.commands.parameters import parse_penalties, parse_settings


@pytest.mark.parametrize(
    "text",
    ['{"ill": {"well": 500}, "ill": {"well": 5}}', '{"well": {"sick": 1, "ill": 1, "ill": 2}}'],
)
def test_penalties_that_name_a_label_twice_are_refused(text):
    with pytest.raises(ValueError, match=r"^'ill' stands there 2 times in one object: once is enough$"):
        parse_penalties(text)


@pytest.mark.parametrize("text", ["-1", "[]", "{}", "[" * 100_000, "9" * 5_000, '{"ill": {}}', '{"ill": {"well": true}}'])
def test_what_is_no_penalty_is_refused(text):
    with pytest.raises(ValueError, match=r"is neither a number from 0 nor JSON by true label"):
        parse_penalties(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("class_weight=balanced", "balanced"),
        ('class_weight={"yes": 5}', {"yes": 5}),
        ("class_weight=none", None),
        ("learners=budget-forest", ["budget-forest"]),
        ("learners=priced-boosting,budget-forest", ["priced-boosting", "budget-forest"]),
        ("categorical=age", ["age"]),
        ("cap=60", 60),
        ("reader=false", False),
        ('monotone={"age": 1}', {"age": 1}),
    ],
)
def test_settings_are_what_the_parameter_takes(text, value):
    assert parse_settings([text], "NAME=VALUE") == {text.partition("=")[0]: value}


@pytest.mark.parametrize("text", ['class_weight={"yes": 5, "yes": 1}', 'class_weight={"yes"}', "class_weight={" + '"a":{' * 100_000])
def test_json_that_is_none_or_says_something_twice_is_refused(text):
    with pytest.raises(ValueError, match=r"stands there 2 times|begins like JSON and is none"):
        parse_settings([text], "NAME=VALUE")
