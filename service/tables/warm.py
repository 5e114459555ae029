"""The kernels of reading, run once on something tiny: see frugal.models.warm."""

import numpy as np

from frugal.service.tables.kernels import parsing


def read_tiny() -> None:
    """On arrays of the types that they get."""
    data = np.frombuffer(b"1,x\n", np.uint8)
    values, forms = np.empty((2, 1)), np.empty((2, 1), np.uint8)
    entries, numbers, slots = np.empty((8, 6), np.int64), np.empty(8), np.full(16, -1, np.int64)
    parsing.place_entries(slots, entries, 0)
    parsing.parse_rows(data, 0, 0, 9, np.ones(2, np.uint8), values, forms, slots, entries, numbers, 0)
    counts, span, yes = np.empty((2, 6), np.int64), np.empty(2), np.empty(2, np.bool_)
    parsing.sum_up(values, forms, 1, np.zeros(1, np.int64), counts, span, span.copy(), yes, yes.copy())
    parsing.gather_texts(data, entries[:1], np.ones(1, np.int64), np.empty(4, np.uint8))
    parsing.recode(values[0], forms[0], np.zeros(8, np.int32), np.empty(1, np.int32))
    parsing.row_end(np.frombuffer(bytearray(b"1,x\n"), np.uint8), 0, 0, 0, False)
