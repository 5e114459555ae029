"""The impurities: the paper's numbers, and what makes them admissible."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frugal.models.growing.rules import impurity, impurity_of, minimax
from tests.naive import growing as naive

ALL = st.one_of(
    st.tuples(st.sampled_from(["threshold-pairs", "clipped-pairs"]), st.sampled_from([0, 0.5, 1, 3]), st.just(2)),
    st.tuples(st.sampled_from(["powers", "polynomial"]), st.just(0), st.integers(2, 5)),
)
COUNTS = st.lists(st.integers(0, 12), min_size=2, max_size=4)


def risk(name, alpha, whole, parts, cost=1):
    which = impurity(name, 2, alpha)
    return max(cost / (impurity_of(which, whole) - impurity_of(which, part)) for part in parts)


FIGURE_1 = {"t1": [[30, 10], [0, 20]], "t2": [[15, 15], [15, 15]]}


def test_figure_1_with_threshold_pairs():
    assert risk("threshold-pairs", 0, [30, 30], FIGURE_1["t1"]) == 1 / 600
    assert risk("threshold-pairs", 0, [30, 30], FIGURE_1["t2"]) == 1 / 675
    assert risk("threshold-pairs", 8, [30, 30], FIGURE_1["t1"]) == risk("threshold-pairs", 8, [30, 30], FIGURE_1["t2"]) == 1 / 420


def test_figure_1_as_the_appendix_prints_it():
    assert risk("clipped-pairs", 8, [30, 30], FIGURE_1["t1"]) == 1 / 440
    assert risk("clipped-pairs", 8, [30, 30], FIGURE_1["t2"]) == 1 / 435


@given(ALL, COUNTS)
def test_equals_its_naive_twin(which, counts):
    name, alpha, power = which
    twin = {
        "threshold-pairs": lambda: naive.threshold_pairs(counts, alpha),
        "clipped-pairs": lambda: naive.clipped_pairs(counts, alpha),
        "powers": lambda: naive.powers(counts, power),
        "polynomial": lambda: naive.polynomial(counts, power),
    }[name]()
    assert impurity_of(impurity(name, len(counts), alpha, power), counts) == twin


@given(ALL, COUNTS, st.data())
def test_admissible(which, counts, data):
    """Zero for one class, monotone, supermodular: a case adds more to a larger set."""
    name, alpha, power = which
    kind = impurity(name, len(counts), alpha, power)
    subset = [data.draw(st.integers(0, n)) for n in counts]
    j = data.draw(st.integers(0, len(counts) - 1))

    def value(of):
        return impurity_of(kind, of)

    def with_one_more(of):
        return [n + (c == j) for c, n in enumerate(of)]

    assert value([counts[0]] + [0] * (len(counts) - 1)) == 0
    assert 0 <= value(subset) <= value(counts)
    assert value(with_one_more(counts)) - value(counts) >= value(with_one_more(subset)) - value(subset)


def test_polynomial_terms():
    kind = impurity("polynomial", 3, terms=[(2.0, (1, 2, 0)), (0.5, (1, 1, 1))])
    assert impurity_of(kind, [3, 2, 4]) == 2 * 3 * 4 + 0.5 * 24


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: impurity("gini", 2), "impurity is 'gini': expected one of 'threshold-pairs', 'clipped-pairs', 'powers', 'polynomial'"),
        (lambda: impurity("threshold-pairs", 2, -1), "alpha is -1: expected a number of at least 0"),
        (lambda: impurity("threshold-pairs", 2, float("nan")), "alpha is nan"),
        (lambda: impurity("powers", 2, power=1), "power is 1: expected a whole number from 2 to 16"),
        (
            lambda: impurity("polynomial", 2, terms=[(1, (2, 0))]),
            "the polynomial's term (1, (2, 0)): expected a factor of at least 0 and 2 exponents",
        ),
        (lambda: impurity("polynomial", 2, terms=5), "terms is 5: expected a list of pairs, in each a factor of at least 0"),
        (lambda: impurity("polynomial", 2, terms=[[1]]), "the polynomial's term [1]: expected a factor"),
        (lambda: impurity("polynomial", 2, terms=[["a", [1, 1]]]), "the polynomial's term ['a', [1, 1]]: expected a factor"),
        (lambda: impurity("polynomial", 2, terms=[[1, [1, 0.5]]]), "the polynomial's term [1, [1, 0.5]]: expected a factor"),
        (lambda: impurity("polynomial", 2, terms=[[1, [1, 2**70]]]), "the polynomial's term [1, [1, 1180591620717411303424]]"),
        (lambda: minimax(impurity("powers", 2), split="best"), "split is 'best': expected one of 'minimax', 'expected'"),
        (lambda: minimax(impurity("powers", 2), stumps="all"), "stumps is 'all': expected one of 'exact', 'random'"),
    ],
)
def test_wrong_parameters_are_named(make, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        make()
