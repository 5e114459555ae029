"""Small models with known moves, for tests of sessions.

`clinic` is one tree over paid facts. Blood tests are a group (sugar 5, then 3 once another is bought; iron 7, then 4), scan is dear and
delayed, `shoe_size` no tree uses:

    fever (1) --no--> well                      spot (0.5)
        `----yes--> sugar (5 | 3) --low--> iron (7 | 4) --low--> well
                         |                      `--------high--> ill
                         `--------high--> scan (50) --clear--> ill
                                                    `--dark--> grave
"""

from collections.abc import Sequence

from frugal.models import CostModel, Ensemble, Feature, Leaf, Price, Schema, Split

CLASSES = ("well", "ill", "grave")
SCHEMA = Schema(
    [
        Feature("fever", "categorical", ("no", "yes"), question="Is there a fever?"),
        Feature("sugar", unit="mg/dl"),
        Feature("iron"),
        Feature("scan", "categorical", ("clear", "dark")),
        Feature("shoe_size"),
    ]
)
COSTS = CostModel(
    [
        Price("fever", 1),
        Price("sugar", 5, "blood", 3),
        Price("iron", 7, "blood", 4),
        Price("scan", 50, delayed=True),
        Price("shoe_size", 0.5),
    ]
)


def clinic(smoothing: float = 0, **settings: object) -> Ensemble:
    """Told probabilities are plain shares, which tests can know by heart."""
    iron = Split("iron", [3, 2, 0], threshold=10.0, children=[Leaf([3, 0, 0]), Leaf([0, 2, 0])])
    scan = Split("scan", [0, 3, 4], branches={"clear": 0, "dark": 1}, children=[Leaf([0, 3, 0]), Leaf([0, 0, 4])])
    sugar = Split("sugar", [3, 5, 4], threshold=100.0, children=[iron, scan])
    tree = Split("fever", [13, 5, 4], branches={"no": 0, "yes": 1}, children=[Leaf([10, 0, 0]), sugar])
    return Ensemble.of([tree], SCHEMA, COSTS, classes=CLASSES, vote="counts", smoothing=smoothing, **settings)


POINTS = (  # mean cost, error, confidence, cap
    (0.0, 0.4, 1.0, 0.0),
    (4.5, 0.3, 1.0, 10.0),
    (20.0, 0.1, 0.595, None),
)


def aimed(points: Sequence[tuple[float, float, float, float | None]] = POINTS, default: int = 1) -> Ensemble:
    """The clinic with operating points: one that asks nothing, one that spends 10 at most, one that stops when a label has 59.5 %."""
    names = ("cost", "error", "log_loss", "confidence", "cap", "early")
    found = [dict(zip(names, (cost, error, 0.5, confidence, cap, 0.5), strict=True)) for cost, error, confidence, cap in points]
    return clinic(frontier={"points": found, "default": default})


def wide(features: int, cost: float = 1.0) -> Ensemble:
    """One chain that wants every feature f0, f1, ... before it says yes: no session on it ends early but by its budget."""
    node = Leaf([0, 1])
    for i in reversed(range(features)):
        node = Split(f"f{i}", [1, 1], threshold=0.5, children=[Leaf([1, 0]), node])
    schema = Schema([Feature(f"f{i}") for i in range(features)])
    return Ensemble.of([node], schema, [cost] * features, classes=["no", "yes"], vote="counts", stop="leaf")
