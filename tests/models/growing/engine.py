"""The engine and its naive twin side by side, on one table of dicts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from frugal.models import CostModel, Feature, Schema
from frugal.models.growing.binning import Binning
from frugal.models.growing.grower import ANYWHERE, Grower
from frugal.models.growing.targets import constant
from frugal.models.kernels.marks import BIN, CUT, ENDS, EVERY_CATEGORY, ONE_CATEGORY, SOME_CATEGORIES

FORMS = {"cut": CUT, "bin": BIN, "one": ONE_CATEGORY, "some": SOME_CATEGORIES, "every": EVERY_CATEGORY}
OF_CATEGORIES = ("one", "some", "every")


@dataclass
class Case:
    """A table with what may be asked of its columns: "cut", "bin", "one", "some" or "every"."""

    rows: list[dict[str, Any]]
    forms: dict[str, str]

    def __post_init__(self) -> None:
        self.bins = {name: sorted({row[name] for row in self.rows if row[name] is not None}) for name in self.forms}
        words = {name: tuple(bins) if self.forms[name] in OF_CATEGORIES else () for name, bins in self.bins.items()}
        self.schema = Schema(Feature(name, "categorical", words[name]) if words[name] else Feature(name) for name in self.forms)
        self.codes = np.array([[self._code(row, name) for name in self.forms] for row in self.rows]).reshape(len(self.rows), -1)
        self.binning = Binning.of(self.codes, self.schema)
        table = self.binning.apply(self.codes, self.schema)
        self.binned = table._replace(form=np.array([FORMS[form] for form in self.forms.values()], np.uint8))
        self.classes = np.array([row.get("class", 0) for row in self.rows], np.int32)
        self.weights = np.array([row.get("weight", 1) for row in self.rows], float)
        self.features = {name: (form, self.bins[name]) for name, form in self.forms.items()}

    def _code(self, row: dict[str, Any], name: str) -> float:
        if row[name] is None:
            return np.nan
        return self.bins[name].index(row[name]) if self.forms[name] in OF_CATEGORIES else row[name]

    def grower(self, target: Any, rule: Any, context: Any = None, limits: Any = ANYWHERE, **settings: Any) -> Grower:
        context = context or constant(CostModel.of(None, self.schema.names))
        return Grower(self.binned, self.binning, target, rule, context, self.weights, 0, limits, bootstrap=False, **settings)

    def nested(self, tree: Any, sums: int) -> Any:
        """A grown tree in the twin's form."""
        tables, start = {}, 0
        for i in np.flatnonzero(tree.kind == EVERY_CATEGORY):
            size = len(self.schema.features[tree.feature[i]].categories)
            tables[int(i)] = tree.outcomes[start : start + size]
            start += size
        lows = iter(tree.low)
        low_of = {int(i): next(lows) for i in np.flatnonzero(tree.kind == BIN)}

        def below(i: int) -> Any:
            values = [0.0] * sums
            for k in range(tree.value_start[i], tree.value_start[i + 1]):
                values[tree.value_class[k]] = float(tree.values[k])
            if tree.feature[i] < 0:
                return values
            name = self.schema.names[tree.feature[i]]
            asks, many = self._asks(tree, i, name, tables, low_of)
            way = None if tree.missing[i] == ENDS else int(tree.missing[i])
            many = max(many, -1 if way is None else way + 1)
            return (name, asks, values, way, [below(int(tree.first_child[i]) + k) for k in range(many)])

        return below(0)

    def _asks(self, tree: Any, i: int, name: str, tables: Any, low_of: Any) -> tuple[Any, int]:
        bins = self.bins[name]
        if self.forms[name] == "some":
            return tuple(b for b, outcome in zip(bins, tables[i], strict=True) if outcome == 0), 2
        if tree.kind[i] == EVERY_CATEGORY:
            seen = [b for b, outcome in zip(bins, tables[i], strict=True) if outcome >= 0]
            return tuple(seen), len(seen)
        if tree.kind[i] == ONE_CATEGORY:
            return bins[int(tree.threshold[i])], 2
        inside = [b for b in bins if low_of.get(i, -np.inf) < b <= tree.threshold[i]]
        if self.forms[name] == "bin":
            assert len(inside) == 1
        return inside[-1], 2
