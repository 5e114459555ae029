"""Feature, Schema: names, kinds, categories, units, questions; raw values to codes and back.

A code is a float: the number itself, the position of a category, or nan where the value is missing or unavailable.
"""

import math
import numbers
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import LONGEST_NAME, LONGEST_TEXT, CostModel, check_length, check_name, is_text, is_word, shown
from frugal.models.kernels.serving.checking import first_wrong_code

Value = float | int | str | bool | None
NUMERIC: Literal["numeric"] = "numeric"
CATEGORICAL: Literal["categorical"] = "categorical"


@dataclass(frozen=True, slots=True)
class Feature:
    """One fact about a case that can be asked for."""

    name: str
    kind: Literal["numeric", "categorical"] = NUMERIC
    categories: tuple[Any, ...] = ()
    unit: str | None = None
    question: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if isinstance(self.categories, str):
            raise ValueError(f"the categories of {self.name!r} are {shown(self.categories)}: expected a sequence of them")
        object.__setattr__(self, "categories", tuple(c.item() if isinstance(c, np.generic) else c for c in self.categories))
        if self.kind not in (NUMERIC, CATEGORICAL):
            raise ValueError(f"{self.name!r} has kind {self.kind!r}: expected 'numeric' or 'categorical'")
        if self.kind == NUMERIC and self.categories:
            raise ValueError(f"{self.name!r} is numeric but has categories: leave them out or make it categorical")
        for what, text in (("unit", self.unit), ("question", self.question)):
            if text is not None and not (isinstance(text, str) and is_text(text)):
                raise ValueError(f"the {what} of {self.name!r} is {shown(text)}: expected text or None")
            check_length(text, f"the {what} of {self.name!r}", LONGEST_TEXT)
        self._check_categories()

    def _check_categories(self) -> None:
        if self.kind == CATEGORICAL and not self.categories:
            raise ValueError(f"{self.name!r} is categorical: name its categories")
        for category in self.categories:
            if not isinstance(category, (str, bool, int, float)) or not _finite(category) or not is_word(str(category)):
                raise ValueError(
                    f"{self.name!r} has the category {shown(category)}: expected text of at most {LONGEST_NAME} characters, "
                    "a number, true or false"
                )
        if len(set(self.categories)) < len(self.categories):
            repeated = next(c for c, times in Counter(self.categories).items() if times > 1)
            raise ValueError(f"{self.name!r} has the category {repeated!r} more than once")

    def expects(self) -> str:
        """What a value must be, in words."""
        if self.kind == NUMERIC:
            return "a finite number" + (f" ({self.unit})" if self.unit else "")
        shown = ", ".join(repr(category) for category in self.categories[:12])
        return f"one of {shown}" + (f", ... ({len(self.categories):,} in all)" if len(self.categories) > 12 else "")


class WrongValueError(ValueError):
    """A value that a feature does not take. `feature` says what it would, for whoever must not repeat the value."""

    def __init__(self, message: str, feature: Feature) -> None:
        super().__init__(message)
        self.feature = feature
        self.row: int | None = None


class UnknownFeatureError(ValueError):
    """A name that no feature has. `row` says where, for whoever must not repeat the name."""

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row


class Schema:
    """The features of a table, in order.

    Examples
    --------
    >>> schema = Schema([Feature("age", unit="years"), Feature("sex", "categorical", ("female", "male"))])
    >>> schema.encode("sex", "male")
    1.0
    >>> schema.decode("sex", 1.0)
    'male'
    >>> schema.encode("sex", "m")
    Traceback (most recent call last):
    frugal.models.schema.WrongValueError: 'sex' is 'm': expected one of 'female', 'male'
    """

    def __init__(self, features: Iterable[Feature]) -> None:
        self.features = tuple(features)
        self.names = tuple(feature.name for feature in self.features)
        self.index = {name: i for i, name in enumerate(self.names)}
        if len(self.index) < len(self.names):
            repeated = next(name for i, name in enumerate(self.names) if self.index[name] != i)
            raise ValueError(f"the feature {repeated!r} is there more than once")
        self.arity = np.array([len(feature.categories) for feature in self.features], np.int32)
        self._codes = tuple(
            {category: float(code) for code, category in enumerate(feature.categories)} if feature.kind == CATEGORICAL else None
            for feature in self.features
        )

    def __getitem__(self, name: str) -> Feature:
        return self.features[self.position(name)]

    def __len__(self) -> int:
        return len(self.features)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.features == other.features

    def __hash__(self) -> int:
        return hash(self.features)

    def __repr__(self) -> str:
        return f"Schema({', '.join(self.names[:6])}{', ...' if len(self) > 6 else ''})"

    def position(self, name: str) -> int:
        try:
            return self.index[name]
        except (KeyError, TypeError):
            raise UnknownFeatureError(self._no_feature(name)) from None

    def _no_feature(self, name: object) -> str:
        known = ", ".join(repr(known) for known in self.names[:12]) + (f", ... ({len(self):,} in all)" if len(self) > 12 else "")
        return f"no feature {shown(name)}: the features are {known or 'none'}"

    def described_by(self, costs: CostModel) -> "Schema":
        """The same features with the units and questions of a price list where it has them."""
        return Schema(
            replace(
                feature,
                unit=costs[feature.name].unit or feature.unit,
                question=costs[feature.name].question or feature.question,
            )
            for feature in self.features
        )

    def encode(self, name: str, value: Value) -> float:
        """The code of one raw value; None is missing."""
        return self.code(self.position(name), value)

    def code(self, i: int, value: Value) -> float:
        """The code of a raw value of feature i."""
        if value is None:
            return math.nan
        codes = self._codes[i]
        if codes is None:
            number = float(value) if type(value) is float or (type(value) is int and -(2**63) < value < 2**63) else _number(value)
            if -math.inf < number < math.inf:
                return number
        else:
            try:
                known = codes[value]
                if (value.__class__ is bool) == (self.features[i].categories[int(known)].__class__ is bool):
                    return known  # true equals 1, but is another word
            except (KeyError, TypeError):
                pass
        feature = self.features[i]
        raise WrongValueError(f"{feature.name!r} is {shown(value)}: expected {feature.expects()}", feature)

    def decode(self, name: str, code: float) -> Value:
        """The raw value of a code; nan is None."""
        feature = self[name]
        if code != code:
            return None
        if feature.kind == NUMERIC:
            return float(code)
        if code != int(code) or not 0 <= code < len(feature.categories):
            raise ValueError(f"{name!r} has no category with the code {code}: codes go from 0 to {len(feature.categories) - 1}")
        return feature.categories[int(code)]  # type: ignore[no-any-return]

    def encode_rows(self, rows: Sequence[Mapping[str, Value]], only: Collection[str] | None = None) -> NDArray[np.float64]:
        """Rows of raw values by name as a matrix of codes; what a row leaves out is missing. `only` these features are looked at."""
        table = np.full((len(rows), len(self)), np.nan)
        known = self.index.keys()
        for r, row in enumerate(rows):
            if not row.keys() <= known:
                name = next(name for name in row if name not in known)
                raise UnknownFeatureError(f"row {r}: {self._no_feature(name)}", r)
        for i, name in enumerate(self.names):
            if only is None or name in only:
                self._encode_column(i, [row.get(name) for row in rows], table[:, i])
        return table

    def _encode_column(self, i: int, values: list[Value], column: NDArray[np.float64]) -> None:
        """Whole columns of plain numbers or of text at once, which is six times as fast; all else one by one."""
        kinds, codes = set(map(type, values)), self._codes[i]
        if codes is None and kinds <= {float, int, type(None)}:
            with suppress(OverflowError):  # whole numbers of hundreds of digits
                column[:] = values
                if not np.isinf(column).any() and np.isnan(column).sum() == values.count(None):
                    return
        elif codes is not None and kinds <= {str, type(None)}:
            column[:] = [codes.get(value, -1.0) if value is not None else math.nan for value in values]
            if not (column < 0).any():
                return
        for r, value in enumerate(values):
            try:
                column[r] = self.code(i, value)
            except WrongValueError as error:
                told = WrongValueError(f"row {r}: {error}", error.feature)
                told.row = r
                raise told from None

    def check_codes(self, table: NDArray[np.float64]) -> None:
        """Refuse a matrix of codes of the wrong width, with infinities, or with codes that stand for no category."""
        if table.ndim != 2 or table.shape[1] != len(self):
            raise ValueError(f"expected a table with {len(self)} columns, got one of shape {table.shape}")
        r, i = first_wrong_code(table, self.arity)
        if r >= 0:
            feature = self.features[i]
            what = "a finite number" if feature.kind == NUMERIC else f"a code from 0 to {len(feature.categories) - 1}"
            raise ValueError(f"row {r}, {feature.name!r} is {table[r, i]}: expected {what}, or nan for missing")


def _number(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _finite(category: str | float) -> bool:
    return isinstance(category, str) or -math.inf < category < math.inf
