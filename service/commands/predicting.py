"""`frugal predict`: label, probabilities, cost and features bought of every row of a table, as CSV."""

import argparse
import csv
import io
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TextIO

import numpy as np

from frugal.models import Acquisition, Ensemble, acquire, load
from frugal.models.naming import quoted
from frugal.models.schema import CATEGORICAL, NUMERIC, Feature
from frugal.models.table import read_table
from frugal.service.commands.interview import check_aim
from frugal.service.commands.local import check_writable
from frugal.service.tables import Choices, Column, Columns, read_file
from frugal.service.tables.reader import LOCAL
from frugal.service.tables.remarks import told

LIMITS = replace(LOCAL, categories=2**31 - 1, words=2**36)  # ids differ from row to row


def predict(options: argparse.Namespace) -> str:
    """Print the predictions, or write them to a file."""
    ensemble = load(options.model)
    check_aim(ensemble, options)
    check_writable(options.out)
    heads = _heads(ensemble, options.id)
    wanted = [feature for feature in ensemble.schema.features if feature.name in ensemble.used]
    table = _read(options, wanted)
    for text in [*told(table.remarks), *_unknown_words(table, wanted)]:
        warnings.warn(text, stacklevel=1)
    ids = range(len(table)) if options.id is None else _ids(options, table, wanted)
    codes = read_table(_whole(table, ensemble), schema=ensemble.schema).codes
    found = acquire(ensemble, codes, options.budget, aim=options.aim, confidence=options.confidence)
    if options.out is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as in a file: what programs read does not depend on the terminal
        _write(sys.stdout, heads, ensemble, ids, found)
        return ""
    with open(options.out, "w", encoding="utf-8", newline="") as file:
        _write(file, heads, ensemble, ids, found)
    return f"{len(table):,} rows written to {options.out}"


def _heads(ensemble: Ensemble, id: str | None) -> list[str]:
    rest = ["label", *(f"p_{label}" for label in ensemble.classes), "cost", "features"]
    if id in rest:
        raise ValueError(f"--id {id}: the output has a column of this name already: rename it in the table")
    return [id or "row", *rest]


def _read(options: argparse.Namespace, wanted: Sequence[Feature]) -> Columns:
    """The columns that trees ask for, as what they were in training, and the id as it is written."""
    names = [feature.name for feature in wanted]
    kinds = {feature.name: kind for feature in wanted if (kind := _kind(feature))}
    if options.id is not None:
        names, kinds = [*names, options.id], {options.id: CATEGORICAL} | kinds
    copied = () if options.id is None else (options.id,)
    return read_file(options.data, LIMITS, Choices(missing=options.missing or (), only=names or None, kinds=kinds, copied=copied))


def _kind(feature: Feature) -> str | None:
    """How a column is read; categories that are numbers are found by their value."""
    if feature.kind == NUMERIC:
        return NUMERIC
    return CATEGORICAL if all(isinstance(category, str) for category in feature.categories) else None


def _ids(options: argparse.Namespace, table: Columns, wanted: Sequence[Feature]) -> Sequence[Any]:
    if any(feature.name == options.id for feature in wanted):  # read as the model wants it: once more, as it is written
        table = read_file(options.data, LIMITS, Choices(only=[options.id], kinds={options.id: CATEGORICAL}))
    return table[options.id].tolist()


def _unknown_words(table: Columns, wanted: Sequence[Feature]) -> list[str]:
    """Words that training never saw count as missing: somebody may want to know."""
    said = []
    for feature in wanted:
        column = table[feature.name]
        strange = np.array([word not in feature.categories for word in column.categories] + [False])
        if feature.kind == CATEGORICAL and strange.any():
            words = [word for word, is_strange in zip(column.categories, strange, strict=False) if is_strange]
            cells = int(strange[column.values].sum())
            many = "1 cell has a word" if cells == 1 else f"{cells:,} cells have words"
            said.append(f"{feature.name!r}: {many} that the model does not know, taken as missing: {quoted(words, 6)}")
    return said


def _whole(table: Columns, ensemble: Ensemble) -> Columns:
    """All of the model's columns: what no tree asks for is missing."""
    rows = len(table)
    nothing = np.full(rows, -1, np.int8)
    return Columns.of(
        [
            table[feature.name]
            if feature.name in ensemble.used
            else Column(feature.name, CATEGORICAL, nothing, (), rows)
            if feature.kind == CATEGORICAL
            else Column(feature.name, NUMERIC, np.full(rows, np.nan, np.float32), (), rows)
            for feature in ensemble.schema.features
        ]
    )


def _write(stream: TextIO, heads: Sequence[str], ensemble: Ensemble, ids: Sequence[Any], found: Acquisition) -> None:
    names = np.array(ensemble.schema.names, object)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heads)
    rows = zip(ids, found.labels.tolist(), found.probabilities.tolist(), found.cost.tolist(), found.acquired, strict=True)
    for id, label, chances, cost, acquired in rows:
        writer.writerow([id, label, *map(_decimal, chances), _decimal(cost), " ".join(names[acquired])])


def _decimal(number: float) -> str:
    """At most six decimals.

    Examples
    --------
    >>> [_decimal(number) for number in (102.9, 2.0, 1 / 3, 0.0)]
    ['102.9', '2', '0.333333', '0']
    """
    return f"{number:.6f}".rstrip("0").rstrip(".")
