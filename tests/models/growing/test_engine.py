"""The engine: every rule, target, question, price and limit grows the tree of its naive twin, on tables with categories, missing values,
groups and weights, from a few rows to thousands."""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from frugal.models import CostModel, Price
from frugal.models.growing import rules
from frugal.models.growing.grower import limits
from frugal.models.growing.targets import constant, counts, exactly, gradients, objects, of_cases, on_path, owing
from frugal.models.kernels.growth import rules as kinds
from frugal.models.kernels.growth.growing import grow
from tests.models.growing.engine import Case
from tests.naive import growing as naive

WORDS = tuple(f"w{k:02}" for k in range(30))
MISSING = {"side": kinds.BETTER_SIDE, "own": kinds.OWN_OUTCOME, "ends": kinds.ENDS, "fractions": kinds.FRACTIONS}
MIXED = {"a": "cut", "b": "every", "c": "cut", "d": "one", "e": "bin", "f": "every"}


def table(seed, rows, forms, missing=0.05, classes=3, weights=(1, 1, 2), distinct=9):
    """Rows whose class hangs on all columns, with noise; columns of numbers have `distinct` values, of words fewer or more."""
    rng = np.random.default_rng(seed)
    sizes = [int(rng.integers(2, distinct + 1)) if form in ("cut", "bin") else int(rng.integers(2, 8)) for form in forms.values()]
    codes = np.column_stack([(size * rng.random(rows) ** 1.3).astype(int) for size in sizes])
    told = (codes @ rng.integers(1, 4, len(sizes)) // 3) % classes
    told = np.where(rng.random(rows) < 0.25, rng.integers(0, classes, rows), told)
    gone = rng.random(codes.shape) < missing
    made = []
    for r in range(rows):
        row = {"class": int(told[r]), "weight": float(rng.choice(weights))}
        for k, (name, form) in enumerate(forms.items()):
            value = int(codes[r, k]) if form in ("cut", "bin") else WORDS[codes[r, k]]
            row[name] = None if gone[r, k] else value
        made.append(row)
    return made


def costs_of(forms):
    grouped = list(forms)[1::2]
    return CostModel([Price(f, 1 + 2 * i, "g" if f in grouped else None, 1.5 if f in grouped else None) for i, f in enumerate(forms)])


def fees(costs, floored=True, path=False):
    floor = sum(price.cost for price in costs.prices) / len(costs) / 100 if floored else 0

    def fee(name, bought, rows):
        return max(costs.marginal(name, bought if path else ()), floor)

    return fee


def same(case, grower, twin, sums, **grown):
    """The engine's tree is its twin's, with any number of slots and of places."""
    expected = twin.grow(case.rows)
    rows = np.arange(len(case.rows), dtype=np.int32)
    for slots, places in ((4, 512), (4, 1), (1, 512), (0, 0)):
        object.__setattr__(grower, "_slots", lambda slots=slots: slots)
        object.__setattr__(grower, "_places", lambda places=places: places)
        grower._own.__dict__.clear()
        assert close(case.nested(grower.grow(rows, case.weights, **grown), sums), expected)
        for taken in (grower._own.space.histograms.slots, grower._own.space.places):
            assert taken.left[0] == len(taken.held)
    return expected


def close(ours, theirs):
    """Equal, but for the last bits of sums of fractions."""
    if isinstance(ours, list) and ours and isinstance(ours[0], float):
        return isinstance(theirs, list) and np.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == len(theirs) == 5:
        return ours[:2] == theirs[:2] and close(ours[2], theirs[2]) and ours[3] == theirs[3] and len(ours[4]) == len(theirs[4]) and all(
            close(a, b) for a, b in zip(ours[4], theirs[4], strict=True)
        )  # fmt: skip
    return False


RULES = {
    "minimax": (lambda **s: rules.minimax(rules.impurity("threshold-pairs", 3, 1.0))._replace(**s),
                naive.worst(lambda n: naive.threshold_pairs(n, 1.0), 3), naive.divided, True),
    "expected": (lambda **s: rules.minimax(rules.impurity("powers", 3, power=3), "expected")._replace(**s),
                 naive.mean(lambda n: naive.powers(n, 3), 3), naive.divided, True),
    "eg2": (lambda **s: rules.per_case("entropy", price=kinds.POWER, w=0.7, **s), naive.mean(naive.entropy, 3), naive.eg2(0.7), False),
    "idx": (lambda **s: rules.per_case("entropy", price=kinds.DIVIDE, **s), naive.mean(naive.entropy, 3), naive.divided, True),
    "cs-id3": (lambda **s: rules.per_case("entropy", price=kinds.SQUARE, **s), naive.mean(naive.entropy, 3), naive.squared, True),
    "cart": (lambda **s: rules.per_case("gini", **s), naive.mean(naive.gini, 3), naive.plain, False),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("missing", ["side", "own", "ends"])
@pytest.mark.parametrize("path", [False, True])
@pytest.mark.parametrize("rows", [30, 400])
def test_class_counts(rule, missing, path, rows):
    make, judge, score, floored = RULES[rule]
    for seed in range(3 if rows < 100 else 1):
        case = Case(table(seed, rows, MIXED), MIXED)
        costs = costs_of(MIXED)
        gain = 1e-9 if rule in ("eg2", "idx", "cs-id3", "cart") else 0.0
        twin = naive.Engine(
            case.features, judge, score, fees(costs, floored, path), lambda r: naive.counts_of(r, 3), pure, missing, least_gain=gain
        )
        grower = case.grower(
            counts(case.classes, 3), make(missing=MISSING[missing]), on_path(costs) if path else constant(costs), limits(gain=gain)
        )
        assert isinstance(same(case, grower, twin, 3), tuple)


def pure(rows):
    return len({row["class"] for row in rows}) < 2


@pytest.mark.timeout(300, method="thread")  # a signal does not stop a kernel that never ends
@pytest.mark.parametrize(
    ("rule", "missing", "path", "seed"), [("minimax", "side", True, 1), ("eg2", "ends", True, 2), ("cart", "own", False, 3)]
)
def test_class_counts_on_thousands_of_rows(rule, missing, path, seed):
    make, judge, score, floored = RULES[rule]
    case = Case(table(seed, 4000, MIXED, missing=0.02, weights=(0.25, 1, 1, 3), distinct=40), MIXED)
    costs, gain = costs_of(MIXED), 1e-9
    price = fees(costs, floored, path)
    twin = naive.Engine(case.features, judge, score, price, lambda r: naive.counts_of(r, 3), pure, missing, depth=9, least_gain=gain)
    context = on_path(costs) if path else constant(costs)
    same(case, case.grower(counts(case.classes, 3), make(missing=MISSING[missing]), context, limits(depth=9, gain=gain)), twin, 3)


@pytest.mark.parametrize("seed", range(4))
def test_cuts_of_many_bins(seed):
    """Where the search for a cut ends early, nothing better was left."""
    forms = {"a": "cut", "b": "cut"}
    case, costs = Case(table(seed, 1500, forms, missing=0.01, distinct=200), forms), costs_of(forms)
    make, judge, score, floored = RULES["minimax"]
    twin = naive.Engine(case.features, judge, score, fees(costs, floored), lambda r: naive.counts_of(r, 3), pure, depth=5)
    same(case, case.grower(counts(case.classes, 3), make(), constant(costs), limits(depth=5)), twin, 3)


@pytest.mark.parametrize("leaves", [2, 5, 17, 1000])
@pytest.mark.parametrize("rule", ["minimax", "idx"])
def test_best_leaf_first(rule, leaves):
    make, judge, score, floored = RULES[rule]
    case, costs = Case(table(5, 600, MIXED), MIXED), costs_of(MIXED)
    twin = naive.Engine(
        case.features, judge, score, fees(costs, floored, True), lambda r: naive.counts_of(r, 3), pure, leaves=leaves, least_gain=1e-9
    )
    same(case, case.grower(counts(case.classes, 3), make(), on_path(costs), limits(leaves=leaves, gain=1e-9)), twin, 3)


@pytest.mark.parametrize(("depth", "least"), [(1, 1), (3, 4), (100, 20)])
@pytest.mark.parametrize("rule", ["minimax", "cart"])
def test_limits_of_depth_and_rows(rule, depth, least):
    make, judge, score, floored = RULES[rule]
    case, costs = Case(table(6, 500, MIXED), MIXED), costs_of(MIXED)
    price = fees(costs, floored)
    twin = naive.Engine(
        case.features, judge, score, price, lambda r: naive.counts_of(r, 3), pure, depth=depth, least_rows=least, least_gain=1e-9
    )
    target = counts(case.classes, 3, rows_counted=True)
    same(case, case.grower(target, make(), constant(costs), limits(depth=depth, rows=least, gain=1e-9)), twin, 3)


@pytest.mark.parametrize("seed", range(3))
def test_gain_ratio_with_fractional_cases(seed):
    """C4.5's way: a row without a value goes everywhere, with a part of its weight."""
    forms = {"a": "cut", "b": "every", "c": "cut", "f": "every"}
    case = Case(table(seed, 300, forms, missing=0.1), forms)
    twin = naive.Engine(
        case.features,
        naive.mean(naive.entropy, 3),
        naive.plain,
        lambda name, bought, rows: 1.0,
        lambda r: naive.counts_of(r, 3),
        pure,
        "fractions",
        ratio=True,
        depth=5,
        least_rows=4,
        least_gain=1e-9,
    )
    rule = rules.per_case("entropy", ratio=True, missing=kinds.FRACTIONS)
    target = counts(case.classes, 3, rows_counted=True, step=2.0**-20)
    same(case, case.grower(target, rule, limits=limits(depth=5, rows=4, gain=1e-9)), twin, 3)


@pytest.mark.parametrize("seed", range(3))
def test_penalties_less_prices(seed):
    """DTMC: what a question takes off the cost of mistakes, less what it costs for all the node's rows."""
    matrix = np.array([[0, 7, 3], [10, 0, 2], [1, 4, 0.0]])
    case, costs = Case(table(seed, 300, MIXED), MIXED), costs_of(MIXED)
    twin = naive.Engine(
        case.features,
        naive.penalties(matrix.tolist()),
        naive.subtracted(0.5),
        fees(costs, floored=False, path=True),
        lambda r: naive.counts_of(r, 3),
        pure,
    )
    same(case, case.grower(counts(case.classes, 3), rules.penalty(matrix, price=kinds.SUBTRACT, lam=0.5), on_path(costs)), twin, 3)


@pytest.mark.parametrize("name", ["entropy", "gini"])
@pytest.mark.parametrize(("theta", "lam"), [(0.0, 0.0), (3.0, 0.0), (0.0, 2.0), (3.0, 20.0)])
def test_objects(name, theta, lam):
    """Zhang and Gionis: with objects above theta (heavy) and below."""
    forms = {"a": "bin", "b": "one", "d": "one", "e": "bin", "f": "every"}
    for seed, rows in enumerate((20, 60, 1200)):
        case = Case(table(seed, rows, forms, missing=0.0, weights=(1, 2, 5)), forms)
        costs = costs_of(forms)
        impurity = {"entropy": naive.entropy, "gini": naive.gini}[name]

        def done(rows):
            return pure(rows) or naive.weight_of(rows) <= theta

        twin = naive.Engine(
            case.features,
            naive.disjunction(impurity, 3, lam, theta, case.rows),
            naive.divided,
            fees(costs, path=True),
            lambda r: naive.counts_of(r, 3),
            done,
            tie=1e-10,
        )
        target = objects(case.classes, 3, case.weights, theta)
        same(case, case.grower(target, rules.regularized(name, lam, theta), on_path(costs), limits(weight=theta)), twin, 3)


def boosted(case, scores, seed):
    """Derivatives for every row, in the rows too."""
    rng = np.random.default_rng(seed)
    first, second = exactly(rng.normal(size=(len(case.rows), scores))), exactly(rng.random((len(case.rows), scores)) + 0.1)
    for row, g, h in zip(case.rows, first.tolist(), second.tolist(), strict=True):
        row.update(first=g, second=h)
    return gradients(first, second)


def derivatives_of(rows):
    scores = range(len(rows[0]["first"]))
    return [sum(row["first"][k] for row in rows) for k in scores] + [sum(row["second"][k] for row in rows) for k in scores]


@pytest.mark.parametrize("scores", [1, 3])
@pytest.mark.parametrize("missing", ["side", "ends"])
@pytest.mark.parametrize("leaves", [0, 12])
def test_gradients(scores, missing, leaves):
    forms = {"a": "cut", "b": "one", "c": "cut", "d": "every"}
    case, costs = Case(table(7, 500, forms), forms), costs_of(forms)
    target = boosted(case, scores, 1)
    twin = naive.Engine(
        case.features,
        naive.loss(2.0),
        naive.subtracted(0.1),
        fees(costs, floored=False),
        derivatives_of,
        missing=missing,
        leaves=leaves,
        least_rows=5,
        depth=6,
    )
    rule = rules.loss(2.0, 0.1, missing=MISSING[missing])
    same(case, case.grower(target, rule, constant(costs), limits(depth=6, leaves=leaves, rows=5)), twin, 2 * scores)


def test_rows_whose_derivatives_add_up_to_nothing_are_there():
    rows = [{"a": k % 4, "class": 0, "weight": 1.0} for k in range(400)]
    case = Case(rows, {"a": "bin"})
    codes = np.arange(400) % 4
    first = np.where(codes == 2, -1.0, 0.25).reshape(-1, 1)
    second = np.where(codes == 2, 0.0, 1.0).reshape(-1, 1)
    tree = case.grower(gradients(first, second), rules.loss(1.0), limits=limits(depth=1)).grow(np.arange(400, dtype=np.int32), case.weights)
    assert case.nested(tree, 2)[:2] == ("a", 2)


@pytest.mark.parametrize("purse", [None, 9])
@pytest.mark.parametrize("leaves", [0, 12])
def test_prices_of_cases(purse, leaves):
    """Each case pays what it does not own, by the group's price where it has entered; past its purse it stays behind."""
    forms = {"a": "cut", "b": "one", "c": "cut", "d": "one", "e": "cut"}
    rng = np.random.default_rng(0)
    owns = [{name for name in forms if rng.random() < 0.2} for _ in range(1500)]

    def fresh():
        case = Case(table(8, 1500, forms, missing=0.03), forms)
        target = boosted(case, 1, 2)
        for row, own in zip(case.rows, owns, strict=True):
            row.update(owned=set(own), purse=np.inf if purse is None else purse)
        return case, target

    case, target = fresh()
    costs = costs_of(forms)

    def owed(name, row):
        return 0 if row[name] is None else costs.marginal(name, row["owned"])

    def pay(name, rows):
        for row in rows:
            if row[name] is not None:
                row["purse"] -= owed(name, row)
                row["owned"].add(name)

    twin = naive.Engine(
        case.features,
        naive.loss(1.0),
        naive.subtracted(0.0008),
        lambda name, bought, rows: sum(row["weight"] * owed(name, row) for row in rows),
        derivatives_of,
        missing="side",
        leaves=leaves,
        least_rows=3,
        depth=6,
        can_pay=lambda name, row: owed(name, row) <= row["purse"],
        pay=pay,
    )
    expected = twin.grow(case.rows)
    case, _ = fresh()
    owes = owing(case.binned.codes, case.binned.sizes)
    for r, own in enumerate(owns):
        entered = any(costs[name].group for name in own)
        for f, name in enumerate(forms):
            if owes[f, r]:
                owes[f, r] = 0 if name in own else 1 if entered and costs[name].group else 2
    rows = np.arange(1500, dtype=np.int32)
    for slots in (4, 1, 0):
        purses = np.full(1500, purse * 1_000_000, np.int64) if purse is not None else np.empty(0, np.int64)
        grower = case.grower(target, rules.loss(1.0, 0.0008), of_cases(costs, owes.copy(), purses), limits(depth=6, leaves=leaves, rows=3))
        object.__setattr__(grower, "_slots", lambda slots=slots: slots)
        assert close(case.nested(grower.grow(rows, case.weights), 2), expected)
    assert isinstance(expected, tuple)


def test_features_are_drawn_in_proportion_to_their_scores():
    """SEG2: a feature of twice the score is drawn twice as often; one that gains nothing never."""
    forms = {"a": "cut", "b": "every", "c": "cut", "d": "one"}
    case, costs = Case(table(3, 300, forms, missing=0.0), forms), costs_of(forms)
    for row in case.rows:
        row["c"] = 1
    case = Case(case.rows, forms)
    rule = rules.per_case("entropy", price=kinds.POWER, pick=kinds.IN_PROPORTION, w=1.0)
    engine = case.grower(counts(case.classes, 3), rule, constant(costs), limits(depth=1))
    rows, draws = np.arange(300, dtype=np.int32), 3000
    drawn = [case.schema.names[engine.grow(rows, case.weights, seed).feature[0]] for seed in range(draws)]
    scores = {}
    for name in forms:
        alone = naive.Engine(
            {name: case.features[name]},
            naive.mean(naive.entropy, 3),
            naive.eg2(1.0),
            fees(costs, floored=False),
            lambda r: naive.counts_of(r, 3),
            pure,
        )
        found = alone._best({"rows": case.rows, "bought": (), "depth": 0, "bounds": naive.ANY})
        scores[name] = found["score"] if found else 0.0
    assert scores["c"] == 0
    for name, score in scores.items():
        share = score / sum(scores.values())
        assert abs(drawn.count(name) / draws - share) < 4 * (share * (1 - share) / draws) ** 0.5 + 1e-12


def test_the_same_seed_draws_the_same_tree_in_any_thread():
    case = Case(table(4, 400, MIXED), MIXED)
    rule = rules.per_case("gini", pick=kinds.IN_PROPORTION)
    engine = case.grower(counts(case.classes, 3), rule, limits=limits(gain=1e-9))
    rows = np.arange(400, dtype=np.int32)
    with ThreadPoolExecutor(4) as pool:
        grown = list(pool.map(lambda seed: engine.grow(rows, case.weights, seed), [1, 2, 3] * 8))
    for k, tree in enumerate(grown):
        assert all(np.array_equal(a, b) for a, b in zip(tree, grown[k % 3], strict=True))
    assert case.nested(grown[0], 3) != case.nested(grown[1], 3)


def test_a_space_that_was_used_grows_the_same_tree_again():
    case = Case(table(5, 500, MIXED), MIXED)
    engine = case.grower(counts(case.classes, 3), RULES["minimax"][0]())
    rows = np.arange(500, dtype=np.int32)
    first = engine.grow(rows, case.weights)
    engine.grow(rows[100:350], case.weights[100:350])
    assert all(np.array_equal(a, b) for a, b in zip(first, engine.grow(rows, case.weights), strict=True))


def test_a_stretch_of_rows_grows_as_a_table_of_its_own_would():
    """What was bought on the way there is free below."""
    case, costs = Case(table(6, 500, MIXED), MIXED), costs_of(MIXED)
    some = [r for r, row in enumerate(case.rows) if row["e"] is not None and row["e"] > 0]
    make, judge, score, floored = RULES["minimax"]
    price = fees(costs, floored, path=True)
    twin = naive.Engine(
        case.features, judge, score, lambda name, bought, rows: price(name, ("e", *bought), rows), lambda r: naive.counts_of(r, 3), pure
    )
    engine = case.grower(counts(case.classes, 3), make(), on_path(costs))
    grown = engine.grow(np.array(some, np.int32), case.weights[some], context=on_path(costs, [4]))
    assert case.nested(grown, 3) == twin.grow([case.rows[r] for r in some])
    assert case.nested(engine.grow(np.array(some, np.int32), case.weights[some]), 3) != case.nested(grown, 3)


def test_rows_shared_out_find_more_room_where_they_need_it():
    forms = {f"x{k}": "every" for k in range(6)}
    case = Case(table(9, 200, forms, missing=0.3), forms)
    rule = rules.per_case("entropy", missing=kinds.FRACTIONS)
    engine = case.grower(counts(case.classes, 3, step=2.0**-20), rule, limits=limits(depth=4, gain=1e-9))
    tree = engine.grow(np.arange(200, dtype=np.int32), case.weights)
    assert engine._own.room > 200
    assert len(tree.feature) > 400
    total = sum(tree.values[: tree.value_start[1]])
    assert total == case.weights.sum()


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_all_rules_targets_and_prices_are_one_compilation():
    forms = {"a": "cut", "b": "one"}
    case, costs = Case(table(1, 50, forms, missing=0.0), forms), costs_of(forms)
    rows = np.arange(50, dtype=np.int32)
    owes = owing(case.binned.codes, case.binned.sizes)
    for target, rule, context in (
        (counts(case.classes, 3), RULES["minimax"][0](), constant(costs)),
        (counts(case.classes, 3, rows_counted=True), RULES["eg2"][0](), on_path(costs, [1])),
        (counts(case.classes, 3), rules.minimax(rules.impurity("polynomial", 3)), on_path(costs)),
        (counts(case.classes, 3), rules.penalty(np.ones((3, 3)) - np.eye(3)), constant(costs)),
        (objects(case.classes, 3, case.weights, 2.0), rules.regularized("gini", 1.0, 2.0), constant(costs)),
        (boosted(case, 2, 0), rules.loss(1.0, 0.1), of_cases(costs, owes, np.full(50, 10**7))),
    ):
        case.grower(target, rule, context, limits(leaves=4)).grow(rows, case.weights)
    assert len(grow.signatures) == 1
