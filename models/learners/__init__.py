"""One file per published method, and their names on the wire and the command line."""

from models.learners.budget_forest import BudgetForestClassifier
from models.learners.greedy import GreedyTreeClassifier

LEARNERS = {
    "budget-forest": BudgetForestClassifier,
    "greedy-tree": GreedyTreeClassifier,
}
