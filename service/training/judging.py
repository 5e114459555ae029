"""Whether a job can be done with its data set: judged when it is asked for, not when it has waited in the queue."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from frugal.models.costs import LONGEST_NAME, is_word, price_gaps, shown
from frugal.models.learners.frontier import FrontierClassifier
from frugal.models.table import CLASSES, MOST_CLASSES, why_continuous, why_doubtful
from frugal.service.errors import InvalidRequest
from frugal.service.registry.versions import check_name
from frugal.service.tables.columns import why_amounts
from frugal.service.training.learners import checked_params, find_learner
from frugal.service.training.pricing import Costs, checked_costs, listed
from frugal.service.training.spec import Spec, why_no_mistake

FEWEST = 2  # rows to learn from


def judged(asked: Spec, columns: Sequence[Mapping[str, Any]], rows: int, dataset_costs: Costs) -> Spec:
    """The job as it will be done, its costs over the data set's; InvalidRequest says what cannot be."""
    entry = find_learner(asked.learner)
    params = checked_params(asked.learner, dict(asked.params))
    if asked.budget is not None and not entry.takes_budget:
        raise InvalidRequest(f"budget: {asked.learner} takes none; leave it out, or use frontier.")
    if asked.learner == FrontierClassifier.name and params.get("points") is False:
        raise InvalidRequest("params.points: frontier is made of its operating points; leave it out, or name another learner.")
    for field, name in asked.publish.items():
        if name is not None:
            check_name(name, f"publish.{field}")
    names = [column["name"] for column in columns]
    classes = check_label(asked.label, columns, rows)
    check_words(columns, asked.label)
    check_terms(params, classes)
    if rows - int(rows * asked.test_fraction) < FEWEST:
        raise InvalidRequest(f"test_fraction: of {rows:,} rows it leaves fewer than {FEWEST} to learn from; take a smaller one.")
    features = [name for name in names if name != asked.label]
    if not features:
        raise InvalidRequest("dataset: it has no column beside the label to learn from.")
    for name in params.get("categorical") or []:
        if name not in features:
            raise InvalidRequest(f"params.categorical: the data set has no feature of this name; it has {listed(features)}.")
    check_penalties(asked, columns)
    check_class_weight(params.get("class_weight"), asked.label, columns)
    if asked.label in asked.costs:
        raise InvalidRequest(f"costs: {shown(asked.label)} is the label, which is never bought; leave it out.")
    over = {name: price for name, price in dataset_costs.items() if name != asked.label}
    costs = checked_costs(over | checked_costs(asked.costs, features), features)
    numbers = next(column["kind"] == "numeric" for column in columns if column["name"] == asked.label)
    doubts = why_doubtful(asked.label, classes) if numbers else []
    return replace(asked, params=params, costs=costs, warnings=[*doubts, *price_gaps(costs, features)])


def check_label(label: str, columns: Sequence[Mapping[str, Any]], rows: int) -> int:
    """How many classes it has."""
    column = next((column for column in columns if column["name"] == label), None)
    if column is None:
        raise InvalidRequest(f"label: the data set has no column of this name; it has {listed([column['name'] for column in columns])}.")
    if column["missing"]:
        raise InvalidRequest(f"label: {shown(label)} is missing in {column['missing']:,} rows; every row needs one: leave those rows out.")
    if column["kind"] == "numeric" and (why := why_continuous(column["distinct"], rows, column["whole"])):
        raise InvalidRequest(f"label: the values of {shown(label)} {why}. {CLASSES}.")
    if column["kind"] == "categorical" and (why := why_amounts(column["categories"], rows)):
        raise InvalidRequest(f"label: the values of {shown(label)} {why}. {CLASSES}.")
    if column["distinct"] == 1:
        raise InvalidRequest(f"label: {shown(label)} is the same in every row; there is nothing to learn.")
    if column["distinct"] is None or column["distinct"] > MOST_CLASSES:
        many = "more than 1,000" if column["distinct"] is None else f"{column['distinct']:,}"
        raise InvalidRequest(
            f"label: {shown(label)} has {many} different values, and a model tells {MOST_CLASSES} classes apart at most; "
            "choose another column, or group its values.",
            limit=MOST_CLASSES,
        )
    if not has_words(column):
        raise InvalidRequest(f"label: {shown(label)} has values of more than {LONGEST_NAME} characters; labels are the names of classes.")
    return int(column["distinct"])


def check_words(columns: Sequence[Mapping[str, Any]], label: str) -> None:
    """Words that no question could show are told of now, not when the model is put together."""
    wrong = [column["name"] for column in columns if column["name"] != label and not has_words(column)]
    if wrong:
        raise InvalidRequest(
            f"dataset: the column {shown(wrong[0])} has words of more than {LONGEST_NAME} characters; leave it out, or shorten them.",
            limit=LONGEST_NAME,
        )


def has_words(column: Mapping[str, Any]) -> bool:
    """Whether what a column holds can be told: numbers, or words that may be categories and classes."""
    return all(is_word(word) for word in column["categories"] or ())


def check_terms(params: Mapping[str, Any], classes: int) -> None:
    if params.get("terms") is None:
        return
    if params.get("impurity") != "polynomial":
        raise InvalidRequest("params.terms: they belong to the impurity polynomial; set impurity, or leave them out.")
    if any(len(exponents) != classes for _, exponents in params["terms"]):
        raise InvalidRequest(f"params.terms: the label has {classes} values, so each term has {classes} exponents.")


def check_penalties(asked: Spec, columns: Sequence[Mapping[str, Any]]) -> None:
    """Labels that penalties name must be there, as far as the description of the label's column tells; and right answers cost nothing."""
    if not isinstance(asked.penalties, Mapping):
        return
    named = {label for true, row in asked.penalties.items() for label in (true, *row)}
    check_labels("penalties: {} of the labels that they name", named, asked.label, columns)
    if why := why_no_mistake(asked.penalties):
        raise InvalidRequest(f"penalties: {why}.")


def check_class_weight(weights: Any, label: str, columns: Sequence[Mapping[str, Any]]) -> None:
    if isinstance(weights, Mapping):
        check_labels("params.class_weight: {} of the labels that the weights name", set(weights), label, columns)


def check_labels(those: str, named: set[str], label: str, columns: Sequence[Mapping[str, Any]]) -> None:
    """Labels that are named must be values of the label's column."""
    column = next(column for column in columns if column["name"] == label)
    strangers = [name for name in named if not is_value(name, column)]
    if strangers:
        raise InvalidRequest(f"{those.format(f'{len(strangers):,}')} are no values of {shown(label)}.")


def is_value(label: str, column: Mapping[str, Any]) -> bool:
    """Whether a column can hold this label: one of its words, or a whole number in its range."""
    if column["categories"] is not None:
        return label in column["categories"]
    return bool(re.fullmatch(r"0|-?[1-9][0-9]{0,15}", label)) and bool(column["low"] <= int(label) <= column["high"])
