"""`frugal datasets` and `frugal jobs` as they are typed, against a real server that really trains."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from frugal.client import Client
from frugal.service.commands.main import main
from frugal.service.commands.remote.watching import Watch
from frugal.service.config import Settings
from tests.databases import fresh_sqlite
from tests.journeys.test_training import NOISE
from tests.service.commands.remote.test_remote import commands, run_blocks
from tests.serving import serving

ROOT = Path(__file__).parents[4]
HEART, COSTS = ROOT / "examples" / "heart" / "heart.csv", ROOT / "examples" / "heart" / "costs.csv"
FOREST = ("--learner", "budget-forest")
LONG = (*FOREST, "--set", "max_trees=1000", "--set", f"alpha={','.join(map(str, range(50)))}")  # a minute or more, unless it is cancelled


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with fresh_sqlite(tmp_path_factory.mktemp("training")) as database, serving(Settings(database=database)) as server:
        yield str(server.base_url)
        server.app.state.stopping = True


@pytest.fixture
def heart(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a server with the heart table and its prices."""
    monkeypatch.setenv("FRUGAL_URL", server)
    assert main(["datasets", "push", "heart", str(HEART), "--costs", str(COSTS), "--json"]) == 0
    return server


@pytest.fixture(autouse=True)
def _quiet(heart: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()


# Data sets


def test_tables_from_pushing_to_deleting(frugal, refused, tmp_path):
    said = frugal("datasets", "push", "copy", HEART)
    assert said == "stored copy, 303 rows of 14 columns: train with frugal jobs submit --dataset copy --label COLUMN\n"
    assert frugal("datasets", "push", "copy", HEART) == said
    heads, *rows = frugal("datasets", "list").splitlines()
    assert heads.split() == ["name", "rows", "columns", "bytes", "owner", "stored"]
    assert [row.split()[:4] for row in rows] == [["copy", "303", "14", "24,651"], ["heart", "303", "14", "24,651"]]
    assert re.search(
        r"thal +categorical +2 +3 +fixed_defect normal reversible_defect +102.90 +1.00 +stress", frugal("datasets", "show", "heart")
    )
    assert re.search(r"age +numeric +0 +41 +29 to 77 +1.00\n", frugal("datasets", "show", "copy"))
    (tmp_path / "costs.csv").write_text(COSTS.read_text().replace("age,1.00", "age,7.50"))
    assert "copy has these prices for the jobs that come" in frugal("datasets", "price", "copy", tmp_path / "costs.csv")
    assert json.loads(frugal("datasets", "show", "copy", "--json"))["columns"][0]["cost"] == 7.5
    assert frugal("datasets", "delete", "copy") == "deleted copy; models that were trained on it stay\n"
    assert "There is no data set of this name: frugal datasets list shows what there is." in refused("datasets", "show", "copy")
    assert [found["name"] for found in json.loads(frugal("datasets", "list", "--json"))["items"]] == ["heart"]


def test_a_table_is_pushed_with_choices_and_what_is_remarkable_is_told(capsys, refused, tmp_path):
    head, line = "id,age,ward,ill\n", "p{0:03},{1},{2},{3}\n"
    rows = (line.format(i, "?" if i == 7 else i % 50, "NA" if i % 9 == 4 else "north", i % 2) for i in range(100))
    (tmp_path / "t.csv").write_text(head + "".join(rows))
    (tmp_path / "costs.csv").write_text("feature,cost\nid,5\nage,2\n")
    assert main(["datasets", "push", "plain", str(tmp_path / "t.csv"), "--costs", str(tmp_path / "costs.csv")]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("stored plain, 100 rows of 4 columns")
    assert err.splitlines() == [
        "frugal: warning: 'id' has a different word in nearly every row, like a name or a case number: leave it out with --drop id",
        "frugal: warning: 'age' is taken as words, because 1 cell is no number: 1 value (row 9); delete the data set and send it again "
        "with --numeric age, or with what stands there as --missing",
        "frugal: warning: no price for 'ward', 'ill': each costs 1, but the label, which needs none",
    ]
    assert main(["datasets", "show", "plain"]) == 0
    assert capsys.readouterr().err == err
    assert main(["datasets", "push", "numbers", str(tmp_path / "t.csv"), "--drop", "id", "--numeric", "age"]) == 0
    assert capsys.readouterr().err == "frugal: warning: 'age': 1 cell is no number and taken as missing: 1 value (row 9)\n"
    choices = ["--drop", "id", "--missing", "NA,?", "--numeric", "age", "--costs", str(tmp_path / "costs.csv")]
    assert main(["datasets", "push", "chosen", str(tmp_path / "t.csv"), *choices, "--json"]) == 0
    out, err = capsys.readouterr()
    kinds = [(column["name"], column["kind"], column["missing"], column["cost"]) for column in json.loads(out)["columns"]]
    assert kinds == [("age", "numeric", 1, 2.0), ("ward", "categorical", 11, 1.0), ("ill", "numeric", 0, 1.0)]
    assert err == "frugal: warning: no price for 'ward', 'ill': each costs 1, but the label, which needs none\n"
    assert refused("datasets", "push", "wrong", tmp_path / "t.csv", "--drop", "ids") == (
        "frugal: drop: name 1 of 1 is no column of the table (did you mean 'id'?).\n"
    )
    assert main(["jobs", "submit", "--dataset", "chosen", "--label", "ill", *FOREST, "--set", "max_trees=2", "--watch"]) == 0
    assert capsys.readouterr().err.count("frugal: warning: no price for 'ward': it costs 1\n") == 1  # not again at the end
    for name in ("plain", "numbers", "chosen"):
        assert main(["datasets", "delete", name]) == 0


def test_a_regression_target_is_refused_as_label(refused):
    assert refused("jobs", "submit", "--dataset", "heart", "--label", "st_depression") == (
        "frugal: label: the values of 'st_depression' are numbers with fractions, as a regression target has. Frugal predicts classes: "
        "group them into a few, such as low and high, or write names as words.\n"
    )


def test_penalties_are_submitted(frugal, refused, capsys):
    penalties = '{"present": {"absent": 500}, "absent": {"present": 50}}'
    job = ("jobs", "submit", "--dataset", "heart", "--label", "disease", *FOREST, "--set", "max_trees=2", "--publish", "wary")
    assert main([*job, "--penalties", penalties, "--watch", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["penalties"] == {"present": {"absent": 500}, "absent": {"present": 50}}
    assert done["metrics"]["total_cost"] > done["metrics"]["mean_cost"]
    assert '\npenalties  {"present": {"absent": 500' in frugal("jobs", "show", done["id"])
    assert json.loads(frugal(*job, "--penalties", "50", "--json"))["penalties"] == 50
    assert "penalties: 1 of the labels that they name are no values of 'disease'." in refused(*job, "--penalties", '{"ill": {"absent": 5}}')
    for wrong in ("dear", "-1", "nan", "[1]", "{}", '{"a": 5}', '{"a": {"b": "x"}}', '{"a": {"b": -1}}', "true"):
        with pytest.raises(SystemExit):
            main([*job, "--penalties", wrong])
        assert "is neither a number from 0 nor JSON by true label" in capsys.readouterr().err


def test_what_is_wrong_with_a_table_is_one_line(refused, tmp_path):
    odd = tmp_path / "odd.csv"
    odd.write_text("feature,cost\nage,1\nfoot,2\n")
    assert "costs.#2: the data set has no column of this name; it has 'age', 'sex'" in refused(
        "datasets", "push", "new", HEART, "--costs", odd
    )
    assert "There is another data set of this name: choose another, or delete that one first." in refused(
        "datasets", "push", "heart", COSTS
    )
    assert "name: a name has 1 to 64 lower case letters" in refused("datasets", "push", "My Table", HEART)
    assert "none.csv: No such file or directory" in refused("datasets", "push", "new", "none.csv")
    assert f"{tmp_path}: Is a directory" in refused("datasets", "push", "new", tmp_path)
    (tmp_path / "short.csv").write_text("a,b\n1,2\n3\n")
    assert "Row 3 has 1 cell" in refused("datasets", "push", "new", tmp_path / "short.csv")


# Jobs


def test_a_watched_job_reports_as_training_here_does(capsys, frugal, tmp_path):
    settings = ("--label", "disease", *FOREST, "--budget", "5", "--set", "alpha=0,4", "--set", "max_trees=6", "--seed", "1")
    here = frugal("train", "--data", HEART, "--costs", COSTS, *settings, "--out", tmp_path / "m.safetensors")
    assert main(["jobs", "submit", "--dataset", "heart", *settings, "--publish", "ward", "--alias", "live", "--watch"]) == 0
    out, err = capsys.readouterr()
    assert out == here.replace(f"written to {tmp_path / 'm.safetensors'}", "published ward:1 as ward@live")
    first, *lines = err.splitlines()
    assert re.fullmatch(r"frugal: job [0-9a-f-]{36}", first)
    assert all(re.fullmatch(r"\d+:\d\d  [ \d]{3} %  [\w ,.]+", line) for line in lines)
    assert "waiting for a worker" in lines[0]
    assert re.search(r"100 %  done, 6 trees, mean cost \d", lines[-1])
    id = first.split()[-1]
    shown = frugal("jobs", "show", id)
    assert out.split("\n\npublished")[0] in shown
    assert re.search(r"learner +budget-forest alpha=\[0.0, 4.0\] max_trees=6\n", shown)
    assert re.search(rf"{id}  done +heart +budget-forest +ward:1 as ward@live", frugal("jobs", "list"))


def test_a_job_is_submitted_listed_watched_and_cancelled(frugal, refused, capsys):
    said = frugal("jobs", "submit", "--dataset", "heart", "--label", "disease", *LONG)
    id = re.fullmatch(r"job (\S+) is queued: see it with frugal jobs watch \1\n", said)[1]
    assert "A job that is queued or running needs this data set" in refused("datasets", "delete", "heart")
    assert frugal("jobs", "cancel", id) == f"job {id} is cancelled: nothing is published\n"
    assert json.loads(frugal("jobs", "list", "--status", "cancelled", "--json"))["items"][0]["id"] == id
    assert frugal("jobs", "list", "--status", "running") == "no such jobs\n"
    assert main(["jobs", "watch", id]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("frugal: the job was cancelled: nothing is published\n")
    done = json.loads(frugal("jobs", "submit", "--dataset", "heart", "--label", "disease", *FOREST, "--set", "max_trees=6", "--json"))["id"]
    assert main(["jobs", "watch", done, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "done"
    assert "The job is done: there is nothing left to cancel." in refused("jobs", "cancel", done)


def test_a_job_that_failed_ends_with_its_sentence(capsys):
    refused = [*FOREST, "--set", "impurity=polynomial", "--set", "terms=[[1.0, [1, 0]]]"]  # as only the learner can know
    assert main(["jobs", "submit", "--dataset", "heart", "--label", "disease", *refused, "--watch", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["status"] == "failed"
    assert "The learner refused: the polynomial's term" in err.splitlines()[-1]


def test_what_a_learner_warned_of_is_told(capsys):
    arguments = [
        "--dataset",
        "heart",
        "--label",
        "disease",
        *FOREST,
        "--budget",
        "0.5",
        "--set",
        "max_trees=2",
        "--publish",
        "tiny",
        "--watch",
    ]
    assert main(["jobs", "submit", *arguments]) == 0
    out, err = capsys.readouterr()
    assert "max cost     0.00" in out
    assert "frugal: warning: no tree fits the budget of 0.5 per case" in err


def test_learners_are_listed_with_their_defaults(frugal):
    said = frugal("jobs", "learners")
    assert "budget-forest: a random forest" in said
    assert re.search(r"  max_trees +40 +trees at most", said)
    assert "takes no budget" in said
    assert {learner["name"] for learner in json.loads(frugal("jobs", "learners", "--json"))["items"]} >= {"budget-forest", "greedy-tree"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--dataset", "hart"], "There is no data set of this name: frugal datasets list shows what there is."),
        (["--label", "illness"], "label: the data set has no column of this name; it has 'age', 'sex'"),
        (["--learner", "oracle"], "learner: there is none of this name; the learners are frontier"),
        (["--learner", "greedy-tree", "--budget", "3"], "budget: greedy-tree takes none; leave it out, or use frontier."),
        ([*FOREST, "--set", "depth=3"], "params: budget-forest has no parameter of this name; it knows impurity, alpha"),
        ([*FOREST, "--set", "max_tree=3"], "no parameter of this name (did you mean 'max_trees'?); it knows impurity, alpha"),
        (["--set", "alpha=1", "--set", "alpha=2"], "--set alpha=2: alpha is set twice; set it once"),
        (["--set", "random_state=1"], "--set random_state=1: use --seed instead"),
        ([*FOREST, "--set", "n_jobs=1"], "params: budget-forest has no parameter of this name; it knows impurity, alpha"),
        (["--set", "categorical=agee"], "params.categorical: the data set has no feature of this name"),
        ([*FOREST, "--set", "alpha=-1"], "params.alpha: Input should be greater than or equal to 0"),
        (["--set", "alpha"], "--set alpha: expected NAME=VALUE; frugal jobs learners shows the names"),
        (["--set", "terms=[[1,"], "[[1, begins like JSON and is none"),
        (["--publish", "My Model"], "publish.name: a name has 1 to 64 lower case letters"),
        (["--costs", "none.csv"], "none.csv: No such file or directory"),
    ],
)
def test_what_is_wrong_with_a_job_is_one_line(refused, changes, message):
    assert message in refused("jobs", "submit", "--dataset", "heart", "--label", "disease", *changes)


def test_a_price_of_the_label_is_told_as_such(refused, tmp_path):
    (tmp_path / "costs.csv").write_text("feature,cost\nage,1\ndisease,2\n")
    said = refused("jobs", "submit", "--dataset", "heart", "--label", "disease", "--costs", tmp_path / "costs.csv")
    assert said == "frugal: costs: 'disease' is the label, which is never bought; leave it out.\n"


@pytest.mark.parametrize("wrong", ["nan", "inf", "-1", "much"])
def test_a_budget_is_a_number(capsys, wrong):
    with pytest.raises(SystemExit):
        main(["jobs", "submit", "--dataset", "heart", "--label", "disease", "--budget", wrong])
    assert "argument --budget" in capsys.readouterr().err


def test_an_id_that_is_none_is_told(refused):
    for command in ("show", "watch", "cancel"):
        assert "There is no job with this id: frugal jobs list shows what there is." in refused("jobs", command, "seven")


# On a terminal


class Terminal:
    """A command whose stderr is a terminal of so many columns."""

    def __init__(self, heart: str, *arguments: object) -> None:
        self.near, side = pty.openpty()
        command = [sys.executable, "-m", "frugal.service.commands.main", *map(str, arguments), "--url", heart]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=side,
            text=True,
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background of a shell ignore it
        )
        os.close(side)
        self.shown = ""

    def read_until(self, pattern: str) -> "re.Match[str]":
        while not (found := re.search(pattern, self.shown)):
            try:
                self.shown += os.read(self.near, 65536).decode()
            except OSError:
                pytest.fail(f"the command ended before it showed {pattern!r}:\n{self.shown}")
        return found

    def end(self) -> tuple[int, str]:
        try:
            while part := os.read(self.near, 65536):
                self.shown += part.decode()
        except OSError:
            pass  # what a terminal says when its other side is closed
        os.close(self.near)
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out


def test_a_live_bar_is_drawn_on_a_terminal(heart):
    terminal = Terminal(
        heart, "jobs", "submit", "--dataset", "heart", "--label", "disease", *FOREST, "--budget", "5", "--set", "max_trees=9", "--watch"
    )
    code, out = terminal.end()
    assert code == 0
    assert "9 trees, measured on 75 rows" in out
    lines = terminal.shown.split("\r\x1b[K")
    assert lines[0].startswith("frugal: job ")
    assert re.fullmatch(r"\[ {24}\]   0 %  \d+:\d\d  waiting for a worker", lines[1])
    assert re.fullmatch(r"\[#{24}\] 100 %  \d+:\d\d  done, 9 trees, mean cost \d+\.\d\d\r\n", lines[-1])


def test_ctrl_c_stops_watching_and_not_the_job(heart, capsys):
    with Client(heart) as client:
        client.push_dataset("noise", NOISE)  # some minutes
    terminal = Terminal(heart, "jobs", "submit", "--dataset", "noise", "--label", "y", *LONG, "--watch")
    id = terminal.read_until(r"frugal: job (\S+)")[1]
    terminal.read_until(r"\[#* *\] [ \d]{3} %  \d+:\d\d  growing, [\d,]+ trees")
    terminal.process.send_signal(signal.SIGINT)
    code, out = terminal.end()
    assert (code, out) == (130, "")
    assert (
        f"frugal: the job goes on: frugal jobs watch {id} --url {heart} shows it, frugal jobs cancel {id} --url {heart} ends it"
        in terminal.shown
    )
    with Client(heart) as client:
        assert client.job(id)["status"] == "running"
        assert client.cancel_job(id)["status"] == "cancelled"


def test_the_bar_is_no_wider_than_the_terminal_and_its_clock_goes_on(monkeypatch):
    monkeypatch.setattr("frugal.service.commands.remote.watching.columns", lambda stream: 48)
    monkeypatch.setattr("frugal.service.commands.remote.watching.TICK", 0.02)
    screen = io.StringIO()
    with Watch(screen, live=True) as watch:
        watch({"id": 1, "event": "running", "at": "2026-01-01T00:00:00Z", "attempt": 2})
        watch({"id": 2, "event": "progress", "at": "2026-01-01T01:01:02Z", "phase": "growing", "fraction": 0.5, "trees": 1, "mean_cost": 3})
        drawn = screen.getvalue().count(bar := "\r\x1b[K[############            ]  50 %")
        end = time.monotonic() + 100
        while screen.getvalue().count(bar) < drawn + 3:
            assert time.monotonic() < end
            time.sleep(0.01)
        watch({"id": 3, "event": "queued", "at": "2026-01-01T01:01:03Z", "why": "its worker was stopped"})
    lines = screen.getvalue().split("\r\x1b[K")
    assert re.fullmatch(r"\[ {24}\]   0 %  0:\d\d  startin", lines[1])
    assert any(re.fullmatch(r"\[############            \]  50 %  1:01:\d\d  grow", line) for line in lines)
    assert any(re.fullmatch(r"1:01:\d\d  queued again: its worker was stopped\n", line) for line in lines)
    assert all(len(line.rstrip()) < 48 for line in lines if line.startswith("["))


# What is written down


def test_the_python_of_the_page_runs(heart, monkeypatch):
    monkeypatch.chdir(ROOT)
    with Client(heart) as client:
        names = run_blocks("training.md", heart)
        for name in ("patients", "cheap", "heart"):  # the last with prices of the page
            client.delete_dataset(name)
    assert names["job"]["status"] == "done"
    names["client"].close()


def test_the_commands_of_the_page_are_commands():
    assert len(commands("training.md")) > 8
