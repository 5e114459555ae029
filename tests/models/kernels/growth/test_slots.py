"""Slots: nobody gets one that is in use, and nothing is given back twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugal.models.kernels.compiling import kernel
from frugal.models.kernels.growth import slots as kernels
from frugal.models.kernels.growth.slots import make_slots

NONE = -1


@kernel
def take(slots):
    return kernels.take(slots)


@kernel
def give(slots, slot):
    kernels.give(slots, slot)


def test_as_many_as_there_are_and_then_none():
    slots = make_slots(3)
    assert sorted(take(slots) for _ in range(3)) == [0, 1, 2]
    assert [take(slots), take(slots)] == [NONE, NONE]
    assert take(make_slots(0)) == NONE


def test_what_is_given_back_can_be_taken_again():
    slots = make_slots(2)
    first, second = take(slots), take(slots)
    give(slots, first)
    assert take(slots) == first
    assert take(slots) == NONE
    give(slots, second)
    give(slots, NONE)
    assert take(slots) == second


@pytest.mark.parametrize("wrong", [0, 1, 2, -2])
def test_giving_back_what_nobody_holds_is_refused_and_changes_nothing(wrong):
    slots = make_slots(2)
    held = take(slots)
    give(slots, held)
    with pytest.raises(ValueError, match="given back that nobody holds"):
        give(slots, wrong)
    assert sorted([take(slots), take(slots)]) == [0, 1]
    assert take(slots) == NONE


@given(st.lists(st.one_of(st.none(), st.integers(0, 3))))
def test_never_two_holders(moves):
    slots, held = make_slots(4), set()
    for move in moves:
        if move is None:
            slot = take(slots)
            assert (slot == NONE) == (len(held) == 4)
            assert slot not in held
            held |= {slot} - {NONE}
        elif move in held:
            give(slots, move)
            held.remove(move)
