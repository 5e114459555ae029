"""A first session: three small trees over the heart example, asked for two patients question by question.

python -m examples.first_session
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models import Ask, CostModel, Ensemble, Feature, Leaf, Schema, Split, decide

HERE = Path(__file__).parent / "heart"
CLASSES = ["absent", "present"]
Patient = dict[str, Any]


def main() -> None:
    costs = CostModel.from_csv(HERE / "costs.csv")
    patients = read_patients(costs.features)
    ensemble = three_trees(patients, costs)
    print(f"{ensemble}\n\n{ensemble.text(0)}")
    for number, budget in ((0, None), (1, None), (1, 50)):
        print(f"\npatient {number}, " + (f"budget ${budget}" if budget else "no budget"))
        ask_all(ensemble, patients[number], budget)


def read_patients(names: tuple[str, ...]) -> list[Patient]:
    with open(HERE / "heart.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: value_of(row[name]) for name in (*names, "disease")} for row in rows]


def value_of(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell or None


def three_trees(patients: list[Patient], costs: CostModel) -> Ensemble:
    """Questions a person chose, counts from the data. The learners of this project choose the questions themselves."""
    schema = schema_of(patients, costs)
    pain = {"none": 1} | dict.fromkeys(["typical", "atypical", "non_anginal"], 0)
    scan = {"normal": 0, "fixed_defect": 1, "reversible_defect": 1}
    questions = [
        ("chest_pain", pain, ("age", 56.5, None, None), ("thal", scan, None, None)),
        ("age", 54.5, ("chest_pain", pain, None, None), ("st_depression", 0.8, None, None)),
        ("chest_pain", pain, ("max_heart_rate", 147.5, None, None), ("vessels", 0.5, None, None)),
    ]
    trees = [grow(question, patients) for question in questions]
    return Ensemble.of(trees, schema, costs, classes=CLASSES, vote="majority")


def schema_of(patients: list[Patient], costs: CostModel) -> Schema:
    features = []
    for name in costs.features:
        words = sorted({patient[name] for patient in patients if isinstance(patient[name], str)})
        features.append(Feature(name, "categorical", tuple(words)) if words else Feature(name))
    return Schema(features).described_by(costs)


def grow(question: Any, patients: list[Patient]) -> Leaf | Split:
    counts = [sum(patient["disease"] == label for patient in patients) for label in CLASSES]
    if question is None:
        return Leaf(counts)
    name, test, *branches = question
    children = [grow(branch, [p for p in patients if side(p[name], test) == k]) for k, branch in enumerate(branches)]
    if isinstance(test, Mapping):
        return Split(name, counts, children, branches=test)
    return Split(name, counts, children, threshold=test)


def side(value: Any, test: Any) -> int | None:
    if value is None:
        return None
    return int(test[value]) if isinstance(test, Mapping) else int(value > test)


def ask_all(ensemble: Ensemble, patient: Patient, budget: float | None) -> None:
    answers: Patient = {}
    spent = 0.0
    while isinstance(decision := decide(ensemble, answers, budget, spent), Ask):
        value = patient[decision.feature]
        spent += decision.cost if value is not None else 0  # what is unavailable costs nothing
        print(f"  {ensemble.schema[decision.feature].question:64} ${decision.cost:>7.2f}   {value}")
        answers[decision.feature] = value
    print(f"  {decision}")
    print(f"  spent ${spent:.2f} of ${ensemble.costs.total(ensemble.costs.features):.2f} for everything; in truth: {patient['disease']}")


if __name__ == "__main__":
    main()
