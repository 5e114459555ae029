"""Labels are classes: what is a regression target is refused before anything is grown."""

import numpy as np
import pytest

from frugal.models import BudgetForestClassifier, GreedyTreeClassifier
from frugal.models.table import read_labels

FRACTIONS = r"^Unknown label type: continuous\. The labels are numbers with fractions, as a regression target has\. Frugal predicts classes"


@pytest.mark.parametrize("learner", [BudgetForestClassifier, GreedyTreeClassifier])
@pytest.mark.parametrize("y", [np.linspace(0, 1, 40), np.linspace(0, 1, 40).astype(object), [0.5, 1.5] * 20])
def test_numbers_with_fractions_are_refused_before_anything_is_grown(monkeypatch, learner, y):
    monkeypatch.setattr("frugal.models.learners.greedy.Binning.of", lambda *_: pytest.fail("it grows"))
    with pytest.raises(ValueError, match=FRACTIONS):
        learner().fit(np.arange(40)[:, None], y)


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        (np.arange(257).repeat(10), "are 257 different numbers in 2,570 rows"),
        (np.arange(257.0).repeat(10), "are 257 different numbers in 2,570 rows"),
        (np.arange(21), "are 21 different numbers in 21 rows"),
        (np.arange(41).astype(object), "are 41 different numbers in 41 rows"),
    ],
)
def test_very_many_different_numbers_are_refused(labels, why):
    with pytest.raises(ValueError, match=f"Unknown label type: continuous. The labels {why}, as a regression target has"):
        read_labels(labels, len(labels))


@pytest.mark.parametrize("learner", [BudgetForestClassifier, GreedyTreeClassifier])
@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (300, "'y' has 300 different words in 300 rows: it names cases, it is no class"),
        (3000, "'y' has 300 different words in 3,000 rows: a model tells 256 classes apart at most; group them"),
    ],
)
def test_more_words_than_a_model_tells_apart_are_refused_before_anything_is_grown(monkeypatch, learner, rows, why):
    monkeypatch.setattr("frugal.models.learners.greedy.Binning.of", lambda *_: pytest.fail("it grows"))
    words = np.array([f"case {i % 300}" for i in range(rows)])
    for labels in (words, words.astype(object)):
        with pytest.raises(ValueError, match=why):
            learner().fit(np.arange(rows)[:, None], labels)


@pytest.mark.parametrize(
    "labels",
    [
        np.arange(256).repeat(10),
        np.arange(20),  # so few are classes in a table of any size
        np.arange(21).repeat(2),  # half of the rows
        np.arange(256).astype(str),  # words are names
        np.array([1.0, 2.0] * 30),
        np.array([True, False] * 30),
        np.array([True, False] * 30, object),
    ],
)
def test_classes_are_taken(labels):
    classes, index = read_labels(labels, len(labels))
    assert (classes[index] == labels).all()
