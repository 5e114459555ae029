"""Tables as people have them (arrays, data frames, with missing values and words) to codes and labels, checked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import shown
from frugal.models.kernels.serving.checking import first_wrong_code
from frugal.models.naming import meant, quoted
from frugal.models.schema import CATEGORICAL, Feature, Schema

FINITE = "expected finite numbers, or nan for missing"
MOST_CLASSES = 256  # that a model tells apart
FEW = 20  # of them are classes in a table of any size
CLASSES = "Frugal predicts classes: group them into a few, such as low and high, or write names as words"
TEXT = ("str", "string")  # data types of pandas that hold words and missing values alone
DATES = {"M": "dates", "m": "durations"}  # by numpy's kinds


@dataclass(frozen=True)
class Table:
    """A table of cases: what its columns are, and their codes."""

    schema: Schema
    codes: NDArray[np.float64]


@dataclass(frozen=True)
class Coded:
    """A column of categories as whole numbers: positions in `categories`, which differ from each other, and -1 where a row has none."""

    categories: tuple[Any, ...]
    codes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        words = np.empty(len(self.categories) + 1, object)  # the last one, None, is what -1 points to
        words[:-1] = self.categories
        return np.asarray(words[self.codes], dtype or object)


def read_table(X: Any, categorical: Any = None, schema: Schema | None = None) -> Table:
    """Codes of a two-dimensional array or data frame.

    Without a schema one is made: columns of words, booleans and categories, and those named in `categorical`, are categorical; the rest are
    numbers. With one, columns are matched to it: by name where X has names, else by position. A category that the schema lacks is missing.
    """
    columns, names = _columns(X)
    if schema is None:
        chosen = _chosen(categorical, names)
        columns = [_coded(column) if i in chosen or _has_words(column) else column for i, column in enumerate(columns)]
        schema = _make_schema(columns, names, chosen)
    elif len(columns) != len(schema):
        raise ValueError(f"the table has {len(columns)} columns: expected the {len(schema)} features that the model was fitted with")
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub" and not schema.arity.any():
        codes = np.array(X, np.float64, order="C")  # one copy instead of one per column
        _check_finite(codes, schema)
        return Table(schema, codes)
    codes = np.empty((len(columns[0]) if columns else 0, len(schema)))
    for i, feature in enumerate(schema.features):
        codes[:, i] = _category_codes(columns[i], feature) if feature.kind == CATEGORICAL else _numbers(columns[i], feature.name)
    return Table(schema, codes)


def column_names(X: Any) -> tuple[str, ...] | None:
    """The names of a data frame's columns, or None for what has none."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return tuple(columns)


def _columns(X: Any) -> tuple[list[NDArray[Any] | Coded], tuple[str, ...]]:
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError("a sparse matrix was passed, but dense data is required: use X.toarray() to convert it")
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        labels = list(X.columns)
        if not labels:
            raise ValueError(f"0 feature(s) (shape={getattr(X, 'shape', ())}) while a minimum of 1 is required.")
        columns = [_series(X[label], label) for label in labels]
        return _some_rows(columns), tuple(str(label) for label in labels)
    table = np.asarray(X)
    if np.iscomplexobj(table):
        raise ValueError(f"Complex data not supported\n{table}\n")
    if table.ndim != 2:
        raise ValueError(f"Expected 2D array, got {table.ndim}D array instead. Reshape your data: one row per case, one column per feature")
    if table.shape[1] == 0:
        raise ValueError(f"0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    return _some_rows([table[:, i] for i in range(table.shape[1])]), tuple(f"x{i}" for i in range(table.shape[1]))


def _some_rows(columns: list[NDArray[Any] | Coded]) -> list[NDArray[Any] | Coded]:
    if not len(columns[0]):
        raise ValueError(f"Found array with 0 sample(s) (shape=(0, {len(columns)})) while a minimum of 1 is required.")
    return columns


def _series(series: Any, name: Any) -> NDArray[Any] | Coded:
    """A data frame's column: words as they are coded, if they are, else as objects; numbers as floats, missing as None or nan."""
    coded = getattr(series, "coded", None)
    if isinstance(coded, Coded):
        return coded
    if getattr(getattr(series, "dtype", None), "name", "") in TEXT:
        codes, words = series.factorize()  # pandas' own: a third of the time of a look at every word
        return Coded(tuple(words.tolist()), codes)
    values = series.to_numpy() if hasattr(series, "to_numpy") else np.asarray(series)
    _check_no_dates(values, name)
    return np.asarray(values.astype(object) if values.dtype.kind not in "fiub" else values)


def _check_no_dates(values: NDArray[Any], name: Any) -> None:
    """As objects dates would be counts of nanoseconds or none, as their unit is."""
    if values.dtype.kind in DATES:
        raise ValueError(f"column {str(name)!r} holds {DATES[values.dtype.kind]}: make numbers of them, or leave it out")


def _chosen(categorical: Any, names: tuple[str, ...]) -> set[int]:
    """Positions of the columns that `categorical` tells: one or several by name or position, or a mask with a boolean for each column."""
    if categorical is None:
        return set()
    given = list(categorical) if _is_sequence(categorical) else [categorical]
    if given and all(isinstance(each, (bool, np.bool_)) for each in given):
        if len(given) != len(names):
            raise ValueError(f"categorical is a mask of {len(given)} booleans: expected one for each of the {len(names)} columns")
        return {i for i, is_chosen in enumerate(given) if is_chosen}
    return {_position(each, names) for each in given}


def _is_sequence(given: Any) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping)) and getattr(given, "ndim", 1) == 1


def _position(column: Any, names: tuple[str, ...]) -> int:
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"categorical names {column!r}{meant(column, names)}: the columns are {quoted(names)}")
        return names.index(column)
    if isinstance(column, (bool, np.bool_)) or not isinstance(column, (int, np.integer)):
        raise ValueError(f"categorical has {shown(column)}: expected names or positions of columns, or a boolean for each column")
    if not 0 <= column < len(names):
        raise ValueError(f"categorical names column {column}: there are {len(names)}, counted from 0")
    return int(column)


def _make_schema(columns: list[NDArray[Any] | Coded], names: tuple[str, ...], chosen: set[int]) -> Schema:
    features = []
    for i, (name, column) in enumerate(zip(names, columns, strict=True)):
        if not isinstance(column, Coded) or not (i in chosen or _has_words(column)):
            features.append(Feature(name))
            continue
        present = [column.categories[code] for code in np.flatnonzero(np.bincount(column.codes + 1)[1:])]  # 0: missing
        ordered = sorted(present, key=lambda value: (isinstance(value, str), value)) or ["(none)"]
        features.append(Feature(name, CATEGORICAL, tuple(ordered)))
    return Schema(features)


def _coded(column: NDArray[Any] | Coded) -> Coded:
    """A column's different values and which of them each row has; a Python object is looked at once per value, not once per row."""
    if isinstance(column, Coded):
        return column
    if column.dtype.kind == "O":
        place: dict[Any, int] = {}
        codes = np.array([place.setdefault(value, len(place)) for value in column.tolist()], np.int64)
        distinct = list(place)
    else:
        found = np.unique(column)
        distinct, codes = found.tolist(), np.searchsorted(found, column)  # numpy's own inverse sorts rows, ten times slower
    kept = [value for value in distinct if not _is_missing(value)]
    position = iter(range(len(kept)))
    new = np.array([-1 if _is_missing(value) else next(position) for value in distinct], np.int64)
    return Coded(tuple(_plain(value) for value in kept), new[codes])


def _has_words(column: NDArray[Any] | Coded) -> bool:
    if isinstance(column, Coded):
        return bool((column.codes >= 0).any())
    if column.dtype.kind in "US":
        return True
    return column.dtype.kind == "O" and any(isinstance(value, str) for value in column)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def _category_codes(column: NDArray[Any] | Coded, feature: Feature) -> NDArray[np.float64]:
    code = {category: float(k) for k, category in enumerate(feature.categories)}
    coded = _coded(column)
    known = np.array([*(code.get(category, np.nan) for category in coded.categories), np.nan])
    return np.asarray(known[coded.codes])


def _numbers(column: NDArray[Any] | Coded, name: str) -> NDArray[np.float64]:
    if isinstance(column, Coded):
        column = np.asarray(column)
    if column.dtype.kind == "O":
        column = np.array([np.nan if _is_missing(value) else _number(value, name) for value in column], np.float64)
    elif column.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{column}\n")
    _check_no_dates(column, name)
    if column.dtype.kind not in "fiub":
        raise ValueError(f"column {name!r} holds {column.dtype}: expected numbers, or name it in `categorical`")
    numbers = column.astype(np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"Input X contains infinity in row {int(np.argmax(np.isinf(numbers)))}, column {name!r}: {FINITE}")
    return numbers


def _check_finite(codes: NDArray[np.float64], schema: Schema) -> None:
    row, column = first_wrong_code(codes, schema.arity)
    if row >= 0:
        raise ValueError(f"Input X contains infinity in row {row}, column {schema.names[column]!r}: {FINITE}")


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        if isinstance(value, date):
            raise ValueError(f"column {name!r} holds dates: make numbers of them, or leave it out") from None
        raise TypeError(f"column {name!r} holds {value!r}: its argument must be a string or a real number") from None


def read_labels(y: Any, rows: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """(classes in order, the class of each row)."""
    labels = np.asarray(y)
    if labels.ndim == 0:
        raise ValueError("y should be a 1d array, got a single value: give one label per row")
    if len(labels) != rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {rows} rows, {len(labels)} labels")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: every row needs a label")
    try:
        classes, index = _ordered(labels)
    except TypeError:
        raise ValueError("Unknown label type: labels of several kinds that cannot be ordered") from None
    if (numbers := _as_numbers(classes)) is not None and (why := why_continuous(len(numbers), rows, _whole(numbers))):
        raise ValueError(f"Unknown label type: continuous. The labels {why}. {CLASSES}")
    if why := why_no_class(len(classes), rows):
        raise ValueError(f"'y' {why}")
    return classes, index.astype(np.int32)


def _ordered(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """(the different labels in order, which of them each row has), as `np.unique` gives them, which sorts rows: ten times slower."""
    if labels.dtype.kind != "O":
        classes = np.unique(labels)
        return classes, np.searchsorted(classes, labels)
    coded = _coded(labels)
    if (coded.codes < 0).any():
        raise ValueError("Input y contains NaN or None: every row needs a label")
    classes = np.unique(np.array([*coded.categories, None], object)[:-1])
    return classes, np.searchsorted(classes, np.array([*coded.categories, None], object)[:-1])[coded.codes]


def why_continuous(distinct: int | None, rows: int, whole: bool) -> str | None:
    """What tells that numbers, so many of them different (None: very many), are a regression target; None where they may be classes.

    Examples
    --------
    >>> why_continuous(3, 100, whole=True)
    >>> why_continuous(40, 60, whole=True)
    'are 40 different numbers in 60 rows, as a regression target has'
    """
    if not whole:
        return "are numbers with fractions, as a regression target has"
    if distinct is None or distinct > MOST_CLASSES or (distinct > FEW and 2 * distinct > rows):
        many = "very many" if distinct is None else f"{distinct:,}"
        return f"are {many} different numbers in {rows:,} rows, as a regression target has"
    return None


def why_no_class(distinct: int, rows: int) -> str | None:
    """What is said of so many different words that hours of training would learn nothing; None where they may be classes.

    Examples
    --------
    >>> why_no_class(50_000, 50_000)
    'has 50,000 different words in 50,000 rows: it names cases, it is no class'
    >>> why_no_class(300, 50_000)
    'has 300 different words in 50,000 rows: a model tells 256 classes apart at most; group them, or learn another column'
    """
    if distinct <= MOST_CLASSES:
        return None
    said = f"has {distinct:,} different words in {rows:,} rows"
    if 2 * distinct > rows:
        return f"{said}: it names cases, it is no class"
    return f"{said}: a model tells {MOST_CLASSES} classes apart at most; group them, or learn another column"


def why_doubtful(label: str, distinct: int) -> list[str]:
    """What is said of a column of numbers that may be classes, and more likely is an amount.

    Examples
    --------
    >>> why_doubtful("age", 70)
    ["'age' has 70 different numbers, and each is learnt as a class of its own: if it is an amount, group it first"]
    """
    said = f"{label!r} has {distinct} different numbers, and each is learnt as a class of its own: if it is an amount, group it first"
    return [said] if distinct > FEW else []


def _as_numbers(classes: NDArray[Any]) -> NDArray[Any] | None:
    """Labels that are numbers, in whatever array they came."""
    if classes.dtype.kind == "O" and all(isinstance(label, Real) and not isinstance(label, bool) for label in classes):
        return classes.astype(np.float64)
    return classes if classes.dtype.kind in "iuf" else None


def _whole(numbers: NDArray[Any]) -> bool:
    return numbers.dtype.kind != "f" or bool((numbers == np.rint(numbers)).all())


def read_weights(sample_weight: Any, rows: int) -> NDArray[np.float64]:
    """One weight per row; 1 each by default."""
    if sample_weight is None:
        return np.ones(rows)
    weights = np.asarray(sample_weight, np.float64)
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weights) != rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(rows,)}!")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite numbers of at least 0")
    if not (weights > 0).any():
        raise ValueError("every sample_weight is zero: some rows must count")
    if not 1e-12 <= weights.max() <= 1e12:
        raise ValueError(f"the greatest sample_weight is {weights.max():g}: expected 1e-12 to 1e12; multiply them all by one number")
    return weights
