"""Many rows at once, against one decision at a time and against scikit-learn."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from frugal.models import Ensemble, Feature, Leaf, Schema, Split, acquire, predict
from tests import strategies
from tests.converting import from_sklearn
from tests.models.test_decide import session
from tests.naive import deciding as naive


@st.composite
def model_and_rows(draw):
    model = draw(strategies.models())
    return model, draw(st.lists(strategies.rows_of(model.schema), min_size=1, max_size=4))


BUDGETS, CONFIDENCES, CAPS = (st.sampled_from(some) for some in ([None, None, 0, 0.3, 1, 2.5, 10], [None, None, 0.6, 1], [None, 0, 2]))


@given(model_and_rows(), BUDGETS, CONFIDENCES, CAPS)
def test_acquire_equals_decide_step_by_step(drawn, budget, confidence, cap):
    model, rows = drawn
    ensemble = strategies.ensemble_of(model)
    found = acquire(ensemble, model.schema.encode_rows(rows), budget, confidence=confidence, cap=cap)
    for r, row in enumerate(rows):
        asked, spent, last = session(ensemble, row, budget, confidence, cap)
        assert found.labels[r] == last.label
        assert found.probabilities[r].tolist() == list(last.probabilities.values())
        assert found.votes[r].tolist() == list(last.votes.values())
        assert found.cost[r] == spent
        bought = {name for name in asked if row[name] is not None}
        assert {name for name, got in zip(model.schema.names, found.acquired[r], strict=True) if got} == bought


def asked_for(model, row):
    """The features that any tree asks for on its way to its end."""
    for tree in model.trees:
        known = {}
        while (wanted := naive.walk(tree, known, model.schema)[1]) is not None:
            known[wanted] = row[wanted]
            yield wanted


@given(model_and_rows())
def test_predict_equals_its_naive_twin(drawn):
    model, rows = drawn
    labels, probabilities = predict(strategies.ensemble_of(model), model.schema.encode_rows(rows))
    for r, row in enumerate(rows):
        nodes = [naive.walk(tree, row, model.schema)[0] for tree in model.trees]
        label, chances, _ = naive.tell(model, nodes, [True] * len(nodes), {name: row[name] for name in asked_for(model, row)})
        assert labels[r] == model.classes[label]
        assert probabilities[r] == pytest.approx([float(p) for p in chances], rel=1e-7, abs=1e-11)


@pytest.fixture(scope="module")
def forest():
    X, y = make_classification(6000, 20, n_informative=8, n_classes=4, random_state=0)
    X = X.astype(np.float32)
    X[np.random.default_rng(0).random(X.shape) < 0.03] = np.nan
    return RandomForestClassifier(12, random_state=0).fit(X[:3000], y[:3000]), X[3000:]


@pytest.mark.parametrize("order", ["votes", "sequential"])
@pytest.mark.parametrize("stop", ["decided", "leaf"])
def test_agrees_with_a_scikit_learn_forest_row_by_row(forest, order, stop):
    grown, X = forest
    ensemble = from_sklearn(grown, order=order, stop=stop, smoothing=0)
    labels, probabilities = predict(ensemble, X)
    assert (labels == grown.predict(X)).all()
    assert probabilities == pytest.approx(grown.predict_proba(X), abs=1e-12)
    found = acquire(ensemble, X)
    assert (found.labels == labels).all()
    assert (found.cost == found.acquired.sum(axis=1)).all()


def test_any_number_of_threads_gives_the_same(forest):
    grown, X = forest
    ensemble = from_sklearn(grown)
    one, three = acquire(ensemble, X, 7), acquire(ensemble, X, 7, n_jobs=3)
    for name in ("labels", "probabilities", "cost", "acquired"):
        assert (getattr(one, name) == getattr(three, name)).all()
    assert one.cost.max() == 7


def test_a_missing_cell_costs_nothing_and_is_not_acquired():
    tree = Split("a", [1, 1], threshold=0, children=[Leaf([1, 0]), Leaf([0, 1])], missing=1)
    ensemble = Ensemble.of([tree], Schema([Feature("a"), Feature("b")]), [3, 4], classes=["x", "y"], vote="counts")
    found = acquire(ensemble, [[np.nan, 1.0], [-1.0, 1.0]])
    assert found.labels.tolist() == ["y", "x"]
    assert found.cost.tolist() == [0, 3]
    assert found.acquired.tolist() == [[False, False], [True, False]]


def test_tables_of_every_make_are_the_same_table(forest):
    grown, X = forest
    ensemble = from_sklearn(grown)
    expected = acquire(ensemble, X.astype(float)).cost
    locked = X.astype(float)
    locked.flags.writeable = False
    masked = np.ma.masked_array(np.nan_to_num(X), np.isnan(X))
    for table in (X, locked, np.asfortranarray(X), X.astype(object), X.tolist(), masked):
        assert (acquire(ensemble, table).cost == expected).all()


def test_one_long_tree_among_many_short_ones_costs_no_more_memory_than_both():
    tree = Leaf([1, 0])
    for i in range(30_000):
        tree = Split("f", [1, 1], threshold=float(i), children=[Leaf([0, 1]), tree])
    ensemble = Ensemble.of([tree, *(Leaf([1, 0]) for _ in range(30_000))], Schema([Feature("f")]), classes=["a", "b"], vote="majority")
    assert predict(ensemble, [[1e9]])[0].tolist() == ["a"]
    assert len(ensemble.trail) == 30_002
    assert ensemble.trail[-1] < 100_000


def test_no_rows_and_labels_of_mixed_kinds():
    ensemble = Ensemble.of([Leaf([0, 1])], Schema([Feature("a")]), classes=[1, "b"], vote="counts")
    assert acquire(ensemble, np.empty((0, 1))).labels.tolist() == []
    assert predict(ensemble, [[0.0]])[0].tolist() == ["b"]
    with pytest.raises(ValueError, match="the class a"):  # numpy drops a NUL at the end of a word
        Ensemble.of([Leaf([1, 0])], Schema([Feature("a")]), classes=["a\0", "b"], vote="counts")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0]], "expected a table with 2 columns, got one of shape (1, 1)"),
        ([[1.0, 0.0], [np.inf, 0.0]], "row 1, 'a' is inf: expected a finite number, or nan for missing"),
        ([[1.0, 2.0]], "row 0, 'b' is 2.0: expected a code from 0 to 1, or nan for missing"),
        ([[1.0, 0.5]], "row 0, 'b' is 0.5: expected a code from 0 to 1, or nan for missing"),
    ],
)
def test_a_wrong_table_is_refused(table, message):
    schema = Schema([Feature("a"), Feature("b", "categorical", ("x", "y"))])
    ensemble = Ensemble.of([Leaf([0, 1])], schema, classes=["x", "y"], vote="counts")
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        acquire(ensemble, table)
