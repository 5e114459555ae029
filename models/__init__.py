"""Learning and deciding: numpy and numba only."""

from models.acquire import Acquisition, acquire, predict
from models.archive import dump, load
from models.costs import CostModel, Price
from models.decide import Ask, Decision, Standing, Stop, Wait, decide, stand
from models.ensemble import Ensemble
from models.learners.budget_forest import BudgetForestClassifier
from models.learners.greedy import GreedyTreeClassifier
from models.schema import Feature, Schema
from models.tree import Leaf, Split, Tree
from models.warm import warm_up

__all__ = [
    "Acquisition",
    "Ask",
    "BudgetForestClassifier",
    "CostModel",
    "Decision",
    "Ensemble",
    "Feature",
    "GreedyTreeClassifier",
    "Leaf",
    "Price",
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
