"""Parameters as they are typed."""

import pytest

from frugal.service.commands.parameters import parse_penalties


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
