"""`frugal datasets`: push, list, show, price and delete a server's tables."""

import argparse

from frugal.models.costs import CostModel
from frugal.service.client import Json
from frugal.service.commands.remote.connecting import connected, listed, said, table, warn_of
from frugal.service.commands.remote.connecting import when as at
from frugal.service.training.pricing import from_model

FEW = 6  # categories that a line shows


def push(options: argparse.Namespace) -> str:
    costs = prices(options.costs)
    with connected(options) as client:
        stored = client.push_dataset(
            options.name, options.file, costs, drop=options.drop or (), numeric=options.numeric or (), missing=options.missing or ()
        )
    warn_of(stored.get("warnings", []))
    size = f"{stored['rows']:,} rows of {len(stored['columns']):,} columns"
    return said(
        options, stored, f"stored {stored['name']}, {size}: train with frugal jobs submit --dataset {stored['name']} --label COLUMN"
    )


def listing(options: argparse.Namespace) -> str:
    with connected(options) as client:
        found = list(client.datasets())
    rows = [(d["name"], f"{d['rows']:,}", f"{d['columns']:,}", f"{d['bytes']:,}", d["owner"], at(d["created_at"])) for d in found]
    empty = "no data sets yet: store one with frugal datasets push NAME FILE"
    return listed(options, found, ("name", "rows", "columns", "bytes", "owner", "stored"), rows, empty)


def show(options: argparse.Namespace) -> str:
    with connected(options) as client:
        found = client.dataset(options.name)
    warn_of(found.get("warnings", []))
    heads = ("column", "kind", "missing", "distinct", "values", "cost", "in group", "group")
    return said(options, found, table([heads, *(_column_row(column) for column in found["columns"])]))


def price(options: argparse.Namespace) -> str:
    costs = prices(options.file) or {}
    with connected(options) as client:
        found = client.set_costs(options.name, costs)
    warn_of(found.get("warnings", []))
    return said(options, found, f"{options.name} has these prices for the jobs that come; those that are submitted keep theirs")


def delete(options: argparse.Namespace) -> str:
    with connected(options) as client:
        client.delete_dataset(options.name)
    return said(options, {"name": options.name, "deleted": True}, f"deleted {options.name}; models that were trained on it stay")


def prices(file: str | None) -> dict[str, Json] | None:
    """A price list as the server takes it."""
    return None if file is None else from_model(CostModel.from_csv(file))


def _column_row(column: Json) -> tuple[str, ...]:
    distinct = "many" if column["distinct"] is None else f"{column['distinct']:,}"
    inside = "" if column["cost_in_group"] is None else f"{column['cost_in_group']:,.2f}"
    about = column["name"], column["kind"], f"{column['missing']:,}", distinct, _values(column)
    cost = "never" if column["cost"] is None else f"{column['cost']:,.2f}"
    return (*about, cost, inside, column["group"] or "")


def _values(column: Json) -> str:
    """The range of numbers, or the first of the categories."""
    if column["kind"] == "numeric":
        return "" if column["low"] is None else f"{column['low']:g} to {column['high']:g}"
    words = column["categories"] or []
    return " ".join(words[:FEW]) + (" ..." if len(words) > FEW else "")
