"""A first session: a forest is grown on the heart example, then two patients it has not seen are asked, question by question.

python -m examples.first_session
"""

from pathlib import Path
from typing import Any

import numpy as np

from frugal import Ask, BudgetForestClassifier, CostModel, Ensemble, decide
from frugal.service.tables import read_file

HERE = Path(__file__).parent / "heart"


def main() -> None:
    table = read_file(HERE / "heart.csv")
    costs = CostModel.from_csv(HERE / "costs.csv")
    X, y = table.only(costs.features), table.labels("disease")
    seen = np.arange(len(X)) >= 60
    forest = BudgetForestClassifier(budget=60, alpha=[0, 2, 4, 8], costs=costs, random_state=0).fit(X.rows(seen), y[seen])
    ensemble: Ensemble = forest.ensemble_
    print(f"{ensemble}\nheld out: {ensemble.metrics['held_out']}")
    for number, budget in ((1, None), (2, 2)):
        patient = {name: X[name][number] for name in costs.features}
        print(f"\npatient {number}, " + (f"budget ${budget}" if budget else "no budget"))
        ask_all(ensemble, patient, budget, y[number])


def ask_all(ensemble: Ensemble, patient: dict[str, Any], budget: float | None, truth: str) -> None:
    answers: dict[str, Any] = {}
    spent = 0.0
    while isinstance(decision := decide(ensemble, answers, budget, spent), Ask):
        value = patient[decision.feature]
        spent += decision.cost if value is not None else 0  # what is unavailable costs nothing
        print(f"  {ensemble.schema[decision.feature].question:64} ${decision.cost:>7.2f}   {value}")
        answers[decision.feature] = value
    print(f"  {decision}")
    print(f"  spent ${spent:.2f} of ${ensemble.costs.total(ensemble.costs.features):.2f} for everything; in truth: {truth}")


if __name__ == "__main__":
    main()
