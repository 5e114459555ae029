"""Decimal digits to the nearest float, exactly as Python's float() rounds.

Small ones by one multiplication or division of numbers that floats hold exactly (Clinger 1990); the rest by Eisel and Lemire's way
("Number parsing at a gigabyte per second", 2021): the 64 bits of the digits times the first 128 bits of a power of five.
"""

import math

import numpy as np

from frugal.models.kernels.compiling import inlined

LEAST, MOST = -342, 308  # powers of ten beyond which digits that fit 64 bits are 0 or infinite
EXACT = np.array([10.0**k for k in range(23)])
LOW32, ONE, TWO, NINE_BITS, ALL = np.uint64(0xFFFFFFFF), np.uint64(1), np.uint64(2), np.uint64(0x1FF), np.uint64(2**64 - 1)
HALF = np.uint64(32)


def _fives() -> np.ndarray:
    """The first 128 bits of every power of five, high and low half, as fast_float's table has them."""
    table = np.empty((MOST - LEAST + 1, 2), np.uint64)
    for q in range(LEAST, MOST + 1):
        five = 5 ** abs(q)
        if q >= 0:
            bits = five << 128 >> five.bit_length()
        else:
            size = (five - 1).bit_length()
            bits = (1 << (127 + size)) // five + 1 if q >= -27 else (1 << (128 + 2 * size)) // five + 1
            bits >>= bits.bit_length() - 128
        table[q - LEAST] = bits >> 64, bits & (2**64 - 1)
    return table


FIVES = _fives()


@inlined
def high_product(a, b):
    """The upper 64 bits of a product."""
    a1, a0, b1, b0 = a >> HALF, a & LOW32, b >> HALF, b & LOW32
    middle = a1 * b0 + ((a0 * b0) >> HALF)
    return a1 * b1 + (middle >> HALF) + ((a0 * b1 + (middle & LOW32)) >> HALF)


@inlined
def to_float(digits, power):
    """digits * 10**power, not negative: the nearest float, infinity where it is too large, nan where only more bits could tell."""
    if digits == np.uint64(0) or power < LEAST:
        return 0.0
    if power > MOST:
        return np.inf
    if -22 <= power <= 22 and digits <= np.uint64(2**53):
        return float(digits) / EXACT[-power] if power < 0 else float(digits) * EXACT[power]
    zeros = 0
    while digits >> np.uint64(63) == np.uint64(0):
        digits = digits << ONE
        zeros += 1
    high, low = high_product(digits, FIVES[power - LEAST, 0]), digits * FIVES[power - LEAST, 0]
    if high & NINE_BITS == NINE_BITS:  # too near to a boundary for 64 bits of the power: the other 64
        more = high_product(digits, FIVES[power - LEAST, 1])
        low = low + more
        if low < more:
            high = high + ONE
    if low == ALL and not -27 <= power <= 55:
        return np.nan
    upper = np.int64(high >> np.uint64(63))
    mantissa = high >> np.uint64(upper + 9)
    exponent = ((217706 * power) >> 16) + 63 + upper - zeros + 1023
    if exponent <= 0:  # subnormal
        if exponent < -62:
            return 0.0
        mantissa = mantissa >> np.uint64(1 - exponent)
        return math.ldexp(float((mantissa + (mantissa & ONE)) >> ONE), -1074)
    if low <= ONE and -4 <= power <= 23 and mantissa & np.uint64(3) == ONE and mantissa << np.uint64(upper + 9) == high:
        mantissa = mantissa - ONE  # half-way between two floats: to the even one
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    if exponent > 2046 or (exponent == 2046 and mantissa >= np.uint64(2**53)):
        return np.inf
    return math.ldexp(float(mantissa), int(exponent - 1075))
