"""What classes count for, and what mistakes cost, as they are given to a learner."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import shown
from frugal.models.naming import quoted


def weights_of_classes(given: Any, labels: Sequence[Any], classes: NDArray[np.int32]) -> NDArray[np.float64]:
    """The weight of a case of each class; "balanced" gives every class the same weight together.

    Examples
    --------
    >>> weights_of_classes("balanced", ["no", "yes"], np.array([0, 0, 0, 1])).round(3).tolist()
    [0.667, 2.0]
    >>> weights_of_classes({"yes": 5}, ["no", "yes"], np.array([0, 0, 0, 1])).tolist()
    [1.0, 5.0]
    """
    if given is None:
        return np.ones(len(labels))
    if isinstance(given, str):
        return np.asarray(len(classes) / (len(labels) * np.bincount(classes, minlength=len(labels))))
    strangers = [label for label in given if label not in labels]
    if strangers:
        raise ValueError(f"class_weight names {quoted(map(str, strangers))}: the labels are {quoted(map(str, labels))}")
    weights = np.array([float(given.get(label, 1.0)) for label in labels])
    if not weights[np.unique(classes)].any():
        raise ValueError("class_weight is 0 for every class: at least one must count")
    return weights


def penalties_of(given: Any, labels: Sequence[Any]) -> NDArray[np.float64] | None:
    """A matrix as ensembles have it, row: what is said, column: what is true; from a number for every mistake, a mapping by the true label
    and then by the one that is said, or a matrix of the same.

    Examples
    --------
    >>> penalties_of({"ill": {"well": 500}}, ["ill", "well"]).tolist()
    [[0.0, 0.0], [500.0, 0.0]]
    >>> penalties_of([[0, 500], [50, 0]], ["ill", "well"]).tolist()
    [[0.0, 50.0], [500.0, 0.0]]
    """
    if given is None:
        return None
    many = len(labels)
    if isinstance(given, Mapping):
        _check_names(given, labels)
        return np.array([[_amount(given.get(true, {}).get(said, 0.0), true, said) for true in labels] for said in labels])
    if np.ndim(given) == 0:
        return _amount(given, "one label", "another") * (1 - np.eye(many))
    matrix = np.asarray(given)
    if matrix.shape != (many, many):
        raise ValueError(f"misclassification_cost has shape {matrix.shape}: expected a row and a column for each of the {many} classes")
    return np.array([[_amount(matrix[t, s], labels[t], labels[s]) for t in range(many)] for s in range(many)])


def _check_names(given: Mapping[Any, Any], labels: Sequence[Any]) -> None:
    wrong = next((row for row in given.values() if not isinstance(row, Mapping)), None)
    if wrong is not None:
        raise ValueError(f"misclassification_cost has {shown(wrong)} for a true label: expected a mapping of what is said to what it costs")
    strangers = [label for label in dict.fromkeys(label for true, row in given.items() for label in (true, *row)) if label not in labels]
    if strangers:
        raise ValueError(f"misclassification_cost names {quoted(map(str, strangers))}: the labels are {quoted(map(str, labels))}")


def _amount(given: Any, true: Any, said: Any) -> float:
    number = isinstance(given, (int, float, np.integer, np.floating)) and not isinstance(given, bool)
    if not number or not 0 <= given < np.inf:
        raise ValueError(f"misclassification_cost is {shown(given)} where {said!s} is said for {true!s}: expected a number of at least 0")
    if given and true == said:
        raise ValueError(f"misclassification_cost: {said!s} said for {true!s} is no mistake: leave it out")
    return float(given)
