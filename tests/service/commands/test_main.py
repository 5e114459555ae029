"""`frugal` as it is typed."""

import os
import signal
import subprocess
import sys

import pytest

from frugal.models import Ensemble, Feature, Leaf, Schema, Split, dump
from frugal.service.commands import main
from tests.examples import aimed


@pytest.fixture
def model(tmp_path):
    tree = Split("size", [1, 1], threshold=1.5, children=[Leaf([1, 0]), Leaf([0, 1])])
    ensemble = Ensemble.of([tree], Schema([Feature("size"), Feature("age")]), [2, 1234.5], classes=["a", "b"], vote="counts")
    dump(ensemble, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def frugal(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "frugal.service.commands.main", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_show_lists_settings_and_prices(model):
    code, out, _ = frugal("show", model)
    assert code == 0
    assert "1 trees, 3 nodes" in out
    assert "vote counts, order votes, stop decided" in out
    assert "age                      numeric        1,234.50               (no tree asks for it)" in out


def test_show_prints_when_asking_stops(tmp_path):
    dump(aimed(), tmp_path / "m")
    code, out, _ = frugal("show", tmp_path / "m")
    table = out.partition("\n\noperating points")[2].splitlines()
    assert code == 0
    assert table[0].startswith(": when to stop asking, and what that came to on cases that did not grow the trees. A case is over")
    assert [line.split() for line in table[3:7]] == [
        ["mean", "cost", "wrong", "sure", "enough", "at", "spend", "at", "most"],
        ["0.00", "40.0", "%", "-", "0.00"],
        ["*", "4.50", "30.0", "%", "-", "10.00"],
        ["20.00", "10.0", "%", "59.5", "%", "-"],
    ]
    assert table[-1] == "* unless you say otherwise; --aim 5 takes the last one of a mean cost up to 5"


def test_of_many_operating_points_some_are_shown_and_the_default_among_them(tmp_path):
    points = [(i / 10, 0.4 - i / 1000, 0.9, float(i)) for i in range(200)]
    dump(aimed(points, default=80), tmp_path / "m")
    out = frugal("show", tmp_path / "m")[1]
    assert "operating points, 15 of 200:" in out
    shown = [line.split() for line in out.splitlines() if line.endswith(".00") and " 90.0 %" in line]
    assert (shown[0][0], shown[-1][0], len(shown)) == ("0.00", "19.90", 15)
    assert [row[1] for row in shown if row[0] == "*"] == ["8.00"]


def test_show_prints_a_tree(model):
    assert frugal("show", model, "--tree", 0) == (
        0,
        "size <= 1.5?  [1, 1]\n  yes, missing: a  [1, 0]\n  no: b  [0, 1]\n",
        "",
    )


def test_wrong_input_gets_one_line_and_exit_code_2(model, tmp_path):
    noise = tmp_path / "noise"
    noise.write_bytes(b"hello")
    for arguments, message in [
        (("show", tmp_path / "none"), "No such file or directory"),
        (("show", noise), f"{noise} is not a model file, or it is cut off"),
        (("show", model, "--tree", 7), "there is no tree 7: the ensemble has trees 0 to 0"),
    ]:
        code, out, err = frugal(*arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert err.startswith("frugal: ")
        assert message in err


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("Unable to allocate 8 GiB"), RuntimeError("can't start new thread")])
def test_too_little_memory_is_one_line(monkeypatch, capsys, error):
    monkeypatch.setattr(main, "show", failing(error))
    assert main.main(["show", "model"]) == 2
    assert capsys.readouterr() == (
        "",
        "frugal: not enough memory: fewer rows or columns (--drop), --jobs 1, or a higher limit\n",
    )


def test_a_fault_of_the_program_is_not_taken_for_too_little_memory(monkeypatch):
    monkeypatch.setattr(main, "show", failing(RuntimeError("a fault")))
    with pytest.raises(RuntimeError, match="a fault"):
        main.main(["show", "model"])


def failing(error):
    def run(options):
        raise error

    return run


def test_output_that_cannot_show_a_letter_has_it_escaped_and_predictions_are_utf_8(tmp_path):
    tree = Split("größe", [1, 1], threshold=1.5, children=[Leaf([1, 0]), Leaf([0, 1])])
    dump(Ensemble.of([tree], Schema([Feature("größe")]), [2], classes=["ja", "łódź"], vote="counts"), tmp_path / "m")
    (tmp_path / "t.csv").write_text("größe\n1\n2\n", encoding="utf-8")

    def typed(*words):
        command = [sys.executable, "-m", "frugal.service.commands.main", *map(str, words)]
        return subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "latin-1"}, check=True).stdout

    shown = typed("show", tmp_path / "m").decode("latin-1")
    assert "classes: ja, \\u0142\xf3d\\u017a" in shown
    assert "größe" in shown
    predicted = typed("predict", "--model", tmp_path / "m", "--data", tmp_path / "t.csv")
    assert "1,łódź,0.25,0.75,2,größe" in predicted.decode()


def test_no_command_shows_how_to_call_it():
    code, _, err = frugal()
    assert (code, err) == (2, "frugal: the following arguments are required: COMMAND; see frugal --help\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train --data a.csv", "the following arguments are required: --label, --out; see frugal train --help"),
        ("train --data a --label y --out m --jbos 3", "unrecognized arguments: --jbos 3; see frugal train --help"),
        ("train --jobs 0", "argument --jobs: 0 is not a number of threads: 1 or more, or -1 for all cores; see frugal train --help"),
        ("train --seed -1", "argument --seed: -1 is not a whole number from 0; see frugal train --help"),
        ("train --seed x", "argument --seed: x is not a whole number from 0; see frugal train --help"),
        ("train --test-fraction half", "argument --test-fraction: half is not a number from 0 to below 1; see frugal train --help"),
        ("jobs submit --seed -1", "argument --seed: -1 is not a whole number from 0; see frugal jobs submit --help"),
        ("keys revoke a b", "unrecognized arguments: b; see frugal keys revoke --help"),
    ],
)
def test_a_mistyped_command_gets_one_line_and_where_to_look(capsys, words, said):
    with pytest.raises(SystemExit) as ended:
        main.main(words.split())
    assert ended.value.code == 2
    assert capsys.readouterr() == ("", f"frugal: {said}\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [("show", "MODEL"), ("show", "MODEL", "--tree", "0"), ("keys", "new")])
def test_a_reader_that_has_seen_enough_ends_a_command_silently(model, arguments, unbuffered):
    """As with `cat`: by SIGPIPE, which a shell shows as 141, and without a word."""
    command = [str(model) if word == "MODEL" else word for word in arguments]
    assert unread(command, PYTHONUNBUFFERED=unbuffered) == (-signal.SIGPIPE, b"")


def test_help_that_nobody_reads_is_silent(model):
    assert unread(["train", "--help"], PYTHONUNBUFFERED="") == (-signal.SIGPIPE, b"")


def unread(arguments, **environment):
    """How a command ends whose output nobody reads, and what it says of that."""
    near, far = os.pipe()
    os.close(near)
    done = subprocess.run(
        [sys.executable, "-m", "frugal.service.commands.main", *arguments],
        stdout=far,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
        check=False,
    )
    os.close(far)
    return done.returncode, done.stderr


def test_messages_that_nobody_reads_end_a_command_silently(tmp_path):
    near, far = os.pipe()
    os.close(near)
    done = subprocess.run([sys.executable, "-m", "frugal.service.commands.main", "show", str(tmp_path / "none")], stderr=far, check=False)
    os.close(far)
    assert done.returncode == -signal.SIGPIPE


def test_a_full_disk_is_one_line(model):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "frugal.service.commands.main", "show", str(model)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "frugal: cannot write all of the output: No space left on device\n")
