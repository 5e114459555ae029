"""Cases that only one rule decides: the cheapest way into a group, the floor of a price, the margin of a lead."""

import numpy as np
import pytest

from frugal.models import Ask, CostModel, Ensemble, Feature, GreedyTreeClassifier, Leaf, Price, Schema, Split, Stop, acquire, decide


def asking(feature):
    return Split(feature, [1, 1], [Leaf([1, 0]), Leaf([0, 1])], threshold=0.5)


def forest(wants, prices):
    """Trees of one question each, by the features they want."""
    schema = Schema(Feature(price.feature) for price in prices)
    return Ensemble.of([asking(name) for name in wants], schema, CostModel(prices), classes=["a", "b"], vote="majority", order="votes")


def first_question(ensemble):
    decision = decide(ensemble, {})
    assert isinstance(decision, Ask)
    row = np.zeros((1, len(ensemble.schema)))
    limited = acquire(ensemble, row, budget=decision.cost)  # the kernel over tables chooses alike
    assert limited.acquired[0, ensemble.schema.position(decision.feature)]
    return decision


def test_a_group_is_weighed_by_its_cheapest_way_in():
    """Two trees wait for the group, one for `alone`. In by `cheap` the group costs 2 + 1 for two votes, in by `dear` 10 + 1."""
    prices = [Price("alone", 2.5), Price("dear", 10, "g", 1), Price("cheap", 2, "g", 1)]
    question = first_question(forest(["dear", "cheap", "alone"], prices))
    assert (question.feature, question.cost, question.why["price"]) == ("cheap", 2, 3)


def test_the_cheapest_way_in_does_not_hang_on_the_order_of_the_members():
    prices = [Price("alone", 2.5), Price("cheap", 2, "g", 1), Price("dear", 10, "g", 1)]
    question = first_question(forest(["cheap", "dear", "alone"], prices))
    assert (question.feature, question.why["price"]) == ("cheap", 3)


def test_prices_below_a_hundredth_of_the_mean_count_as_that_hundredth():
    """Both are below the floor of .33, so votes alone count; by their own prices `tiny` would win, 1 vote for .01 against 2 for .03."""
    prices = [Price("tiny", 0.01), Price("small", 0.03), Price("huge", 100)]
    question = first_question(forest(["tiny", "small", "small"], prices))
    assert (question.feature, question.cost) == ("small", 0.03)


def test_a_groups_price_has_the_same_floor():
    """Two trees want `tiny`, one wants the group, for which .02 would be little were it not below the floor too."""
    prices = [Price("tiny", 0.01), Price("one", 0.02, "g", 0.01), Price("huge", 100)]
    question = first_question(forest(["tiny", "tiny", "one"], prices))
    assert question.feature == "tiny"


def test_growing_does_not_take_a_free_feature_that_tells_next_to_nothing():
    """The free one sets a single case apart: worth 499 pairs. The other, for 1, is worth 250,000: more than the floor's factor of 200."""
    y = np.arange(1000) % 2
    X = np.column_stack([np.arange(1000) == 7, y]).astype(float)
    tree = GreedyTreeClassifier(costs=[0, 1]).fit(X, y)
    assert tree.ensemble_.used == {"x1"}


@pytest.mark.parametrize(("ahead", "stops"), [(0.0, False), (1e-12, False), (1e-10, False), (1e-8, True), (0.5, True)])
@pytest.mark.parametrize("vote", ["weighted", "counts", "additive"])
def test_a_lead_of_floats_decides_only_beyond_a_billionth_of_the_weight(vote, ahead, stops):
    """A tree that is done gives 1 and a little more to b, one that waits can still give 1 to a."""
    done, waiting = Leaf([0, 1]), Split("x", [0.0, 0.0] if vote == "additive" else [1, 1], [Leaf([1, 0]), Leaf([0, 1])], threshold=0.5)
    ensemble = Ensemble.of([done, waiting], Schema([Feature("x")]), classes=["a", "b"], vote=vote, weights=[1 + ahead, 1], stop="decided")
    decision = decide(ensemble, {})
    assert isinstance(decision, Stop if stops else Ask)
    assert acquire(ensemble, [[0.0]]).cost.tolist() == [0.0 if stops else 1.0]
