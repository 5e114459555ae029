"""CSV by pyarrow with our types: the way that our own reader is measured against."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

BLOCK = 1 << 20


def read(path: str) -> dict[str, list[Any]]:
    """Two passes, each as a stream: what a column is, is known when its last cell is; then the columns in those types, block by block, each
    block of numbers in as few bytes as it needs."""
    kinds = {name: pa.float64() if numeric else pa.dictionary(pa.int32(), pa.string()) for name, numeric in _kinds(path).items()}
    found: dict[str, list[Any]] = {name: [] for name in kinds}
    typed = csv.ConvertOptions(column_types=kinds, **CELLS)
    with csv.open_csv(path, csv.ReadOptions(block_size=BLOCK), PARSE, typed) as batches:
        for batch in batches:
            for name, column in zip(found, batch.columns, strict=True):
                found[name].append(_small(column) if kinds[name] == pa.float64() else column)
    return found


def _small(column: pa.Array) -> Any:
    """Numbers as the smallest whole numbers that hold them, if they are such and none is missing."""
    numbers = column.to_numpy(zero_copy_only=False)
    low, high = numbers.min(), numbers.max()
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            whole = numbers.astype(kind)
            return whole if (whole == numbers).all() else numbers
    return numbers


PARSE = csv.ParseOptions(newlines_in_values=True)
CELLS: dict[str, Any] = {"null_values": [""], "strings_can_be_null": True}


def _kinds(path: str) -> dict[str, bool]:
    with csv.open_csv(path, csv.ReadOptions(block_size=BLOCK)) as begin:
        names = begin.schema.names
    texts = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), **CELLS)
    numeric = dict.fromkeys(names, True)
    with csv.open_csv(path, csv.ReadOptions(block_size=BLOCK), PARSE, texts) as batches:
        for batch in batches:
            for name in names:
                if numeric[name]:
                    numeric[name] = _are_numbers(batch.column(name))
    return numeric


def _are_numbers(cells: pa.Array) -> bool:
    try:
        pc.cast(cells, pa.float64())
        return True
    except pa.ArrowInvalid:
        return False


def shown(found: Any) -> list[str]:
    """The first cells of each column."""
    if isinstance(found, dict):
        return [str(blocks[0].tolist()[:3]) for blocks in found.values()]
    if isinstance(found, pa.Table):
        return [str(column.slice(0, 3).to_pylist()) for column in found.columns]
    return [str(found[name].to_list()[:3]) for name in found.columns]
