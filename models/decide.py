"""decide: answers to Ask, Wait or Stop; pure. A session is nothing but its list of answers, replayed."""

import numbers
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from frugal.models.costs import millionths, money, shown
from frugal.models.ensemble import Ensemble, Label
from frugal.models.kernels.serving import deciding
from frugal.models.kernels.serving.walking import ANSWERED, BOUGHT, PENDING
from frugal.models.schema import Value

UNLIMITED = np.iinfo(np.int64).max
REASONS: dict[int, Literal["leaf", "decided", "confident", "budget", "exhausted", "aim"]] = {
    deciding.AT_LEAF: "leaf",
    deciding.DECIDED: "decided",
    deciding.CONFIDENT: "confident",
    deciding.BUDGET: "budget",
    deciding.EXHAUSTED: "exhausted",
    deciding.AIM: "aim",
}


@dataclass(frozen=True, slots=True)
class Ask:
    """The feature to acquire next, what it costs now, and why it is this one.

    `why` has trees_waiting (how many trees wait for it), votes_undecided (the vote weight of all trees that are still under way) and price
    (what its worth was divided by: its cost, or that of buying all that is wanted of its group).
    """

    feature: str
    cost: float
    why: dict[str, float]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to ask until one of these pending features comes in."""

    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """The prediction, and why nothing more is asked: leaf, decided, confident, budget, exhausted or aim.

    `probabilities` say how likely each class is, `votes` which share of the trees' votes it has.
    """

    label: Label
    probabilities: dict[Label, float]
    votes: dict[Label, float]
    reason: str


Decision = Ask | Wait | Stop


class Standing(NamedTuple):
    """A decision together with what would be predicted if nothing more came."""

    decision: Decision
    label: Label
    probabilities: dict[Label, float]
    votes: dict[Label, float]


def decide(
    ensemble: Ensemble,
    answers: Mapping[str, Value],
    budget: float | None = None,
    spent: float = 0,
    seed: int = 0,
    *,
    bought: Collection[str] | None = None,
    pending: Iterable[str] = (),
    confidence: float | None = None,
    cap: float | None = None,
) -> Decision:
    """What to do next with a case of which `answers` are known.

    Parameters
    ----------
    answers : raw values by feature name, None for unavailable; all are free here, they only steer the walk
    budget, spent : the most that may be spent on this case (None: no limit), and what has been
    seed : for votes that draw trees at random; the four here draw none
    bought : the features whose purchase set the prices; by default every answer that is not None
    pending : features that are ordered but not yet in
    confidence : stop once the label's told probability reaches this (with the ensemble's sureness "penalty": 1 less the penalty to be
        expected, as a share of the greatest one); 1 never stops on it
    cap : stop rather than ask what would bring what was spent above this. An operating point of the model is a confidence and a cap;
        `decide` looks for none by itself

    Examples
    --------
    >>> from frugal.models import Ensemble, Feature, Leaf, Schema, Split
    >>> tree = Split("fever", [6, 4], branches={"no": 0, "yes": 1}, children=[Leaf([5, 1]), Leaf([1, 3])])
    >>> schema = Schema([Feature("fever", "categorical", ("no", "yes"))])
    >>> ensemble = Ensemble.of([tree], schema, [2.5], classes=["well", "flu"], vote="counts")
    >>> decide(ensemble, {})
    Ask(feature='fever', cost=2.5, why={'trees_waiting': 1, 'votes_undecided': 1.0, 'price': 2.5})
    >>> decide(ensemble, {}, budget=2)
    Stop(label='well', probabilities={'well': 0.6, 'flu': 0.4}, votes={'well': 0.6, 'flu': 0.4}, reason='budget')
    >>> decide(ensemble, {"fever": "yes"})
    Stop(label='flu', probabilities={'well': 0.32, 'flu': 0.6799999999999999}, votes={'well': 0.25, 'flu': 0.75}, reason='leaf')
    """
    return stand(ensemble, answers, budget, spent, seed, bought=bought, pending=pending, confidence=confidence, cap=cap).decision


def stand(
    ensemble: Ensemble,
    answers: Mapping[str, Value],
    budget: float | None = None,
    spent: float = 0,
    seed: int = 0,
    *,
    bought: Collection[str] | None = None,
    pending: Iterable[str] = (),
    confidence: float | None = None,
    cap: float | None = None,
) -> Standing:
    """`decide`, with the prediction as it stands now beside the decision: what Stop would say."""
    row, state = _encode(ensemble, answers, bought, pending)
    verdict, feature, cost, price, trees, undecided, label, told, wanted = deciding.decide(
        ensemble.served, ensemble.prices, row, state, _remaining(budget, spent), _confidence(confidence), _capped(cap, spent)
    )
    probabilities, votes = told.tolist()
    chances = dict(zip(ensemble.classes, probabilities, strict=True))
    shares = dict(zip(ensemble.classes, votes, strict=True))
    said = ensemble.classes[label]
    if verdict == deciding.ASK:
        why = {"trees_waiting": trees, "votes_undecided": undecided, "price": money(price)}
        return Standing(Ask(ensemble.schema.names[feature], money(cost), why), said, chances, shares)
    if verdict == deciding.WAIT:
        return Standing(Wait(_awaited(ensemble, state, wanted)), said, chances, shares)
    return Standing(Stop(said, chances, shares, REASONS[verdict]), said, chances, shares)


def _encode(ensemble: Ensemble, answers: Mapping[str, Value], bought: Collection[str] | None, pending: Iterable[str]) -> tuple[Any, Any]:
    """The answers as codes, and per feature whether it is answered, pending or bought."""
    schema = ensemble.schema
    index, code = schema.index, schema.code
    codes, states = (
        [0.0] * len(schema),
        bytearray(len(schema)),
    )  # a list and bytes: cheaper to set one by one than an array
    known = ANSWERED | BOUGHT if bought is None else ANSWERED
    if answers.__class__ is not dict and not isinstance(answers, Mapping):
        raise TypeError(f"answers is {shown(answers)}: expected a mapping of feature names to values")
    for name, value in answers.items():
        i = index[name] if name in index else schema.position(name)
        codes[i] = code(i, value)
        states[i] = ANSWERED if value is None else known
    for name in () if bought is None else bought:
        states[schema.position(name)] |= BOUGHT
    for name in pending:
        i = schema.position(name)
        if states[i] & ANSWERED:
            raise ValueError(f"{name!r} is pending and answered: it can be one of the two")
        states[i] |= PENDING
    return np.array(codes), np.frombuffer(states, np.uint8)


def _remaining(budget: float | None, spent: float) -> int:
    paid = 0 if spent.__class__ is int and spent == 0 else millionths(spent, "spent")
    return UNLIMITED if budget is None else millionths(budget, "the budget") - paid


def _capped(cap: float | None, spent: float) -> int:
    """What the next question may cost; one that costs nothing always may."""
    return UNLIMITED if cap is None else max(0, millionths(cap, "the cap") - millionths(spent, "spent"))


def _confidence(confidence: float | None) -> float:
    if confidence is None:
        return deciding.NEVER
    if isinstance(confidence, bool) or not isinstance(confidence, numbers.Real) or not 0 < confidence <= 1:
        raise ValueError(f"the confidence is {confidence!r}: expected a number above 0 and at most 1")
    return deciding.NEVER if confidence == 1 else float(confidence)


def _awaited(ensemble: Ensemble, state: Any, wanted: Any) -> tuple[str, ...]:
    features = sorted({f for f in wanted.tolist() if f >= 0 and state[f] & PENDING})
    return tuple(ensemble.schema.names[f] for f in features)
