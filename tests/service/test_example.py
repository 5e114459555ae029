"""The heart example: the model that comes with the checkout is what training gives, and needs no training to be served."""

import ast
from pathlib import Path

import pytest

from examples.heart_model import MODEL, trained
from frugal.models import dump, load
from frugal.service import example
from frugal.service.commands.main import DEFAULT
from frugal.service.example import example_archive

ROOT = Path(__file__).parents[2]


def test_the_committed_model_is_what_training_gives_today():
    """Byte for byte: growth is the same on any machine. After a change of the learner: make example."""
    assert dump(trained()) == example_archive()


def test_it_is_the_file_that_is_published():
    assert MODEL.read_bytes() == example_archive()
    assert load(example_archive()).learner == DEFAULT


def test_nothing_is_trained_where_it_is_published():
    """The modules that train are not even imported."""
    imported = {node.module for node in ast.walk(ast.parse(Path(example.__file__).read_text())) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in imported if name.startswith(("frugal.service.training", "frugal.models.learners"))]


def test_where_there_is_no_checkout_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(example, "FOLDERS", (tmp_path,))
    with pytest.raises(ValueError, match=r"the heart example is not here: run this in a checkout"):
        example_archive()
