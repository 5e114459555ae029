"""Learning and deciding: numpy and numba only."""

from frugal.models.acquire import Acquisition, acquire, predict
from frugal.models.archive import dump, load
from frugal.models.costs import CostModel, Price
from frugal.models.decide import Ask, Decision, Standing, Stop, Wait, decide, stand
from frugal.models.ensemble import Ensemble
from frugal.models.learners.budget_forest import BudgetForestClassifier
from frugal.models.learners.frontier import FrontierClassifier
from frugal.models.learners.greedy import GreedyTreeClassifier
from frugal.models.learners.priced_boosting import PricedBoostingClassifier
from frugal.models.schema import Feature, Schema
from frugal.models.tree import Leaf, Split, Tree
from frugal.models.warm import warm_up

__all__ = [
    "Acquisition",
    "Ask",
    "BudgetForestClassifier",
    "CostModel",
    "Decision",
    "Ensemble",
    "Feature",
    "FrontierClassifier",
    "GreedyTreeClassifier",
    "Leaf",
    "Price",
    "PricedBoostingClassifier",
    "Schema",
    "Split",
    "Standing",
    "Stop",
    "Tree",
    "Wait",
    "acquire",
    "decide",
    "dump",
    "load",
    "predict",
    "stand",
    "warm_up",
]
