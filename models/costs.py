"""CostModel: the price of a feature, given what is already bought.

Money is exact: inside, a whole number of millionths; outside, a number with at most six decimals. Python callers' numbers are rounded to
that, so 0.1 + 0.2 is 0.3.
"""

import csv
import io
import math
import numbers
import os
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from frugal.models.kernels import pricing
from frugal.models.kernels.compiling import as_python
from frugal.models.kernels.pricing import Prices
from frugal.models.naming import meant, quoted

MILLION = 1_000_000
DEAREST = 1_000_000_000  # what one feature may cost
NEVER = 2**61  # millionths: the price of what is never to be bought
MOST = 8_000_000_000  # what a budget or all features together may come to: up to here a float tells any two millionths apart
LONGEST_NAME = 200  # characters of the name of a feature, group, category or class
LONGEST_TEXT = 1000  # characters of a unit or a question
COLUMNS = ("feature", "cost", "group", "cost_in_group", "delayed", "unit", "question")
UNSOLD = "never"  # a cost in a price list: this is not to be bought
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|nan|inf", re.IGNORECASE)
MOST_STRANGERS = 12  # priced names without a column that are named one by one
TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


def millionths(amount: float, what: str, most: int = MOST) -> int:
    """An amount of money as a whole number of millionths; ValueError names `what` is wrong."""
    if isinstance(amount, (bool, np.bool_)) or not isinstance(amount, numbers.Real):
        raise ValueError(f"{what} is {shown(amount)}: expected a number of at least 0")
    try:
        value = float(amount)
    except OverflowError:
        value = math.inf
    if math.isnan(value) or not 0 <= value <= most:
        raise ValueError(f"{what} is {shown(amount)}: expected a number from 0 to {most:,}")
    return round(value * MILLION) if value < DEAREST else round(Fraction(value) * MILLION)


def shown(value: object, most: int = 80) -> str:
    """A value as a message can hold it."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**most else "a number of many digits"
    return text if len(text) <= most else text[:most] + "..."


def is_text(text: str) -> bool:
    """Whether text can be written as UTF-8: lone surrogates cannot."""
    try:
        text.encode()
        return True
    except UnicodeEncodeError:
        return False


def money(amount: int) -> float:
    """Millionths as the number that people and the wire see."""
    return int(amount) / MILLION


def check_name(name: object) -> None:
    """A feature's name: text that survives being written to a table and read again, and that can be shown."""
    if not isinstance(name, str) or not name or name != name.strip() or not is_text(name) or not name.isprintable():
        raise ValueError(f"feature {shown(name)}: expected a name, printable and without blanks around it")
    check_length(name, f"the name of feature {shown(name)}", LONGEST_NAME)


def is_word(word: str) -> bool:
    """Whether text can be a category or a class: written, shown, and sent as an answer."""
    return len(word) <= LONGEST_NAME and is_text(word) and "\x00" not in word


def check_length(text: str | None, what: str, most: int) -> None:
    """Refuse text that is too long to be shown."""
    if text is not None and len(text) > most:
        raise ValueError(f"{what} has {len(text):,} characters: at most {most:,} are possible")


@dataclass(frozen=True, slots=True)
class Price:
    """One line of a price list: a feature, its cost, and how it is asked for."""

    feature: str
    cost: float | None  # None: never to be bought
    group: str | None = None
    cost_in_group: float | None = None  # once another feature of the group is bought; None: no discount
    delayed: bool = False
    unit: str | None = None
    question: str | None = None

    def __post_init__(self) -> None:
        check_name(self.feature)
        for name in ("group", "unit", "question"):
            text = getattr(self, name)
            if text is not None and (not isinstance(text, str) or not text.strip() or not is_text(text)):
                raise ValueError(f"the {name} of {self.feature!r} is {shown(text)}: expected text or None")
            check_length(text, f"the {name} of {self.feature!r}", LONGEST_NAME if name == "group" else LONGEST_TEXT)
            object.__setattr__(self, name, text and text.strip())
        if not isinstance(self.delayed, bool):
            raise ValueError(f"delayed of {self.feature!r} is {self.delayed!r}: expected True or False")
        if self.cost is not None:
            object.__setattr__(self, "cost", money(millionths(self.cost, f"the cost of {self.feature!r}", DEAREST)))
        elif self.cost_in_group is not None:
            raise ValueError(f"{self.feature!r} has a cost_in_group but no cost: what is never to be bought has neither")
        if self.cost_in_group is None:
            return
        if self.group is None:
            raise ValueError(f"{self.feature!r} has a cost_in_group but no group: name the group or leave both empty")
        exact = money(millionths(self.cost_in_group, f"the cost_in_group of {self.feature!r}", DEAREST))
        object.__setattr__(self, "cost_in_group", exact)


class CostModel:
    """What each feature costs, with groups whose later members cost less once one is bought.

    Examples
    --------
    >>> costs = CostModel([Price("age", 1), Price("sugar", 5.20, "blood", 3.10), Price("cholesterol", 7.27, "blood", 5.17)])
    >>> costs.marginal("sugar", bought=[])
    5.2
    >>> costs.marginal("sugar", bought=["cholesterol"])
    3.1
    >>> costs.marginal("sugar", bought=["sugar"])
    0.0
    >>> costs.total(["cholesterol", "sugar"])
    10.37
    """

    def __init__(self, prices: Iterable[Price]) -> None:
        self.prices = tuple(prices)
        self.features = tuple(price.feature for price in self.prices)
        repeated = [name for name, times in Counter(self.features).items() if times > 1]
        if repeated:
            raise ValueError(f"priced more than once: {quoted(repeated)}")
        self.index = {name: i for i, name in enumerate(self.features)}
        self.groups = tuple(dict.fromkeys(price.group for price in self.prices if price.group is not None))
        self.delayed = frozenset(price.feature for price in self.prices if price.delayed)
        self.served = self._served()
        self._listed = self.served._replace(**{name: getattr(self.served, name).tolist() for name in ("cost", "cost_in_group", "group")})

    @classmethod
    def of(cls, costs: "CostModel | Mapping[str, float] | Sequence[float] | None", features: Sequence[str]) -> "CostModel":
        """The prices of these features, in their order: from a model, a mapping by name, a sequence, or None for 1 each.

        What a model or a mapping does not name costs 1, with a warning.
        """
        if costs is None:
            return cls(Price(name, 1.0) for name in features)
        if isinstance(costs, (CostModel, Mapping)):
            priced = costs.index if isinstance(costs, CostModel) else costs
            for gap in price_gaps(priced, features):
                warnings.warn(gap, stacklevel=2)
            return cls(_given_price(costs, name) if name in priced else Price(name, 1.0) for name in features)
        given = list(costs)
        if len(given) != len(features):
            raise ValueError(f"{len(given)} costs for {len(features)} features: give one cost per feature")
        return cls(Price(name, cost) for name, cost in zip(features, given, strict=True))

    def arranged(self, features: Sequence[str]) -> "CostModel":
        """The same prices in this order; ValueError unless they are those of exactly these features."""
        lacking = [name for name in features if name not in self.index]
        if lacking:
            raise ValueError(f"no cost for {quoted(lacking)}: price every feature")
        wanted = set(features)
        unknown = [name for name in self.features if name not in wanted]
        if unknown:
            raise ValueError(f"costs for {quoted(unknown)}, which the data does not have: its features are {quoted(features)}")
        return CostModel(self[name] for name in features)

    def __getitem__(self, feature: str) -> Price:
        return self.prices[self._position(feature)]

    def __len__(self) -> int:
        return len(self.prices)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CostModel) and self.prices == other.prices

    def __hash__(self) -> int:
        return hash(self.prices)

    def __repr__(self) -> str:
        return f"CostModel({len(self)} features, {len(self.groups)} groups)"

    def marginal(self, feature: str, bought: Collection[str] = ()) -> float:
        """The price of a feature for someone who has bought these; infinite where it is never to be bought."""
        price = Basket(self, bought).price(feature)
        return math.inf if price == NEVER else money(price)

    def total(self, features: Iterable[str]) -> float:
        """What these features cost together, bought in this order; those that are never to be bought are left out."""
        basket = Basket(self)
        return money(sum(basket.buy(name) for name in features if self[name].cost is not None))

    def _position(self, feature: str) -> int:
        if feature not in self.index:
            raise ValueError(f"no price for {feature!r}: priced are {quoted(self.features)}")
        return self.index[feature]

    def _served(self) -> Prices:
        cost = _column(price.cost for price in self.prices)
        inside = _column(price.cost if price.cost_in_group is None else price.cost_in_group for price in self.prices)
        sold = cost < NEVER
        if money(sum(np.maximum(cost, inside)[sold].tolist())) > MOST:
            raise ValueError(f"the costs of all features together are above {MOST:,}: use a larger unit of money")
        number = {name: g for g, name in enumerate(self.groups)}
        group = np.array([-1 if price.group is None else number[price.group] for price in self.prices], np.int32)
        floor = float(cost[sold].mean()) * 0.01 if sold.any() else 0.0
        discounts = {(g, discount) for g, discount in zip(group[sold].tolist(), (cost - inside)[sold].tolist(), strict=True) if g >= 0}
        order_free = len(discounts) == len({g for g, _ in discounts})
        return Prices(cost, inside, group, len(self.groups), floor, order_free)

    @classmethod
    def from_csv(cls, source: "str | os.PathLike[str] | TextIO") -> "CostModel":
        """Read a price list: a path or an open text file with the columns feature, cost and, if wanted,
        group, cost_in_group, delayed, unit, question."""
        if hasattr(source, "read"):
            return cls(_read_prices(source))
        try:
            with open(source, encoding="utf-8-sig", newline="") as file:
                return cls(_read_prices(file))
        except UnicodeDecodeError as error:
            raise ValueError(f"{source} is not UTF-8 text: {error.reason} at byte {error.start}") from None

    def to_csv(self, target: "str | os.PathLike[str] | TextIO | None" = None) -> str:
        """The price list as CSV text; also written to a path or open file if one is given."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        careful = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for price in self.prices:
            cells = [_cell(getattr(price, column)) if column != "cost" or price.cost is not None else UNSOLD for column in COLUMNS]
            (careful if any("\r" in cell for cell in cells) else writer).writerow(cells)  # the plain one leaves a lone \r unquoted
        if target is not None and hasattr(target, "write"):
            target.write(text.getvalue())
        elif target is not None:
            Path(target).write_text(text.getvalue(), encoding="utf-8", newline="")
        return text.getvalue()


class Basket:
    """What somebody has bought, and so what the next feature costs, in whole millionths: the kernels' rule, one feature at a time.

    Examples
    --------
    >>> basket = Basket(CostModel([Price("sugar", 5.20, "blood", 3.10), Price("cholesterol", 7.27, "blood", 5.17)]))
    >>> basket.buy("sugar"), basket.price("sugar"), basket.price("cholesterol")
    (5200000, 0, 5170000)
    """

    def __init__(self, costs: CostModel, bought: Iterable[str] = ()) -> None:
        self.costs = costs
        self._held = pricing.Basket([False] * len(costs), [False] * len(costs.groups))  # type: ignore[arg-type]  # lists: faster one by one
        for name in bought:
            _buy(costs._listed, self._held, costs._position(name))

    def price(self, feature: str) -> int:
        return int(_marginal(self.costs._listed, self._held, self.costs._position(feature)))

    def buy(self, feature: str) -> int:
        """Buy it; gives what it cost."""
        cost = self.price(feature)
        _buy(self.costs._listed, self._held, self.costs.index[feature])
        return cost


_marginal, _buy = as_python(pricing.marginal), as_python(pricing.buy)


def _column(amounts: Iterable[float | None]) -> NDArray[np.int64]:
    return np.array([NEVER if amount is None else millionths(amount, "a cost") for amount in amounts], np.int64)


def price_gaps(priced: Collection[str], features: Sequence[str]) -> list[str]:
    """What a price list leaves open, a sentence each: features that it does not name, names that are no feature.

    ValueError where it prices none of them: it is another table's.

    Examples
    --------
    >>> for gap in price_gaps(["age", "chol"], ["age", "sex", "cholesterol"]):
    ...     print(gap)
    no price for 'sex', 'cholesterol': each costs 1
    a price for 'chol' (did you mean 'cholesterol'?), which is no column: it is not used
    """
    known, given = set(features), set(priced)
    unpriced = [name for name in features if name not in given]
    strangers = [name for name in priced if name not in known]
    if strangers and len(unpriced) == len(features):
        raise ValueError(f"prices for {quoted(strangers)}, and none of them is a column: the columns are {quoted(features)}")
    gaps = []
    if given and unpriced:
        gaps.append(f"no price for {quoted(unpriced)}: {'it costs' if len(unpriced) == 1 else 'each costs'} 1")
    few = strangers[:MOST_STRANGERS]
    gaps += [f"a price for {shown(name)}{meant(name, unpriced)}, which is no column: it is not used" for name in few]
    if len(strangers) > MOST_STRANGERS:
        gaps.append(f"{len(strangers) - MOST_STRANGERS:,} more prices are for names that are no columns")
    return gaps


def _given_price(costs: "CostModel | Mapping[str, float]", name: str) -> Price:
    return costs[name] if isinstance(costs, CostModel) else Price(name, costs[name])


def _read_prices(file: Any) -> list[Price]:
    reader = csv.reader(file, strict=True)
    try:
        header = [cell.strip().removeprefix("\ufeff") for cell in next(reader, [])]
        _check_header(header)
        return [_read_price(header, cells, reader.line_num) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} of the price list: {error}") from None


def _check_header(header: list[str]) -> None:
    lacking = [column for column in ("feature", "cost") if column not in header]
    if lacking:
        raise ValueError(f"the price list has no column {quoted(lacking)}: its first line must name the columns {', '.join(COLUMNS)}")
    unknown = [column for column in header if column not in COLUMNS]
    if unknown or len(set(header)) < len(header):
        raise ValueError(f"the price list's columns are {quoted(header)}: allowed, once each, are {', '.join(COLUMNS)}")


def _read_price(header: list[str], cells: list[str], line: int) -> Price:
    if len(cells) != len(header):
        raise ValueError(f"line {line} of the price list has {len(cells)} cells, the first line {len(header)}")
    given = {column: cell.strip() for column, cell in zip(header, cells, strict=True)}
    try:
        return Price(
            feature=given["feature"],
            cost=None if given["cost"].lower() == UNSOLD else _number(given["cost"], "cost"),
            group=given.get("group") or None,
            cost_in_group=_number(given["cost_in_group"], "cost_in_group") if given.get("cost_in_group") else None,
            delayed=_truth(given.get("delayed", "")),
            unit=given.get("unit") or None,
            question=given.get("question") or None,
        )
    except ValueError as error:
        raise ValueError(f"line {line} of the price list ({shown(given['feature'])}): {error}") from None


def _number(text: str, what: str) -> float:
    or_never = f", or {UNSOLD}: it is not to be bought" if what == "cost" else ""
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{what} is {shown(text)}: expected a number of at least 0{or_never}")
    return float(text)


def _truth(text: str) -> bool:
    if text.lower() not in TRUTHS:
        raise ValueError(f"delayed is {text!r}: expected true or false")
    return TRUTHS[text.lower()]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
