"""Help with the budget: a table of aims, what else could be done, and words where a model is no good."""

import csv

import numpy as np
import pytest

from frugal.service.commands.reporting import report
from frugal.service.tables import read_file
from frugal.service.training.run import train
from frugal.service.training.spec import Spec

COSTS = {"a": {"cost": 4.0}, "b": {"cost": 2.0}, "noise": {"cost": 1.0}}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return read_file(_written(tmp_path_factory.mktemp("aims") / "table.csv", signal=1.0))


def _written(path, signal):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3)).round(3)
    said = signal * (X[:, 0] + 0.5 * X[:, 1]) + (0.4 if signal else 1.0) * rng.normal(size=900)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "b", "noise", "ill"])
        rows.writerows([*row, "yes" if score > 0.5 else "no"] for row, score in zip(X.tolist(), said.tolist(), strict=True))
    return str(path)


def spec(**changes):
    return Spec(**{"dataset": "t", "label": "ill", "learner": "frontier", "costs": COSTS} | changes)


def test_a_training_reports_what_each_aim_buys_and_what_else_could_be_done(table):
    done = train(table, spec(), n_jobs=1)
    metrics = done.ensemble.metrics
    assert metrics["suggested_aim"] in [row["aim"] for row in metrics["aims"]]
    assert [row["aim"] for row in metrics["aims"]] == sorted(row["aim"] for row in metrics["aims"])
    last = metrics["aims"][-1]
    assert last["error"] < 0.2 < metrics["commonest_class_error"]
    assert last["fixed_set"][:2] == ["a", "b"]
    assert all(row["mean_cost"] <= 1.15 * row["aim"] for row in metrics["aims"])
    assert all(0 <= row["stop_early"] <= 1 for row in metrics["aims"])
    assert max(metrics["instead"].values()) < 0.2
    assert done.warnings == []
    text = report(len(done.ensemble), metrics, {name: price["cost"] for name, price in COSTS.items()})
    assert "<- suggested" in text
    assert "boosted trees, each with everything bought for every case" in text


def test_a_model_of_noise_says_so(tmp_path):
    noise = read_file(_written(tmp_path / "noise.csv", signal=0.0))
    found = train(noise, spec(), n_jobs=1)
    assert found.ensemble.metrics["error"] >= found.ensemble.metrics["commonest_class_error"] - 0.02
    said = train(noise, spec(budget=7.0), n_jobs=1)
    if said.ensemble.metrics["mean_cost"] < 3.5:
        assert any("of a budget of 7 this model uses" in warning for warning in said.warnings)
    if said.ensemble.metrics["error"] >= said.ensemble.metrics["commonest_class_error"]:
        assert any("no better than always saying the commonest class" in warning for warning in said.warnings)


def test_an_unused_budget_is_said(table):
    done = train(table, spec(costs=COSTS | {"noise": {"cost": 1000.0}}, budget=900.0), n_jobs=1)
    assert any(warning.startswith("of a budget of 900 this model uses") for warning in done.warnings)


def test_mistakes_with_prices_are_reported_as_penalties(table):
    done = train(table, spec(penalties={"yes": {"no": 500.0}, "no": {"yes": 50.0}}), n_jobs=1)
    metrics = done.ensemble.metrics
    assert metrics["aims"][-1]["error"] > 0.2  # a mean penalty, not a share
    assert metrics["total_cost"] < metrics["penalty_of_one_label"]
    cheap = train(table, spec(penalties={"yes": {"no": 0.5}, "no": {"yes": 0.05}}), n_jobs=1)
    assert cheap.ensemble.metrics["mean_cost"] < 0.5


def test_a_learner_without_points_is_reported_beside_everything_bought(table):
    metrics = train(table, spec(learner="greedy-tree"), n_jobs=1).ensemble.metrics
    assert metrics["aims"] == []
    assert metrics["suggested_aim"] is None
    assert set(metrics["instead"]) == {"forest", "boosted"}
