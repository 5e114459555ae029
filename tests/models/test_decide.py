"""The rules of `decide`, against its naive twin and as invariants over random models."""

import itertools
import math
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugal.models import Ask, CostModel, Ensemble, Feature, Leaf, Price, Schema, Split, Stop, Wait, decide, predict, stand
from tests import strategies
from tests.naive import deciding as naive


def session(ensemble, row, budget=None, confidence=None, cap=None):
    """Answer every question from a full row: (the features asked, what was paid, the last decision)."""
    answers, asked, spent = {}, [], 0.0
    while True:
        decision = decide(ensemble, answers, budget, spent, confidence=confidence, cap=cap)
        if not isinstance(decision, Ask):
            return asked, spent, decision
        asked.append(decision.feature)
        answers[decision.feature] = row[decision.feature]
        spent = round(spent + (decision.cost if row[decision.feature] is not None else 0), 6)


@st.composite
def model_and_case(draw):
    model = draw(strategies.models())
    return model, draw(strategies.cases(model))


@st.composite
def model_and_row(draw, **kind):
    model = draw(strategies.models(**kind))
    return model, draw(strategies.rows_of(model.schema))


@given(model_and_case())
def test_decide_equals_its_naive_twin(drawn):
    model, (answers, situation) = drawn
    expected = naive.decide(model, answers, **situation)
    standing = stand(strategies.ensemble_of(model), answers, **situation)
    decision = standing.decision
    if isinstance(decision, Ask):
        found = ["ask", decision.feature, decision.cost]
    elif isinstance(decision, Wait):
        found = ["wait", decision.features]
    else:
        found = ["stop", decision.reason]
        assert decision.label == standing.label
        assert decision.probabilities == standing.probabilities
        assert decision.votes == standing.votes
    assert found == expected[: len(found)]
    assert list(standing.votes.values()) == pytest.approx(expected[-1])
    assert list(standing.probabilities.values()) == pytest.approx(expected[-2], rel=1e-7, abs=1e-11)
    assert standing.label == model.classes[expected[-3]]


@given(model_and_row(), st.sampled_from([None, 0, 0.3, 1, 2.5, 10]))
def test_never_spends_more_than_the_budget_and_never_asks_twice(drawn, budget):
    model, row = drawn
    asked, spent, last = session(strategies.ensemble_of(model), row, budget)
    assert isinstance(last, Stop)
    assert budget is None or spent <= budget
    assert len(set(asked)) == len(asked)
    assert spent == model.costs.total([name for name in asked if row[name] is not None])


@given(model_and_row())
def test_walking_a_full_row_equals_predict(drawn):
    model, row = drawn
    codes = model.schema.encode_rows([row])
    label = predict(strategies.ensemble_of(model), codes)[0][0]
    stops = ("leaf", "decided") if model.reader is None else ("leaf",)
    for order, stop in itertools.product(("sequential", "votes"), stops):
        assert session(strategies.ensemble_of(model, order=order, stop=stop), row)[2].label == label


@given(model_and_case())
def test_decided_never_changes_a_label(drawn):
    """Whatever the open questions are answered, one by one and up to any point, the label stays."""
    model, (answers, _) = drawn
    ensemble = strategies.ensemble_of(model, stop="decided")
    standing = stand(ensemble, answers)
    if not (isinstance(standing.decision, Stop) and standing.decision.reason == "decided"):
        return
    unanswered = [feature for feature in model.schema.features if feature.name not in answers]
    options = [[*(feature.categories or (0, 1, 2, 3)), None, "unasked"] for feature in unanswered]
    for values in itertools.islice(itertools.product(*options), 300):
        more = {f.name: v for f, v in zip(unanswered, values, strict=True) if v != "unasked"}
        assert stand(ensemble, answers | more).label == standing.label


@given(model_and_case(), st.randoms(use_true_random=False))
def test_the_order_in_which_answers_are_listed_does_not_matter(drawn, shuffler):
    model, (answers, situation) = drawn
    ensemble = strategies.ensemble_of(model)
    names = list(answers)
    shuffler.shuffle(names)
    assert stand(ensemble, {name: answers[name] for name in names}, **situation) == stand(ensemble, answers, **situation)


@given(model_and_case())
def test_nothing_is_asked_that_is_answered_pending_or_too_dear(drawn):
    model, (answers, situation) = drawn
    decision = decide(strategies.ensemble_of(model), answers, **situation)
    if isinstance(decision, Ask):
        assert decision.feature not in answers
        assert decision.feature not in situation["pending"]
        assert situation["budget"] is None or decision.cost <= situation["budget"] - situation["spent"] + 1e-9


def fever(**settings):
    schema = Schema([Feature("fever", "categorical", ("no", "yes")), Feature("age"), Feature("test", "categorical", ("-", "+"))])
    costs = CostModel([Price("fever", 1), Price("age", 2), Price("test", 10)])
    tree = Split(
        "fever",
        [60, 40],
        branches={"no": 0, "yes": 1},
        children=[
            Split("age", [50, 10], threshold=65, children=[Leaf([48, 2]), Leaf([2, 8])]),
            Split("test", [10, 30], branches={"-": 0, "+": 1}, children=[Leaf([9, 1]), Leaf([1, 29])]),
        ],
    )
    return Ensemble.of([tree], schema, costs, classes=["well", "flu"], vote="counts", **settings)


def test_every_reason_to_stop():
    ensemble = fever()
    assert decide(ensemble, {"fever": "no", "age": 70}).reason == "leaf"
    assert decide(ensemble, {"fever": "yes"}, budget=10, spent=1).reason == "budget"
    assert decide(ensemble, {"fever": "yes"}, confidence=0.7).reason == "confident"
    assert decide(ensemble, {"fever": "yes"}, confidence=0.8) == Ask(
        "test", 10.0, {"trees_waiting": 1, "votes_undecided": 1.0, "price": 10.0}
    )
    sure = Split("age", [9, 1], threshold=1, children=[Leaf([8, 1]), Leaf([1, 0])])
    schema = Schema([Feature("age")])
    assert decide(Ensemble.of([sure], schema, classes=["a", "b"], vote="majority"), {}).reason == "decided"
    stuck = Split("age", [9, 1], threshold=1, children=[Leaf([8, 0]), Leaf([0, 1])], missing=-1)
    assert decide(Ensemble.of([stuck], schema, classes=["a", "b"], vote="majority"), {"age": None}).reason == "exhausted"


def test_a_pending_feature_is_waited_for():
    assert decide(fever(), {"fever": "yes"}, pending=["test"]) == Wait(("test",))
    assert decide(fever(), {}, pending=["fever"]) == Wait(("fever",))


def test_ahead_offers_all_that_may_be_needed_below_a_pending_feature():
    ahead = fever(delayed="ahead", order="sequential")
    assert decide(ahead, {}, pending=["fever"]).feature == "age"
    assert decide(ahead, {"age": 3}, pending=["fever"]).feature == "test"
    assert decide(ahead, {"age": 3}, pending=["fever", "test"]) == Wait(("fever",))
    assert decide(ahead, {"age": 3}, budget=5, pending=["fever"]) == Wait(("fever",))


def test_many_features_of_one_group_offered_ahead_do_not_overflow():
    names = [f"f{i}" for i in range(12)]
    tree = Leaf([1, 0])
    for name in reversed(["root", *names]):
        tree = Split(name, [1, 1], threshold=0, children=[tree, Leaf([0, 1])])
    costs = CostModel([Price("root", 1), *(Price(name, 1, "g", 0.5) for name in names)])
    ensemble = Ensemble.of([tree], Schema(map(Feature, ["root", *names])), costs, classes=["a", "b"], vote="counts", delayed="ahead")
    assert decide(ensemble, {}, pending=["root"]).feature == "f0"


def test_ahead_follows_the_children_in_their_order():
    def stump(name):
        return Split(name, [1, 1], threshold=0, children=[Leaf([1, 0]), Leaf([0, 1])])

    tree = Split("c", [1, 1], branches={"a": 1, "b": 0}, children=[stump("x"), stump("y")])
    schema = Schema([Feature("c", "categorical", ("a", "b")), Feature("x"), Feature("y")])
    ensemble = Ensemble.of([tree], schema, classes=["p", "q"], vote="counts", delayed="ahead", order="sequential")
    assert decide(ensemble, {}, pending=["c"]).feature == "x"


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.floats(3e-9, 1e-8), st.sampled_from([1e7, 1e8, 1e10]))
def test_decided_is_sound_under_penalties_of_very_different_size(a, c, d, big):
    trees = [
        Leaf([a, a + d, 0]),
        Split("x", [0, 0, 0], threshold=0, children=[Leaf([0, 0, 0]), Leaf([0, 0, c])]),
    ]
    ensemble = Ensemble.of(
        trees, Schema([Feature("x")]), classes=list("pqr"), vote="counts", penalties=[[0, 1, big], [1, 0, big], [big, big, 0]]
    )
    decision = decide(ensemble, {})
    assert not isinstance(decision, Stop) or decision.label == decide(ensemble, {"x": 1}).label


def test_an_unseen_category_goes_where_missing_goes():
    tree = Split("colour", [5, 5], branches={"red": 0, "green": 1}, children=[Leaf([5, 1]), Leaf([0, 4])])
    schema = Schema([Feature("colour", "categorical", ("red", "green", "blue"))])
    ensemble = Ensemble.of([tree], schema, classes=["a", "b"], vote="counts")
    assert decide(ensemble, {"colour": "blue"}) == decide(ensemble, {"colour": None}) == decide(ensemble, {"colour": "red"})


def test_a_group_competes_as_one_candidate():
    """One tree wants c for 4; two want a and b of one group, 5 each and 1 once it is entered: 2 votes for 6 beat 1 for 4."""
    schema = Schema([Feature(name) for name in "abc"])

    def stump(name):
        return Split(name, [1, 1], threshold=0, children=[Leaf([1, 0]), Leaf([0, 1])])

    costs = CostModel([Price("a", 5, "g", 1), Price("b", 5, "g", 1), Price("c", 4)])
    ensemble = Ensemble.of([stump("c"), stump("a"), stump("b")], schema, costs, classes=["x", "y"], vote="majority")
    decision = decide(ensemble, {})
    assert (decision.feature, decision.cost, decision.why["price"]) == ("a", 5.0, 6.0)
    assert decide(ensemble, {"a": 1}).feature == "b"


@given(model_and_case())
def test_told_probabilities_put_the_label_first_and_come_to_one(drawn):
    model, (answers, _) = drawn
    standing = stand(strategies.ensemble_of(model), answers)
    told = standing.probabilities
    assert sum(told.values()) == pytest.approx(1)
    assert all(0 <= p <= 1 for p in told.values())
    if model.penalties is None:
        assert max(told, key=told.get) == standing.label  # max gives the first of several


@given(model_and_case(), st.sampled_from([0.3, 0.55, 0.7, 0.9]))
def test_confidence_compares_the_told_probability_of_the_label(drawn, confidence):
    model, (answers, _) = drawn
    standing = stand(strategies.ensemble_of(model, stop="leaf", sureness="label"), answers, confidence=confidence)
    sure = standing.probabilities[standing.label] >= confidence
    reason = getattr(standing.decision, "reason", None)
    assert reason in ("leaf", "exhausted") or (reason == "confident") == sure


def test_a_forest_tells_the_smoothed_mean_of_its_trees_shares_and_its_votes_apart():
    """Three trees of 8 cases each: two say a by 5 of 8, one b by 8 of 8; one case of the shares at the roots is added to each."""
    trees = [Leaf([5, 3]), Leaf([5, 3]), Leaf([0, 8])]
    ensemble = Ensemble.of(trees, Schema([]), classes=["a", "b"], vote="majority")
    prior = (5 / 8 + 5 / 8 + 0) / 3
    shares = [(5 + prior) / 9, (5 + prior) / 9, prior / 9]
    found = decide(ensemble, {})
    assert (found.label, found.votes) == ("a", {"a": 2 / 3, "b": 1 / 3})
    assert sum(shares) / 3 < 0.5  # the shares alone would put b first: the two are pooled, and a leads by a hair
    assert found.probabilities == pytest.approx({"a": 0.5, "b": 0.5})
    assert found.probabilities["a"] > 0.5 > found.probabilities["b"]
    trees[2] = Leaf([3, 5])
    found = decide(Ensemble.of(trees, Schema([]), classes=["a", "b"], vote="majority"), {})
    prior = (5 / 8 + 5 / 8 + 3 / 8) / 3
    assert found.probabilities["a"] == pytest.approx((2 * (5 + prior) / 9 + (3 + prior) / 9) / 3)


def test_weights_count_in_what_a_forest_tells():
    trees = [Leaf([6, 2]), Leaf([2, 6])]
    ensemble = Ensemble.of(trees, Schema([]), classes=["a", "b"], vote="weighted", weights=[3, 1], smoothing=0)
    found = decide(ensemble, {})
    assert (found.probabilities["a"], found.votes["a"]) == (pytest.approx((3 * 6 / 8 + 2 / 8) / 4), 0.75)


def test_three_classes_are_pooled_with_the_label_and_the_rest_stays():
    trees = [Leaf([4, 3, 3, 0]), Leaf([4, 3, 3, 0]), Leaf([0, 5, 4, 1])]
    told = decide(Ensemble.of(trees, Schema([]), classes=list("abcd"), vote="majority", smoothing=0), {}).probabilities
    mean = (8 / 30 + 11 / 30 + 10 / 30) / 3
    assert told == pytest.approx({"a": mean, "b": mean, "c": mean, "d": 1 / 30}, abs=1e-8)
    assert told["a"] > told["b"] == told["c"]


def test_calibration_moves_nothing_where_nothing_is_known_and_all_of_it_at_one_case():
    tree = Split(
        "age", [6, 2], threshold=1, children=[Leaf([6, 0]), Split("age", [0, 2], threshold=2, children=[Leaf([0, 1]), Leaf([0, 1])])]
    )
    settings = {"classes": ["a", "b"], "vote": "counts", "stop": "leaf", "smoothing": 1}
    plain = Ensemble.of([tree], Schema([Feature("age")]), **settings)
    moved = plain.with_settings(calibration={"slope": -0.5, "end_bias": 0.125, "bias": [0.0, 1.0]})
    assert stand(moved, {}).probabilities == stand(plain, {}).probabilities == {"a": 0.75, "b": 0.25}
    at_one = stand(plain, {"age": 3}).probabilities["b"]
    assert at_one == pytest.approx((1 + 0.25) / 2)
    odds = math.log(at_one / (1 - at_one))
    assert stand(moved, {"age": 3}).probabilities["b"] == pytest.approx(1 / (1 + math.exp(-(0.5 * odds + 1.0 + 0.125))))
    a, here = stand(plain, {"age": 0}).probabilities["a"], math.log(8 / 6) / math.log(8)
    odds = math.log(a / (1 - a))
    assert stand(moved, {"age": 0}).probabilities["a"] == pytest.approx(1 / (1 + math.exp(-(odds - here * 0.5 * odds + 0.125))))
    low = plain.with_settings(calibration={"slope": 0.0, "end_bias": 0.0, "bias": [0.0, -20.0]})
    told = stand(low, {"age": 3})
    assert (told.label, told.probabilities["b"]) == ("b", pytest.approx(0.5))
    assert told.probabilities["b"] > told.probabilities["a"]  # whatever the map says, the label stays first


def test_ties_go_to_the_first_class():
    schema = Schema([Feature("a")])
    for vote in ("majority", "counts", "weighted", "additive"):
        ensemble = Ensemble.of([Leaf([1, 0]), Leaf([0, 1])], schema, classes=["z", "a"], vote=vote)
        assert decide(ensemble, {}).label == "z"
        assert predict(ensemble, [[0.0]])[0].tolist() == ["z"]


def test_penalties_choose_the_class_of_least_expected_penalty():
    ensemble = Ensemble.of([Leaf([9, 1])], Schema([]), classes=["well", "ill"], vote="counts", penalties=[[0, 100], [5, 0]])
    assert decide(ensemble, {}).label == "ill"


def test_two_scores_with_the_first_zero_are_a_sigmoid():
    ensemble = Ensemble.of([Leaf([0, 0.3]), Leaf([0, -1.3])], Schema([]), classes=[0, 1], vote="additive")
    assert decide(ensemble, {}).probabilities[1] == pytest.approx(1 / (1 + 2.718281828459045), rel=1e-12)


def test_a_probability_that_is_certain_is_1_and_confidence_1_never_stops():
    """Three trees of one class: (3 + .5) / 3.5 summed three times and divided by 3 came to just below 1, or above."""
    asks = Split("f", [3], threshold=0.5, children=[Leaf([0]), Leaf([0])])
    for trees in ([asks], [Leaf([2]), asks], [Leaf([3]), Leaf([3]), asks], [Leaf([n]) for n in range(1, 9)] + [asks]):
        for smoothing in (0.5, 0.1, 1 / 3):
            ensemble = Ensemble.of(trees, Schema([Feature("f")]), classes=["c"], vote="majority", stop="leaf", smoothing=smoothing)
            standing = stand(ensemble, {}, confidence=1)
            assert standing.probabilities == {"c": 1.0}
            assert standing.decision.feature == "f"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"answers": {"pulse": 3}}, "no feature 'pulse': the features are 'fever', 'age', 'test'"),
        ({"answers": {"fever": "maybe"}}, "'fever' is 'maybe': expected one of 'no', 'yes'"),
        ({"answers": {"age": float("nan")}}, "'age' is nan: expected a finite number"),
        ({"answers": {}, "budget": -1}, "the budget is -1: expected a number from 0"),
        ({"answers": {}, "budget": float("nan")}, "the budget is nan"),
        ({"answers": {}, "spent": -1, "budget": 1}, "spent is -1"),
        ({"answers": {}, "confidence": "0.5"}, "the confidence is '0.5': expected a number"),
        ({"answers": {}, "spent": None}, "spent is None: expected a number"),
        ({"answers": {}, "confidence": 1.5}, "the confidence is 1.5: expected a number above 0 and at most 1"),
        ({"answers": {}, "pending": ["pulse"]}, "no feature 'pulse'"),
        ({"answers": {}, "bought": ["pulse"]}, "no feature 'pulse'"),
        ({"answers": {"age": 3}, "pending": ["age"]}, "'age' is pending and answered"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        decide(fever(), **arguments)


def test_extremes_work():
    nothing = Ensemble.of([Leaf([2, 1])], Schema([]), classes=["a", "b"], vote="counts")
    assert decide(nothing, {}) == Stop("a", {"a": 2 / 3, "b": 1 / 3}, {"a": 2 / 3, "b": 1 / 3}, "leaf")
    many = Ensemble.of([Leaf([1 if c == 700 else 0 for c in range(1000)])], Schema([]), classes=list(range(1000)), vote="majority")
    assert decide(many, {}).label == 700
    alone = Ensemble.of(
        [Split("f", [1], threshold=0, children=[Leaf([1]), Leaf([1])])],
        Schema([Feature("f")]),
        classes=["a"],
        vote="majority",
    )
    assert decide(alone, {}) == Stop("a", {"a": 1.0}, {"a": 1.0}, "decided")
    names = tuple(f"k{i}" for i in range(10_000))
    split = Split("f", [5, 5], branches={name: i % 2 for i, name in enumerate(names)}, children=[Leaf([5, 0]), Leaf([0, 5])])
    wide = Ensemble.of([split], Schema([Feature("f", "categorical", names)]), classes=["even", "odd"], vote="counts")
    assert [decide(wide, {"f": f"k{i}"}).label for i in (0, 9_999)] == ["even", "odd"]


def test_deep_trees_neither_overflow_nor_recurse():
    tree = Leaf([1, 0])
    for i in range(20_000):
        tree = Split("f", [1, 1], threshold=float(i), children=[Leaf([0, 1]), tree])
    ensemble = Ensemble.of([tree], Schema([Feature("f")]), classes=["a", "b"], vote="counts")
    assert decide(ensemble, {"f": 1e9}).label == "a"
    assert predict(ensemble, [[1e9], [-1.0]])[0].tolist() == ["a", "b"]
    assert len(ensemble.text(0).splitlines()) == 40_001


def test_the_same_in_another_process():
    code = "import tests.models.test_decide as t; print(t.decide(t.fever(), {'fever': 'yes'}, budget=11, seed=3))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert other == str(decide(fever(), {"fever": "yes"}, budget=11, seed=3))
