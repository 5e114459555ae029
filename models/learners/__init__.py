"""One file per published method, and their names on the wire and the command line."""

from models.learners.budget_forest import BudgetForestClassifier
from models.learners.estimator import Learner
from models.learners.greedy import GreedyTreeClassifier

LEARNERS: dict[str, type[Learner]] = {kind.name: kind for kind in (BudgetForestClassifier, GreedyTreeClassifier)}
