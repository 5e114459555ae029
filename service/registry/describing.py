"""What a version says of itself, told without loading it. Knows no database: the child that trains describes too."""

from dataclasses import asdict
from typing import Any

from frugal.models import Ensemble
from frugal.service.errors import BadArchiveSent
from frugal.service.registry.measures import check_metrics


def describe(ensemble: Ensemble) -> dict[str, Any]:
    """What a version says of itself: schema, costs, metrics, curve and settings. BadArchiveSent where that is not what is documented."""
    labels = [str(label) for label in ensemble.classes]
    if len(set(labels)) < len(labels):
        raise BadArchiveSent("two classes are the same word once they are written as text: rename one of them")
    check_metrics(ensemble.metrics)
    metrics = dict(ensemble.metrics)
    return {
        "learner": ensemble.learner,
        "parameters": ensemble.parameters,
        "classes": labels,
        "trees": len(ensemble),
        "vote": ensemble.vote,
        "order": ensemble.order,
        "stop": ensemble.stop,
        "delayed": ensemble.delayed,
        "schema": [
            {
                "feature": feature.name,
                "kind": feature.kind,
                "categories": list(feature.categories) or None,
                "unit": feature.unit,
                "question": feature.question,
                "used": feature.name in ensemble.used,
            }
            for feature in ensemble.schema.features
        ],
        "frontier": None if ensemble.frontier is None else ensemble.frontier.as_dict(),
        "costs": [{k: v for k, v in asdict(price).items() if k not in ("unit", "question")} for price in ensemble.costs.prices],
        "curve": metrics.pop("curve", []),
        "metrics": metrics,
    }
