"""What makes a question good, by name: impurities, rules and their parameters, checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugal.models.costs import shown
from frugal.models.kernels.growth import impurity as kernels
from frugal.models.kernels.growth import rules as joined
from frugal.models.kernels.growth.impurity import Impurity
from frugal.models.kernels.growth.rules import Rule

IMPURITIES = {
    "threshold-pairs": kernels.THRESHOLD_PAIRS,
    "clipped-pairs": kernels.CLIPPED_PAIRS,
    "powers": kernels.POWERS,
    "polynomial": kernels.POLYNOMIAL,
}
SPLITS = ("minimax", "expected")
STUMPS = ("exact", "random")
MOST_POWER = 10_000  # more than any that is of use: a number beyond 64 bits is told here


def impurity(
    name: str, classes: int, alpha: float = 0.0, power: int = 2, terms: Sequence[tuple[float, Sequence[int]]] | None = None
) -> Impurity:
    """An impurity of Nan, Wang and Saligrama (2015).

    threshold-pairs   equation (11) with `alpha`
    clipped-pairs     the same without the last term, as in their appendix
    powers            equation (14) with `power`
    polynomial        equation (13) with `terms`, pairs of a factor and one exponent per class; by default, for every two
                      classes i and j, all n_i^a n_j^b with a + b = `power`
    """
    if name not in IMPURITIES:
        raise ValueError(f"impurity is {name!r}: expected one of {', '.join(map(repr, IMPURITIES))}")
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.integer, np.floating)) or not 0 <= alpha < np.inf:
        raise ValueError(f"alpha is {alpha!r}: expected a number of at least 0")
    if isinstance(power, bool) or not isinstance(power, (int, np.integer)) or not 2 <= power <= 16:
        raise ValueError(f"power is {power!r}: expected a whole number from 2 to 16")
    factors, exponents = np.empty(0), np.empty((0, classes), np.int64)
    if name == "polynomial":
        factors, exponents = _terms(terms if terms is not None else _default_terms(classes, int(power)), classes)
    return _impurity(IMPURITIES[name], alpha=float(alpha), power=int(power), factors=factors, exponents=exponents)


def minimax(which: Impurity, split: str = "minimax", stumps: str = "exact") -> Rule:
    """BudgetRF's: the gain over the price, judged by the worst outcome or by the mean."""
    for name, value, allowed in (("split", split, SPLITS), ("stumps", stumps, STUMPS)):
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}: expected one of {', '.join(map(repr, allowed))}")
    return rule(which, join=joined.MEAN if split == "expected" else joined.WORST, price=joined.DIVIDE, random=stumps == "random")


def per_case(name: str, **settings: Any) -> Rule:
    """The mean of entropy or Gini, which gain per case: ID3 and CART, and with a price EG2, IDX and CS-ID3."""
    return rule(_impurity({"entropy": kernels.ENTROPY, "gini": kernels.GINI}[name]), **{"join": joined.MEAN} | settings)


def penalty(matrix: NDArray[np.float64], **settings: Any) -> Rule:
    """What mistakes cost, in all: DTMC. `matrix` has a row per class that is said and a column per class that is true."""
    return rule(_impurity(kernels.PENALTIES, penalties=np.ascontiguousarray(matrix, np.float64)), **{"join": joined.SUM} | settings)


def regularized(name: str, lam: float, theta: float, **settings: Any) -> Rule:
    """(B + E + lambda D) / c of Zhang and Gionis (2022), for objects."""
    which = _impurity({"entropy": kernels.ENTROPY, "gini": kernels.GINI}[name])
    return rule(which, **{"join": joined.DISJUNCTION, "price": joined.DIVIDE, "lam": lam, "theta": theta, "tie": 1e-10} | settings)


def loss(l2: float, lam: float = 0.0, **settings: Any) -> Rule:
    """What a question takes off the loss, less the money that its cases would pay, each unit of it worth `lam`."""
    return rule(_impurity(kernels.LOSS, l2=l2), **{"join": joined.SUM, "price": joined.SUBTRACT, "lam": lam} | settings)


def rule(
    which: Impurity,
    *,
    join: int,
    price: int = joined.PLAIN,
    pick: int = joined.BEST,
    missing: int = joined.BETTER_SIDE,
    random: bool = False,
    ratio: bool = False,
    w: float = 1.0,
    lam: float = 0.0,
    theta: float = 0.0,
    tie: float = 0.0,
) -> Rule:
    if join == joined.DISJUNCTION and missing == joined.OWN_OUTCOME:
        raise ValueError("a disjunction of two outcomes has none for missing values")
    return Rule(which, join, price, pick, missing, random, ratio, float(w), float(lam), float(theta), float(tie))


def _impurity(kind: int, **parameters: Any) -> Impurity:
    nothing = {
        "alpha": 0.0,
        "power": 2,
        "factors": np.empty(0),
        "exponents": np.empty((0, 0), np.int64),
        "penalties": np.empty((0, 0)),
        "l2": 0.0,
    }
    return Impurity(kind, **nothing | parameters)  # type: ignore[arg-type]


def impurity_of(which: Impurity, counts: Sequence[float]) -> float:
    """The impurity of a set with these class counts.

    Examples
    --------
    >>> impurity_of(impurity("threshold-pairs", classes=2), [30, 30])
    900.0
    """
    return float(kernels.impurity_of(which, np.array(counts, np.float64)))


def _default_terms(classes: int, power: int) -> list[tuple[float, list[int]]]:
    terms = []
    for i in range(classes):
        for j in range(i):
            for a in range(1, power):
                exponents = [0] * classes
                exponents[i], exponents[j] = a, power - a
                terms.append((1.0, exponents))
    return terms


def _terms(terms: Any, classes: int) -> tuple[Any, Any]:
    expected = f"expected a factor of at least 0 and {classes} exponents of at least 0, two of them above 0"
    if not isinstance(terms, (list, tuple)):
        raise ValueError(f"terms is {shown(terms)}: expected a list of pairs, in each {expected.removeprefix('expected ')}")
    for term in terms:
        if not _is_term(term, classes):
            raise ValueError(f"the polynomial's term {shown(term)}: {expected}")
    return np.array([factor for factor, _ in terms], np.float64), np.array([e for _, e in terms], np.int64).reshape(len(terms), classes)


def _is_term(term: Any, classes: int) -> bool:
    if not isinstance(term, (list, tuple)) or len(term) != 2:
        return False
    factor, exponents = term
    if isinstance(factor, bool) or not isinstance(factor, (int, float, np.integer, np.floating)) or not 0 <= factor < np.inf:
        return False
    if not isinstance(exponents, (list, tuple, np.ndarray)) or len(exponents) != classes:
        return False
    whole = all(isinstance(e, (int, np.integer)) and not isinstance(e, bool) and 0 <= e <= MOST_POWER for e in exponents)
    return whole and sum(e > 0 for e in exponents) >= 2
