"""`frugal train`, `predict` and `ask` as they are typed."""

import csv
import gzip
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from pyarrow import parquet

from frugal.models import Ensemble, Feature, Leaf, Schema, Split, acquire, dump, load
from frugal.models.table import read_table
from frugal.service.commands.interview import interview
from frugal.service.commands.main import main
from frugal.service.tables import read_file
from tests.examples import aimed
from tests.service.commands.test_main import frugal, unread

HEART = Path(__file__).parents[2] / "examples" / "heart"
EMPTY = pyarrow.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
BUDGET = 5  # of which the forest uses most, so that nothing is warned of
NO_GOOD = "frugal: warning: this model is no better than"
FOREST = ("--learner", "budget-forest")
TRAIN = ("train", "--data", HEART / "heart.csv", "--label", "disease", "--costs", HEART / "costs.csv", *FOREST, "--set", "max_trees=6")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "heart.safetensors"
    code, out, err = frugal(*TRAIN, "--budget", BUDGET, "--set", "alpha=0,4", "--out", path, "--plot", path.with_suffix(".png"))
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
    assert ensemble.parameters["budget"] == BUDGET
    assert ensemble.metrics["held_out"]["mean_cost"] <= BUDGET


def test_training_twice_gives_the_same_bytes_and_gzip_is_read(model, tmp_path):
    with open(HEART / "heart.csv", "rb") as plain, gzip.open(tmp_path / "heart.csv.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    arguments = ["train", "--data", tmp_path / "heart.csv.gz", *TRAIN[3:], "--budget", BUDGET, "--set", "alpha=0,4", "--jobs", 1]
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


@pytest.mark.parametrize("way", [{}, {"aim": 4.5}, {"aim": 20}, {"confidence": 0.55}, {"aim": 4.5, "budget": 5}, {"budget": 60}])
def test_predict_stops_where_python_does(tmp_path, way):
    ensemble = aimed()
    dump(ensemble, tmp_path / "m")
    write(
        tmp_path / "t.csv", [{"fever": "yes", "sugar": sugar, "iron": 12, "scan": scan} for sugar, scan in ((80, "dark"), (120, "clear"))]
    )
    options = [word for name, value in way.items() for word in (f"--{name}", value)]
    code, out, _ = frugal("predict", "--model", tmp_path / "m", "--data", tmp_path / "t.csv", *options)
    codes = ensemble.schema.encode_rows([{"fever": "yes", "sugar": s, "iron": 12, "scan": d} for s, d in ((80, "dark"), (120, "clear"))])
    found = acquire(ensemble, codes, **way)
    assert code == 0
    assert [(row["label"], float(row["cost"])) for row in csv.DictReader(io.StringIO(out))] == list(
        zip(found.labels, found.cost, strict=True)
    )


def test_predict_aims_only_by_operating_points(model):
    code, out, err = frugal("predict", "--model", model, "--data", HEART / "heart.csv", "--aim", 5)
    assert (code, out) == (2, "")
    assert f"frugal: --aim: {model} has no operating points; give --budget or --confidence, or train it again" in err


def test_without_a_learner_train_makes_a_model_for_every_budget(tmp_path):
    weights = ("--set", 'class_weight={"present": 5}', "--set", "learners=budget-forest", "--set", "reader=false")
    code, _, err = frugal(*TRAIN[:7], "--budget", 20, *weights, "--out", tmp_path / "m")
    ensemble = load(tmp_path / "m")
    assert (code, ensemble.learner) == (0, "frontier"), err
    assert ensemble.parameters["class_weight"] == {"present": 5}
    assert ensemble.parameters["learners"] == ["budget-forest"]
    assert ensemble.frontier.points[ensemble.frontier.default].cost <= 20


@pytest.mark.parametrize("weights", ["balanced", '{"present": 5}', '{"present": 0.5, "absent": 2}', "none"])
def test_class_weights_are_typed_as_a_word_or_as_json(tmp_path, weights):
    code, _, err = frugal(*TRAIN, "--set", f"class_weight={weights}", "--out", tmp_path / "m")
    assert code == 0, err
    expected = {"balanced": "balanced", "none": None}.get(weights) if weights in ("balanced", "none") else json.loads(weights)
    assert load(tmp_path / "m").parameters["class_weight"] == expected


def test_predict_wants_only_the_columns_that_trees_ask_for(model, tmp_path):
    ensemble = load(model)
    with open(HEART / "heart.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    asked = [name for name in rows[0] if name in ensemble.used]
    assert 0 < len(asked) < 13
    write(tmp_path / "asked.csv", [{"patient": f"{r:04}", **{name: row[name] for name in asked}} for r, row in enumerate(rows)])
    code, whole, _ = frugal("predict", "--model", model, "--data", HEART / "heart.csv")
    assert (code, frugal("predict", "--model", model, "--data", tmp_path / "asked.csv")) == (0, (0, whole, ""))
    short = [{name: value for name, value in row.items() if name != asked[0]} | {asked[0][:-1]: 1} for row in rows]
    write(tmp_path / "short.csv", short)
    code, out, err = frugal("predict", "--model", model, "--data", tmp_path / "short.csv")
    assert (code, out) == (2, "")
    assert f"short.csv: the table lacks the column {asked[0]!r} (did you mean {asked[0][:-1]!r}?), which is needed" in err


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_predict_gives_the_probabilities_that_python_gives(model):
    _, out, _ = frugal("predict", "--model", model, "--data", HEART / "heart.csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["row", "label", "p_absent", "p_present", "cost", "features"]
    ensemble = load(model)
    found = acquire(ensemble, read_table(read_file(HEART / "heart.csv").only(ensemble.schema.names), schema=ensemble.schema).codes)
    told = np.array([[float(row["p_absent"]), float(row["p_present"])] for row in rows])
    np.testing.assert_allclose(told, found.probabilities, atol=1e-6)
    assert [row["label"] for row in rows] == found.labels.tolist()


@pytest.mark.parametrize("last", ["029", 'Doe, "J"'])
def test_predict_copies_an_id_as_it_is_written_and_writes_a_file(model, tmp_path, last):
    with open(HEART / "heart.csv", newline="") as file:
        rows = list(csv.DictReader(file))[:30]
    ids = [f"{r:03}" for r in range(29)] + [last]
    write(tmp_path / "cases.csv", [{"case no": id, **row} for id, row in zip(ids, rows, strict=True)])
    arguments = ("predict", "--model", model, "--data", tmp_path / "cases.csv")
    assert frugal(*arguments, "--id", "case no", "--out", tmp_path / "p.csv") == (0, f"30 rows written to {tmp_path / 'p.csv'}\n", "")
    told = list(csv.DictReader(io.StringIO((tmp_path / "p.csv").read_text())))
    assert list(told[0]) == ["case no", "label", "p_absent", "p_present", "cost", "features"]
    assert [row["case no"] for row in told] == ids
    _, plain, _ = frugal(*arguments)
    for one, other in zip(told, csv.DictReader(io.StringIO(plain)), strict=True):
        assert {**one, "row": other["row"]} == {**other, "case no": one["case no"]}
    code, out, _ = frugal(*arguments, "--id", "age")  # one that the model asks for too
    assert (code, [row["age"] for row in csv.DictReader(io.StringIO(out))]) == (0, [row["age"] for row in rows])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--id", "caseno"], "heart.csv: the table lacks the column 'caseno', which is needed: its columns are 'age', 'sex'"),
        (["--id", "label"], "--id label: the output has a column of this name already"),
        (["--out", "none/p.csv"], "none/p.csv cannot be written: there is no folder "),
        (["--budget", "-1"], "the budget is -1"),
    ],
)
def test_what_is_wrong_with_predict_is_one_line(model, changes, message):
    code, out, err = frugal("predict", "--model", model, "--data", HEART / "heart.csv", *changes)
    assert (code, out) == (2, "")
    assert err.startswith("frugal: ")
    assert message in err
    assert err.count("\n") == 1


def test_predict_reads_columns_as_the_model_knows_them(tmp_path):
    """Codes that are words in training stay words in a table that happens to hold numbers only; and numbers numbers."""
    write(tmp_path / "t.csv", [{"code": ["1", "2", "x"][i % 3], "size": i % 7, "y": "ab"[i % 3 == 1]} for i in range(90)])
    assert frugal("train", "--data", tmp_path / "t.csv", "--label", "y", *FOREST, "--set", "max_trees=3", "--out", tmp_path / "m")[0] == 0
    write(tmp_path / "new.csv", [{"code": code, "size": 3} for code in (1, 2, 1, 2)])
    code, out, err = frugal("predict", "--model", tmp_path / "m", "--data", tmp_path / "new.csv")
    assert (code, err) == (0, "")
    assert [row["label"] for row in csv.DictReader(io.StringIO(out))] == ["a", "b", "a", "b"]
    write(tmp_path / "new.csv", [{"code": code} for code in (1, 2, "z", "?")])
    code, out, err = frugal("predict", "--model", tmp_path / "m", "--data", tmp_path / "new.csv", "--missing", "?")
    assert code == 0
    assert err == "frugal: warning: 'code': 1 cell has a word that the model does not know, taken as missing: 'z'\n"


def test_predict_ends_silently_when_nobody_reads(model):
    assert unread(["predict", "--model", str(model), "--data", str(HEART / "heart.csv")]) == (-signal.SIGPIPE, b"")


def test_columns_are_left_out_cells_mean_missing_and_words_are_no_numbers(tmp_path):
    rows = [
        {"id": f"p{i:03}", "age": i % 60, "ward": "NA" if i % 9 == 4 else "north", "note": "same", "ill": "yn"[i % 60 < 30]}
        for i in range(200)
    ]
    rows[10]["age"], rows[20]["age"] = "?", "unknown"
    write(tmp_path / "t.csv", rows)
    (tmp_path / "costs.csv").write_text("feature,cost\nid,5\nage,2\nill,3\nward,1\n")
    arguments = ("train", "--data", tmp_path / "t.csv", "--label", "ill", *FOREST, "--set", "max_trees=2", "--out", tmp_path / "m")
    code, _, err = frugal(*arguments)
    assert code == 0
    assert [line for line in err.splitlines() if not line.startswith(NO_GOOD)] == [
        "frugal: warning: 'id' has a different word in nearly every row, like a name or a case number: leave it out with --drop id",
        "frugal: warning: 'note' has the same value in every row: leave it out with --drop note",
        "frugal: warning: 'age' is taken as words, because 2 cells are no numbers: '?', 'unknown' (rows 12, 22); if that means missing, "
        "say so with --missing '?,unknown'; or read the others as numbers with --numeric age",
    ]
    code, _, err = frugal(*arguments, "--costs", tmp_path / "costs.csv", "--drop", "id,note", "--missing", "NA,?", "--numeric", "age")
    assert (code, err) == (0, "frugal: warning: 'age': 1 cell is no number and taken as missing: 'unknown' (row 22)\n")
    ensemble = load(tmp_path / "m")
    assert (ensemble.schema.names, ensemble.schema["ward"].categories) == (("age", "ward"), ("north",))
    assert ensemble.schema["age"].kind == "numeric"
    assert [price.cost for price in ensemble.costs.prices] == [2, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--drop", "chol"], "heart.csv: drop 'chol': no such column (did you mean 'cholesterol'?); the columns are 'age'"),
        (["--drop", "disease"], "--drop leaves out 'disease', which is the label"),
        (["--numeric", "thal"], "heart.csv: no cell of the column 'thal' is a number"),
        (
            ["--label", "st_depression"],
            "'st_depression' cannot be the label: its values are numbers with fractions, as a regression target has",
        ),
        (["--label", "deasease"], "heart.csv has no column 'deasease' to learn (did you mean 'disease'?): its columns are age"),
        (["--penalties", '{"absent": {"presnt": 5}}'], "penalties name 'presnt': the labels are absent, present"),
        (["--out", "none/m.safetensors"], "none/m.safetensors cannot be written: there is no folder "),
        (["--out", "/tmp"], "/tmp cannot be written: it is a folder; name a file in it"),
        (["--out", "m/"], "m/ cannot be written: it is a folder; name a file in it"),
        (["--out", "/proc/m"], "/proc/m cannot be written: No such file or directory"),
        (["--out", "m" * 300], f"{'m' * 300} cannot be written: File name too long"),
        (["--plot", "/proc/m.png"], "/proc/m.png cannot be written: No such file or directory"),
        (["--penalties", '{"present": {"present": 5}}'], "penalties: 'present' said for 'present' is no mistake: leave it out"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_grown(tmp_path, monkeypatch, capsys, changes, message):
    monkeypatch.setattr("frugal.models.learners.greedy.Binning.of", lambda *_: pytest.fail("it grows"))
    assert main([str(word) for word in (*TRAIN, "--out", tmp_path / "m", *changes)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.splitlines()[-1]


def test_numbers_that_are_many_classes_are_trained_with_a_warning(tmp_path):
    code, _, err = frugal(*TRAIN[:3], "--label", "age", *FOREST, "--set", "max_trees=1", "--out", tmp_path / "m")
    assert code == 0
    assert err.splitlines()[0] == (
        "frugal: warning: 'age' has 41 different numbers, and each is learnt as a class of its own: if it is an amount, group it first"
    )


def test_penalties_are_trained_with_and_reported(tmp_path):
    dear = ("--penalties", '{"present": {"absent": 500}, "absent": {"present": 50}}')
    code, out, _ = frugal(*TRAIN, *dear, "--out", tmp_path / "m")
    assert code == 0
    assert "total cost" in out
    assert load(tmp_path / "m").penalties.tolist() == [[0, 500], [50, 0]]  # row: what is said; column: what is true


def test_a_price_list_without_features_is_told(tmp_path):
    (tmp_path / "costs.csv").write_text("feature,cost\ndisease,3\n")
    code, _, err = frugal(*TRAIN[:5], "--costs", tmp_path / "costs.csv", *FOREST, "--set", "max_trees=1", "--out", tmp_path / "m")
    assert (code, err) == (0, f"frugal: warning: {tmp_path / 'costs.csv'} prices no feature: each costs 1\n")


def test_a_progress_bar_is_shown_on_a_terminal(tmp_path):
    main, side = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "frugal.service.commands.main",
        *map(str, TRAIN),
        "--budget",
        "60",
        "--out",
        str(tmp_path / "m.safetensors"),
    ]
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


def test_ask_takes_a_number_for_a_category_that_is_one():
    tree = Split("grade", [1, 1], children=[Leaf([1, 0]), Leaf([0, 1])], branches={1.0: 0, 2.0: 1})
    ensemble = Ensemble.of([tree], Schema([Feature("grade", "categorical", (1.0, 2.0))]), classes=["low", "high"], vote="counts")
    for typed, label in (("1", "low"), ("2.0", "high")):
        replies = iter([typed, "!"])
        closing = interview(ensemble, None, lambda _, replies=replies: next(replies), lambda _: None)
        assert closing.startswith(f"{label}  (leaf; ")


def test_ask_takes_unknown_stop_and_wrong_values(model):
    done = subprocess.run(
        [sys.executable, "-m", "frugal.service.commands.main", "ask", "--model", str(model), "--budget", "60"],
        input="wrong\natypical\n!\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "expected " in done.stdout
    assert ", ? for unknown or ! to stop now" in done.stdout
    assert "spent 1.00 of 60.00" in done.stdout
    assert "(stopped; " in done.stdout
    unknown = subprocess.run(
        [sys.executable, "-m", "frugal.service.commands.main", "ask", "--model", str(model)],
        input="?\n" * 20,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "(exhausted; " in unknown.stdout
    ended = subprocess.run(
        [sys.executable, "-m", "frugal.service.commands.main", "ask", "--model", str(model)],
        input="",
        capture_output=True,
        text=True,
        check=True,
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
        (["--set", "depth=3"], "--set depth: no such parameter; budget-forest knows impurity, alpha"),
        (["--set", "max_tree=3"], "--set max_tree: no such parameter (did you mean 'max_trees'?); budget-forest knows impurity"),
        (["--set", "alpha=1", "--set", "alpha=2"], "--set alpha=2: alpha is set twice; set it once"),
        (["--set", "n_jobs=2"], "--set n_jobs=2: use --jobs instead"),
        (["--set", "random_state=2"], "--set random_state=2: use --seed instead"),
        (["--set", "budget=2"], "--set budget=2: use --budget instead"),
        (["--set", "costs=a.csv"], "--set costs=a.csv: use --costs instead"),
        (["--set", "alpha"], "--set alpha: expected NAME=VALUE"),
        (["--set", 'class_weight={"ill": 5}'], "class_weight names 'ill': the labels are 'absent', 'present'"),
        (["--set", 'class_weight={"absent": 5, "absent": 1}'], "'absent' stands there 2 times in one object: once is enough"),
        (["--set", 'class_weight={"absent": -5}'], "class_weight is {'absent': -5}: expected a mapping of labels to numbers"),
        (["--set", "class_weight=even"], "class_weight is 'even': expected a mapping of labels to numbers"),
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
    code, _, err = frugal(*TRAIN[:5], "--costs", costs, *FOREST, "--set", "max_trees=2", "--out", out)
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
        code, _, err = frugal("train", "--data", data, "--label", "disease", *FOREST, "--set", "max_trees=2", "--out", tmp_path / "m")
        assert (code, err) == (0, "")
        models.append((tmp_path / "m").read_bytes())
    assert models[0] == models[1] == models[2]
