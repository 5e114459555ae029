"""Our operating points for trees that LightGBM grew ("cegb cf"): stop a case once it is sure enough, or before it gets too dear.

`frugal.models.frontier` says what pairs of a confidence and a cap come to on rows. Here is the one place that calls it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.frontier_parts import cegb
from benchmarks.frontier_parts.anchors import nothing, recipes_of_ten
from benchmarks.frontier_parts.converting import as_ensemble
from benchmarks.frontier_parts.curves import Point, hull, summed_up
from benchmarks.frontier_parts.ours import NotThereError, played
from benchmarks.frontier_parts.tables import Data, Rows
from frugal.models import Ensemble


def operated(data: Data, threads: int, _strict: bool) -> dict[str, Any]:
    """The part "cf": the ten, each with all operating points, together."""
    ensembles = [as_ensemble(data, cegb.trained(data, recipe, threads)) for recipe in recipes_of_ten()]
    points = [nothing(data), *pooled(data, ensembles, threads)]
    return {"rivals": {"cegb cf": summed_up(points, data.everything) | {"models": len(ensembles)}}}


def with_points(ensemble: Ensemble, rows: Rows, threads: int) -> Sequence[Any]:
    """Its frontier on these rows: points with a confidence, a cap, a mean cost and an error."""
    try:
        from frugal.models.frontier import frontier_of, measure
    except ImportError:
        raise NotThereError("frugal.models.frontier") from None
    return frontier_of(measure(ensemble, rows.codes, rows.classes.astype(np.int32), n_jobs=threads)).points


def pooled(data: Data, ensembles: list[Ensemble], threads: int) -> list[Point]:
    """Chosen on validation rows from the points of all these ensembles; only those are served to test rows."""
    known = [(ensemble, point) for ensemble in ensembles for point in with_points(ensemble, data.validation, threads)]
    best = hull([0.0, *(point.cost for _, point in known)], [nothing(data).validation_error, *(point.error for _, point in known)])
    return [served_by(data, *known[i - 1], threads) for i in best if i]


def served_by(data: Data, ensemble: Ensemble, point: Any, threads: int) -> Point:
    found = played(ensemble, data.test.codes, point, threads)
    return Point(point.cost, point.error, found.cost.mean(), found.labels != data.test.classes)
