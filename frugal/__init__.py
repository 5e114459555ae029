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
        FrontierClassifier,
        GreedyTreeClassifier,
        Price,
        PricedBoostingClassifier,
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
    "FrontierClassifier",
    "GreedyTreeClassifier",
    "Price",
    "PricedBoostingClassifier",
    "Schema",
    "Stop",
    "Wait",
    "acquire",
    "decide",
    "dump",
    "load",
    "predict",
]

NEEDS = "frugal needs numpy and numba for this: in the checkout, pip install '.[learn]'"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'frugal' has no attribute {name!r}")
    try:
        return getattr(import_module("frugal.models"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("numpy", "numba"):
            raise
        raise ImportError(NEEDS) from None


def __dir__() -> list[str]:
    return [*globals(), *__all__]
