"""Prediction where every fact about a case costs money, time or pain: what to ask next, and when enough is known.

Names are loaded when they are first used: `import frugal` costs nothing, and `frugal.client` needs httpx alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from frugal.models import (
        Acquisition,
        Ask,
        BudgetForestClassifier,
        CostModel,
        Decision,
        Ensemble,
        Feature,
        GreedyTreeClassifier,
        Price,
        Schema,
        Stop,
        Wait,
        acquire,
        decide,
        dump,
        load,
        predict,
    )

__all__ = [
    "Acquisition",
    "Ask",
    "BudgetForestClassifier",
    "CostModel",
    "Decision",
    "Ensemble",
    "Feature",
    "GreedyTreeClassifier",
    "Price",
    "Schema",
    "Stop",
    "Wait",
    "acquire",
    "decide",
    "dump",
    "load",
    "predict",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'frugal' has no attribute {name!r}")
    return getattr(import_module("frugal.models"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
