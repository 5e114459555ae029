"""From a table to a measured ensemble."""

import numpy as np
import pytest

from frugal.models import Ensemble, acquire
from frugal.models.calibrate import calibration_error
from frugal.models.table import read_table
from frugal.service.tables import Columns, Reader
from frugal.service.training.measuring import measure
from frugal.service.training.run import Progress, split, train
from frugal.service.training.spec import Spec

ROWS = 400
RANDOM = np.random.default_rng(5)
COLOUR, SIZE, NOISE = RANDOM.choice(["red", "green", "blue"], ROWS), RANDOM.normal(size=ROWS).round(3), RANDOM.normal(size=ROWS).round(3)
TRUTH = np.where((COLOUR == "red") & (SIZE > 0), "yes", "no")
TABLE = "colour,size,noise,answer\n" + "".join(f"{c},{s},{n},{t}\n" for c, s, n, t in zip(COLOUR, SIZE, NOISE, TRUTH, strict=True))


def table(text: str = TABLE) -> Columns:
    with Reader() as reader:
        reader.feed(text.encode())
        return reader.finish()


def spec(**given: object) -> Spec:
    return Spec(**({"dataset": "toys", "label": "answer", "learner": "budget-forest", "params": {"max_trees": 5}} | given))


def test_it_is_measured_on_rows_the_learner_never_saw() -> None:
    done = train(table(), spec(costs={"size": {"cost": 2}}))
    test, kept = split(ROWS, 0.25, 0)
    assert len(test) == 100
    assert sorted([*test, *kept]) == list(range(ROWS))
    metrics = done.ensemble.metrics
    found = acquire(done.ensemble, read_table(table().only(["colour", "size", "noise"]).rows(test), schema=done.ensemble.schema).codes)
    assert metrics["rows"] == 100
    assert metrics["error"] == np.mean(found.labels != TRUTH[test])
    told = found.probabilities.max(axis=1)
    assert metrics["calibration_error"] == calibration_error(told, found.labels == TRUTH[test])
    assert metrics["mean_cost"] == pytest.approx(found.cost.mean())
    assert metrics["max_cost"] == found.cost.max()
    assert sum(count for row in metrics["confusion"].values() for count in row.values()) == 100
    assert {point["by"] for point in metrics["curve"]} == {"trees", "budget"}
    assert done.ensemble.costs["size"].cost == 2
    assert done.ensemble.costs["noise"].cost == 1  # not named


def test_the_same_spec_gives_the_same_model() -> None:
    first, second = (train(table(), spec(seed=7), n_jobs=jobs).ensemble for jobs in (1, 2))
    other = train(table(), spec(seed=8)).ensemble
    assert first.metrics == second.metrics
    assert (first.flat.threshold == second.flat.threshold).all()
    assert len(first.flat.threshold) != len(other.flat.threshold) or (first.flat.threshold != other.flat.threshold).any()


def test_progress_only_grows_and_names_its_phases() -> None:
    told: list[Progress] = []
    train(table(), spec(budget=3, params={"max_trees": 5, "alpha": [0, 1]}), told.append)
    assert [progress.fraction for progress in told] == sorted(progress.fraction for progress in told)
    assert list(dict.fromkeys(progress.phase for progress in told)) == ["growing", "measuring"]
    assert any(progress.trees and progress.mean_cost is not None for progress in told)


def test_total_and_normalised_cost_by_hand() -> None:
    """Two questions of cost 1, a penalty of 10 for every mistake: total and standard cost as ACT's section 4.2.2 defines them."""
    done = train(table(), spec(penalties=10))
    metrics, (test, _) = done.ensemble.metrics, split(ROWS, 0.25, 0)
    commonest = max(np.mean(TRUTH[test] == label) for label in ("no", "yes"))
    assert metrics["total_cost"] == pytest.approx(metrics["mean_cost"] + 10 * metrics["error"])
    assert metrics["standard_cost"] == pytest.approx(3 + 10 * (1 - commonest))
    assert metrics["normalised_cost"] == pytest.approx(metrics["total_cost"] / metrics["standard_cost"])


def test_a_dear_mistake_is_avoided() -> None:
    noisy = table(TABLE.replace(",yes\n", ",no\n", 20))
    even, wary = (train(noisy, spec(penalties=given)).ensemble for given in (1, {"yes": {"no": 1000}, "no": {"yes": 1}}))
    missed = [model.metrics["confusion"].get("yes", {}).get("no", 0) for model in (even, wary)]
    assert missed[1] <= missed[0]
    assert wary.penalties.tolist() == [[0, 1000], [1, 0]]  # row: what is said; column: what is true


def test_penalties_for_labels_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match=r"penalties name 'maybe'.*no, yes"):
        train(table(), spec(penalties={"maybe": {"no": 1}}))


def test_a_penalty_of_0_for_a_right_answer_may_be_written() -> None:
    done = train(table(), spec(penalties={"yes": {"no": 5, "yes": 0}}))
    assert done.ensemble.penalties.tolist() == [[0, 5], [0, 0]]


def test_without_test_rows_nothing_is_claimed() -> None:
    assert "error" not in train(table(), spec(test_fraction=0)).ensemble.metrics


def test_warnings_of_the_learner_are_kept() -> None:
    done = train(table(), spec(budget=0.5))
    assert any("no tree fits the budget" in warning for warning in done.warnings)
    assert isinstance(done.ensemble, Ensemble)


def test_one_label_among_the_rows_to_learn_from_is_refused() -> None:
    test, _ = split(30, spec().test_fraction, spec().seed)
    with pytest.raises(ValueError, match="one label only"):
        train(table("a,answer\n" + "".join(f"1,{'yes' if row == test[0] else 'no'}\n" for row in range(30))), spec())


def test_a_label_that_is_the_same_in_every_row_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^'answer' is the same in every row: there is nothing to learn$"):
        train(table("a,answer\n" + "1,no\n" * 30), spec())


def test_the_curve_of_a_prefix_is_that_of_the_forest_built_from_its_trees() -> None:
    """`prefix` shares arrays with the whole forest: it must decide as one that was built anew."""
    ensemble = train(table(), spec(params={"max_trees": 9})).ensemble
    codes = read_table(table().only(["colour", "size", "noise"]), schema=ensemble.schema).codes
    for trees in (1, 4, 9):
        anew = Ensemble(
            ensemble.flat.first(trees, ensemble.schema.arity), ensemble.schema, ensemble.costs, classes=ensemble.classes, vote="majority"
        )
        one, other = acquire(ensemble.prefix(trees), codes), acquire(anew, codes)
        assert (one.labels == other.labels).all()
        assert (one.acquired == other.acquired).all()
        assert ensemble.prefix(trees).used == anew.used


def test_large_tests_are_measured_whole_and_their_curves_on_some() -> None:
    ensemble = train(table(), spec()).ensemble
    X = table().only(["colour", "size", "noise"]).rows(np.arange(6000) % ROWS)
    found = measure(ensemble, X, TRUTH[np.arange(6000) % ROWS])
    assert found["rows"] == 6000
    assert found["curve"][-1]["error"] == pytest.approx(found["error"], abs=0.02)
