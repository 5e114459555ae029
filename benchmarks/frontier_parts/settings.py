"""What is measured: tables, each with a price list. "magic:rand" is the table magic with drawn prices."""

import csv
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from frugal.models import CostModel, Price

FILES = {  # where the table's file has another name, and where it comes with a test file of its own
    "adult": ("adult_train", "adult_test"),
    "bank": ("bank_marketing",),
    "default": ("default_credit",),
    "heart": ("heart_cleveland",),
    "phishing": ("phishing_websites",),
    "thyroid": ("thyroid_train", "thyroid_test"),
}
CHEAP, DEAR = 1, 50  # prices of the list that a person picks features from


class Setting(NamedTuple):
    """A table and its price list: one (all 1), rand (1 to 10), turney (real ones, with groups) or fifty (a third costs 50, the rest 1)."""

    table: str
    costs: str

    @classmethod
    def of(cls, name: str) -> "Setting":
        """From "table:costs"; the file's name will do for the table's."""
        table, _, costs = name.partition(":")
        return cls(next((short for short, files in FILES.items() if files[0] == table), table), costs)

    def __str__(self) -> str:
        return f"{self.table}:{self.costs}"

    @property
    def files(self) -> tuple[str, ...]:
        return FILES.get(self.table, (self.table,))

    def prices(self, names: list[str], folder: Path) -> CostModel:
        """The price of each of these features. Drawn ones depend on the file's name alone."""
        if self.costs == "turney":
            return CostModel(turney(folder, self.files[0].removesuffix("_train"), names))
        draw = np.random.default_rng(zlib.crc32(self.files[0].encode()))
        if self.costs == "rand":
            amounts = draw.integers(1, 11, len(names)).tolist()
        elif self.costs == "fifty":
            amounts = np.where(draw.permutation(len(names)) < len(names) // 3, DEAR, CHEAP).tolist()
        else:
            amounts = [1] * len(names)
        return CostModel(Price(name, amount) for name, amount in zip(names, amounts, strict=True))


def turney(folder: Path, dataset: str, names: list[str]) -> list[Price]:
    """His prices, without the days that some results take: rows are served whole here."""
    with (folder / "turney_costs.csv").open(newline="") as file:
        lines = {line["feature"]: line for line in csv.DictReader(file) if line["dataset"] == dataset}
    return [_price(lines[name]) for name in names]


def _price(line: dict[str, str]) -> Price:
    group = line["group"] or None
    return Price(line["feature"], float(line["cost"]), group, float(line["cost_in_group"]) if group else None)


TABLES = {
    "one": ("magic", "shoppers", "spambase"),
    "rand": (
        *("adult", "bank", "default", "electricity", "magic", "nursery", "phishing", "phoneme", "shoppers", "spambase", "splice"),
        *("musk", "krk", "obesity", "covertype"),
    ),
    "turney": ("bupa", "heart", "hepatitis", "pima", "thyroid"),
}
SETTINGS = sorted(Setting(table, costs) for costs, tables in TABLES.items() for table in tables)
BY_HAND = [Setting(table, "fifty") for table in ("default", "bank", "adult", "heart", "magic", "shoppers", "spambase")]
