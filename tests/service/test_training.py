"""`frugal train`, `predict` and `ask` as they are typed."""

import csv
import gzip
import io
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.csv
import pytest
from pyarrow import parquet

from models import load
from service.interview import interview
from service.reading import read_file
from tests.service.test_cli import frugal

HEART = Path(__file__).parents[2] / "examples" / "heart"
EMPTY = pyarrow.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
TRAIN = ("train", "--data", HEART / "heart.csv", "--label", "disease", "--costs", HEART / "costs.csv", "--set", "max_trees=6")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "heart.safetensors"
    code, out, err = frugal(*TRAIN, "--budget", 60, "--set", "alpha=0,4", "--out", path, "--plot", path.with_suffix(".png"))
    assert (code, err) == (0, "")
    assert "measured on 75 rows the learner never saw" in out
    assert "mean cost" in out
    assert "chest_pain" in out
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    return path


def test_train_keeps_prices_questions_and_parameters(model):
    ensemble = load(model)
    assert ensemble.costs["thal"].cost == 102.9
    assert ensemble.schema["age"].question == "How old is the patient?"
    assert ensemble.schema["thal"].categories == ("fixed_defect", "normal", "reversible_defect")
    assert ensemble.parameters["alpha"] == [0, 4]
    assert ensemble.parameters["budget"] == 60
    assert ensemble.metrics["held_out"]["mean_cost"] <= 60


def test_training_twice_gives_the_same_bytes_and_gzip_is_read(model, tmp_path):
    with open(HEART / "heart.csv", "rb") as plain, gzip.open(tmp_path / "heart.csv.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    arguments = ["train", "--data", tmp_path / "heart.csv.gz", *TRAIN[3:], "--budget", 60, "--set", "alpha=0,4", "--jobs", 1]
    code, _, err = frugal(*arguments, "--out", tmp_path / "again.safetensors")
    assert (code, err) == (0, "")
    assert (tmp_path / "again.safetensors").read_bytes() == model.read_bytes()


def test_predict_gives_label_cost_and_features_per_row(model):
    code, out, _ = frugal("predict", "--model", model, "--data", HEART / "heart.csv", "--budget", 3)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 303
    ensemble = load(model)
    for row in rows:
        assert row["label"] in ("absent", "present")
        assert float(row["cost"]) == ensemble.costs.total(row["features"].split()) <= 3


def test_a_progress_bar_is_shown_on_a_terminal(tmp_path):
    main, side = pty.openpty()
    command = [sys.executable, "-m", "service.cli", *map(str, TRAIN), "--budget", "60", "--out", str(tmp_path / "m.safetensors")]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=side, check=True)
    os.close(side)
    shown = b""
    try:
        while part := os.read(main, 65536):
            shown += part
    except OSError:
        pass
    assert b"] growing, 6 trees, mean cost" in shown
    assert b" of 60.00" in shown


def test_ask_asks_until_it_knows_enough(model):
    ensemble = load(model)
    said: list[str] = []
    replies = {"age": "63", "chest_pain": "TYPICAL", "resting_bp": "145"}
    asked: list[str] = []

    def hear(prompt):
        asked.append(prompt)
        name = next((n for n in ensemble.schema.names if (ensemble.schema[n].question or "") in prompt), "")
        return replies.get(name, "?")

    closing = interview(ensemble, None, hear, said.append)
    assert "[costs 1.00]" in asked[0]
    assert any("spent 1.00" in line for line in said)
    assert closing.split()[0] in ("absent", "present")


def test_ask_takes_unknown_stop_and_wrong_values(model):
    done = subprocess.run(
        [sys.executable, "-m", "service.cli", "ask", "--model", str(model), "--budget", "60"],
        input="wrong\n?\n!\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "expected " in done.stdout
    assert ", ? for unknown or ! to stop now" in done.stdout
    assert "spent 0.00 of 60.00" in done.stdout
    assert "(stopped; " in done.stdout
    ended = subprocess.run(
        [sys.executable, "-m", "service.cli", "ask", "--model", str(model)], input="", capture_output=True, text=True, check=True
    )
    assert "(stopped; " in ended.stdout


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--label", "illness"], "has no column 'illness' to learn: its columns are age, sex"),
        (["--data", "none.csv"], "none.csv: No such file or directory"),
        (["--budget", "-1"], "the budget is -1.0: expected a number from 0"),
        (["--budget", "nan"], "the budget is nan"),
        (["--set", "alpha=-1"], "alpha is -1: expected a number of at least 0"),
        (["--set", "depth=3"], "--set depth=3: expected NAME=VALUE, where budget-forest knows impurity, alpha"),
        (["--set", "alpha"], "--set alpha: expected NAME=VALUE"),
        (["--learner", "greedy-tree", "--budget", "3"], "greedy-tree takes no budget"),
        (["--plot", "curve.gif"], "curve.gif: a plot's name ends in .png or .svg"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(tmp_path, changes, message):
    arguments = list(TRAIN)[: 7 if "greedy-tree" in changes else None]
    code, out, err = frugal(*arguments, "--out", tmp_path / "m.safetensors", *changes)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "m.safetensors").exists()


def test_a_price_list_that_leaves_something_open_is_told_before_the_training(tmp_path):
    costs, out = tmp_path / "costs.csv", tmp_path / "m.safetensors"
    costs.write_text("feature,cost\nage,3\nsex,1\nchest_pain,1\nresting_bp,1\nchol,7.27\nthal,102.9\n")
    code, _, err = frugal(*TRAIN[:5], "--costs", costs, "--set", "max_trees=2", "--out", out)
    assert code == 0
    assert err.splitlines() == [
        "frugal: warning: no price for 'cholesterol', 'fasting_sugar', 'resting_ecg', 'max_heart_rate', 'exercise_angina', "
        "'st_depression', 'st_slope', 'vessels': each costs 1",
        "frugal: warning: a price for 'chol' (did you mean 'cholesterol'?), which is no column: it is not used",
    ]
    assert [load(out).costs[name].cost for name in ("age", "cholesterol", "thal")] == [3, 1, 102.9]


def test_another_tables_price_list_is_refused(tmp_path):
    (tmp_path / "costs.csv").write_text("feature,cost\nwidth,1\n")
    code, _, err = frugal(*TRAIN[:5], "--costs", tmp_path / "costs.csv", "--out", tmp_path / "m")
    assert code == 2
    assert "prices for 'width', and none of them is a column: the columns are 'age', 'sex'" in err


def test_a_budget_too_small_warns_and_still_writes_a_model(tmp_path):
    code, out, err = frugal(*TRAIN, "--budget", "0.5", "--out", tmp_path / "m.safetensors")
    assert code == 0
    assert "frugal: warning: no tree fits the budget of 0.5 per case" in err
    assert "max cost     0.00" in out


def test_a_table_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match=r"t\.csv: row 3 has 1 cells, the first line 2"):
        read_file(path)


def test_every_format_trains_the_same_model(tmp_path):
    plain = HEART / "heart.csv"
    (tmp_path / "heart.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    parquet.write_table(pyarrow.csv.read_csv(plain, convert_options=EMPTY), tmp_path / "heart.parquet")
    models = []
    for data in (plain, tmp_path / "heart.csv.gz", tmp_path / "heart.parquet"):
        code, _, err = frugal("train", "--data", data, "--label", "disease", "--set", "max_trees=2", "--out", tmp_path / "m")
        assert (code, err) == (0, "")
        models.append((tmp_path / "m").read_bytes())
    assert models[0] == models[1] == models[2]
