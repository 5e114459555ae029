"""One file per published method, and their names on the wire and the command line."""

from frugal.models.learners.budget_forest import BudgetForestClassifier
from frugal.models.learners.estimator import Learner
from frugal.models.learners.frontier import FrontierClassifier
from frugal.models.learners.greedy import GreedyTreeClassifier
from frugal.models.learners.priced_boosting import PricedBoostingClassifier

LEARNERS: dict[str, type[Learner]] = {
    kind.name: kind for kind in (FrontierClassifier, PricedBoostingClassifier, BudgetForestClassifier, GreedyTreeClassifier)
}
