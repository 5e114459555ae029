"""Digits to floats: every bit as Python's float() has it."""

import random

import numpy as np
import pytest

from frugal.models.kernels.compiling import kernel
from frugal.service.tables.kernels.decimals import to_float


@kernel
def to_floats(digits, powers, out):
    for i in range(len(digits)):
        out[i] = to_float(digits[i], powers[i])


def check(cases: list[tuple[int, int]]) -> None:
    digits, powers = np.array([c[0] for c in cases], np.uint64), np.array([c[1] for c in cases])
    out = np.empty(len(cases))
    with np.errstate(over="ignore"):  # without numba the products of 64 bits are seen to wrap
        to_floats(digits, powers, out)
    expected = np.array([float(f"{d}e{p}") for d, p in cases])
    known = ~np.isnan(out)
    assert known.mean() > 0.99
    np.testing.assert_array_equal(out[known].view(np.int64), expected[known].view(np.int64))


@pytest.mark.parametrize("seed", range(3))
def test_random_digits_and_powers(seed):
    rng = random.Random(seed)
    check([(rng.getrandbits(rng.randint(1, 63)), rng.randint(-350, 312)) for _ in range(3000)])


def test_numbers_half_way_between_two_floats_and_beside_them():
    rng = random.Random(0)
    cases = []
    for _ in range(500):
        half = (rng.getrandbits(53) | 1 << 53) * 2 + 1
        cases += [(half + step, 0) for step in (-1, 0, 1)]
        power = rng.randint(1, 3)
        cases += [(half * 5**power + step, -power) for step in (-1, 0, 1)]
    check(cases)


def test_the_smallest_and_the_largest():
    check([(22250738585072011, -324), (22250738585072014, -324), (49, -325), (247032822920623272, -341), (247032822920623273, -341)])
    check([(17976931348623157, 292), (17976931348623159, 292), (1, 309), (0, 400), (0, -400), (18446744073709551615, 308), (1, -343)])
