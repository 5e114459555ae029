"""Prices as the wire has them: a number, or an object with group, delay and words. Missing ones are 1."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from frugal.models.costs import CostModel, Price, shown
from frugal.models.naming import meant, quoted
from frugal.service.errors import InvalidRequest

Costs = Mapping[str, Mapping[str, Any]]


def checked_costs(costs: Costs, columns: Iterable[str], where: str = "costs") -> dict[str, dict[str, Any]]:
    """Prices of some of these columns, judged; InvalidRequest says which are not there, by their place, and what may be meant."""
    known = list(columns)
    there = set(known)
    strangers = [(number, name) for number, name in enumerate(costs, 1) if name not in there]
    if strangers:
        unpriced = [name for name in known if name not in costs]
        places = ", ".join(f"{where}.#{number}{meant(name, unpriced)}" for number, name in strangers[:12])
        more = ", ..." if len(strangers) > 12 else ""
        raise InvalidRequest(f"{places}{more}: the data set has no column of this name; it has {listed(known)}.")
    try:
        CostModel([Price(name, **price) for name, price in costs.items()])
    except ValueError as error:
        raise InvalidRequest(f"{where}: {error}") from None
    return {name: dict(price) for name, price in costs.items()}


def listed(names: Sequence[str]) -> str:
    """The names of columns as a message can hold them."""
    return ", ".join(map(shown, names[:40])) + (", ..." if len(names) > 40 else "")


def unpriced_columns(costs: Costs, columns: Iterable[str]) -> list[str]:
    """What is told of prices that name some columns and not others: one that they leave out may be the label, which needs none."""
    unpriced = [name for name in columns if name not in costs]
    return [f"no price for {quoted(unpriced)}: each costs 1, but the label, which needs none"] if costs and len(unpriced) > 1 else []


def cost_model(costs: Costs, features: Iterable[str]) -> CostModel:
    """The price of every feature: as given, or 1."""
    return CostModel([Price(name, **costs.get(name, {"cost": 1.0})) for name in features])


def from_model(costs: CostModel) -> dict[str, dict[str, Any]]:
    """The wire's form of a price list: what is said of each feature, and nothing that is not."""
    return {
        price.feature: {name: value for name, value in asdict(price).items() if name != "feature" and value not in (None, False)}
        | {"cost": price.cost}
        for price in costs.prices
    }
