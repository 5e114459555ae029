"""Whether a job can be done with its data set: judged when it is asked for, not when it has waited in the queue."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from models.costs import shown
from service.errors import InvalidRequest
from service.registry.versions import check_name
from service.training.learners import checked_params, find_learner
from service.training.pricing import Costs, checked_costs
from service.training.spec import Spec

MOST_CLASSES = 256


def judged(asked: Spec, columns: Sequence[Mapping[str, Any]], dataset_costs: Costs) -> Spec:
    """The job as it will be done, its costs over the data set's; InvalidRequest says what cannot be."""
    entry = find_learner(asked.learner)
    params = checked_params(asked.learner, dict(asked.params))
    if asked.budget is not None and not entry.takes_budget:
        raise InvalidRequest(f"budget: {asked.learner} takes none; leave it out, or use budget-forest.")
    for name in filter(None, asked.publish.values()):
        check_name(name)
    names = [column["name"] for column in columns]
    check_label(asked.label, columns)
    features = [name for name in names if name != asked.label]
    if not features:
        raise InvalidRequest("dataset: it has no column beside the label to learn from.")
    for name in params.get("categorical") or []:
        if name not in features:
            raise InvalidRequest(f"params.categorical: the data set has no feature {shown(name)}.")
    check_penalties(asked, columns)
    if asked.label in asked.costs:
        raise InvalidRequest(f"costs: {shown(asked.label)} is the label, which is never bought; leave it out.")
    over = {name: price for name, price in dataset_costs.items() if name != asked.label}
    costs = checked_costs(over | checked_costs(asked.costs, features), features)
    return replace(asked, params=params, costs=costs)


def check_label(label: str, columns: Sequence[Mapping[str, Any]]) -> None:
    column = next((column for column in columns if column["name"] == label), None)
    if column is None:
        known = ", ".join(shown(column["name"]) for column in columns[:40])
        raise InvalidRequest(f"label: the data set has no column {shown(label)}; its columns are {known}.")
    if column["missing"]:
        raise InvalidRequest(f"label: {shown(label)} is missing in {column['missing']:,} rows; every row needs one: leave those rows out.")
    if column["kind"] == "numeric" and not column["whole"]:
        raise InvalidRequest(f"label: {shown(label)} holds numbers that are not whole; labels are classes: words or whole numbers.")
    if column["distinct"] == 1:
        raise InvalidRequest(f"label: {shown(label)} is the same in every row; there is nothing to learn.")
    if column["distinct"] is None or column["distinct"] > MOST_CLASSES:
        many = "more than 1,000" if column["distinct"] is None else f"{column['distinct']:,}"
        raise InvalidRequest(
            f"label: {shown(label)} has {many} different values, and a model tells {MOST_CLASSES} classes apart at most; "
            "choose another column, or group its values.",
            limit=MOST_CLASSES,
        )


def check_penalties(asked: Spec, columns: Sequence[Mapping[str, Any]]) -> None:
    """Labels that penalties name must be there, as far as the description of the label's column tells."""
    if not isinstance(asked.penalties, Mapping):
        return
    column = next(column for column in columns if column["name"] == asked.label)
    named = {label for true, row in asked.penalties.items() for label in (true, *row)}
    if column["categories"] is not None and (strangers := named - set(column["categories"])):
        raise InvalidRequest(f"penalties: {shown(min(strangers))} is no value of {shown(asked.label)}.")
