"""Random small models with everything in them: groups, categories, missing branches, dead ends, all tests, votes and orders."""

from hypothesis import strategies as st

from frugal.models import CostModel, Ensemble, Feature, Leaf, Price, Schema, Split, Tree
from frugal.models.flat import Flat
from frugal.models.tree import ENDS
from tests.naive.deciding import Model

PRICES = [0, 0.1, 0.2, 0.3, 1, 1, 2, 2.5, 7.27]


@st.composite
def schemas(draw, most=5):
    kinds = draw(st.lists(st.sampled_from([0, 0, 2, 3, 4]), min_size=1, max_size=most))
    return Schema(Feature(f"f{i}", "categorical", tuple("abcd"[:size])) if size else Feature(f"f{i}") for i, size in enumerate(kinds))


@st.composite
def cost_models(draw, schema):
    prices = []
    for name in schema.names:
        group = draw(st.sampled_from([None, None, "g", "h"]))
        inside = draw(st.sampled_from([None, *PRICES])) if group else None
        prices.append(Price(name, draw(st.sampled_from(PRICES)), group, inside))
    return CostModel(prices)


@st.composite
def trees(draw, schema, classes, vote, depth):
    number = st.integers(-4, 4).map(lambda n: n / 4) if vote == "additive" else st.integers(0, 4)
    values = draw(st.lists(number, min_size=classes, max_size=classes))
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return Leaf(values)
    feature = draw(st.sampled_from(schema.features))
    sizes = 2 if feature.kind == "numeric" else draw(st.integers(1, len(feature.categories)))
    children = [draw(trees(schema, classes, vote, depth - 1)) for _ in range(sizes)]
    missing = draw(st.sampled_from([None, None, ENDS, *range(sizes)]))
    if feature.kind == "numeric":
        threshold = draw(st.sampled_from([0.5, 1.5, 2.5]))
        low = draw(st.sampled_from([-float("inf"), -float("inf"), threshold - 1]))
        return Split(feature.name, values, children, threshold=threshold, low=low, missing=missing)
    if len(children) == 2 and draw(st.booleans()):
        return Split(feature.name, values, children, category=draw(st.sampled_from(feature.categories)), missing=missing)
    seen = draw(st.lists(st.sampled_from(feature.categories), min_size=sizes, unique=True))
    branches = {category: k if k < sizes else draw(st.integers(0, sizes - 1)) for k, category in enumerate(seen)}
    return Split(feature.name, values, children, branches=branches, missing=missing)


@st.composite
def penalty_matrices(draw, classes):
    if draw(st.booleans()):
        return None
    return [[0 if i == j else draw(st.sampled_from([0.5, 1, 4])) for j in range(classes)] for i in range(classes)]


@st.composite
def models(draw, votes=("majority", "counts", "weighted", "additive"), most_trees=4, depth=3):
    schema = draw(schemas())
    classes, vote = draw(st.integers(1, 3)), draw(st.sampled_from(votes))
    grown = draw(st.lists(trees(schema, classes, vote, depth), min_size=1, max_size=most_trees))
    weight = st.just(1.0) if vote == "majority" else st.sampled_from([0.25, 0.5, 1.0, 3.0])
    reader = draw(st.one_of(st.none(), st.lists(trees(schema, classes, "additive", 2), min_size=1, max_size=3)))
    return Model(
        trees=grown,
        schema=schema,
        costs=draw(cost_models(schema)),
        classes=[f"c{c}" for c in range(classes)],
        vote=vote,
        order=draw(st.sampled_from(["sequential", "votes"])),
        stop=draw(st.sampled_from(["leaf", "decided"])) if reader is None else "leaf",
        reader=reader,
        blend=draw(st.sampled_from([0.0, 0.5, 0.75, 1.0])),
        sureness=draw(st.sampled_from(["label", "penalty"])),
        delayed=draw(st.sampled_from(["wait", "ahead"])),
        weights=[draw(weight) for _ in grown],
        penalties=draw(penalty_matrices(classes)),
        smoothing=draw(st.sampled_from([0.0, 0.5, 1.0, 1.0])),
        calibration=draw(calibrations(classes)),
    )


@st.composite
def calibrations(draw, classes):
    number = st.sampled_from([-1.5, -0.25, 0.0, 0.5, 2.0])
    if draw(st.booleans()):
        return None
    slope, end_bias = draw(st.sampled_from([-0.9, -0.5, 0.0, 1.0])), draw(number)
    return {"slope": slope, "end_bias": end_bias, "bias": [draw(number) for _ in range(classes)]}


def ensemble_of(model, **changes):
    told = ("sureness", "blend", "smoothing", "calibration")
    settings = {name: getattr(model, name) for name in ("vote", "order", "stop", "delayed", "penalties", *told)} | changes
    if model.reader is not None and settings["stop"] == "leaf":
        settings["reader"] = Flat.of(Tree.of(tree, model.schema) for tree in model.reader)
    return Ensemble.of(model.trees, model.schema, model.costs, classes=model.classes, weights=model.weights, **settings)


def values_of(feature, missing=True):
    real = st.sampled_from(feature.categories) if feature.kind == "categorical" else st.integers(0, 3)
    return st.one_of(real, real, st.none()) if missing else real


def rows_of(schema, missing=True):
    return st.fixed_dictionaries({feature.name: values_of(feature, missing) for feature in schema.features})


@st.composite
def cases(draw, model):
    """(answers, keyword arguments of decide): any state that a session could be in, and some that it could not."""
    row = draw(rows_of(model.schema))
    status = {name: draw(st.sampled_from(["asked", "asked", "open", "open", "pending"])) for name in model.schema.names}
    answers = {name: row[name] for name in model.schema.names if status[name] == "asked"}
    bought = draw(
        st.sampled_from([None, [], [n for n in status if status[n] != "open"], draw(st.lists(st.sampled_from(model.schema.names)))])
    )
    budget = draw(st.sampled_from([None, None, 0, 0.3, 1, 2.5, 10]))
    return answers, {
        "budget": budget,
        "spent": draw(st.sampled_from([0, 0, 0.1, 1])) if budget else 0,
        "bought": bought,
        "pending": [name for name in status if status[name] == "pending"],
        "cap": draw(st.sampled_from([None, None, 0, 1, 2.5])),
        "confidence": draw(st.sampled_from([None, None, 0.507, 0.753, 1])),  # none that a share meets exactly, where rounding would decide
    }
