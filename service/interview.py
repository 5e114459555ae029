"""`frugal ask`: a session in the terminal, one question at a time with its price."""

import argparse
from collections.abc import Callable

from models import Ask, Ensemble, load, stand
from models.schema import NUMERIC, Feature, Value


def ask(options: argparse.Namespace) -> str:
    return interview(load(options.model), options.budget, input, print)


def interview(ensemble: Ensemble, budget: float | None, hear: Callable[[str], str], say: Callable[[str], None]) -> str:
    """Ask until the decision is to stop, or the person says so; gives the closing lines."""
    answers: dict[str, Value] = {}
    spent = 0.0
    say("? for unknown, ! to stop now\n")
    while True:
        standing = stand(ensemble, answers, budget, spent)
        decision = standing.decision
        if not isinstance(decision, Ask):
            reason = getattr(decision, "reason", "waiting")
            break
        feature = ensemble.schema[decision.feature]
        heard = _answer(feature, decision.cost, hear, say)
        if heard == "!":
            reason = "stopped"
            break
        answers[feature.name] = None if heard == "?" else _value(feature, heard)
        if answers[feature.name] is not None:
            spent = round(spent + decision.cost, 6)
        now = stand(ensemble, answers, budget, spent)
        say(f"    spent {spent:,.2f}" + (f" of {budget:,.2f}" if budget is not None else "") + f"; {_chances(now.probabilities)}\n")
    return f"{standing.label}  ({reason}; {_chances(standing.probabilities)}; spent {spent:,.2f})"


def _answer(feature: Feature, cost: float, hear: Callable[[str], str], say: Callable[[str], None]) -> str:
    """What the person says, once it is `?`, `!` or a value that the feature can have."""
    question = feature.question or f"{feature.name}?"
    hint = f" ({feature.unit})" if feature.unit else ""
    choices = f"\n    {', '.join(map(str, feature.categories))}" if feature.kind != NUMERIC and len(feature.categories) <= 30 else ""
    while True:
        try:
            heard = hear(f"{question}{hint}  [costs {cost:,.2f}]{choices}\n  > ").strip()
        except EOFError:
            return "!"
        if heard in ("?", "!"):
            return heard
        try:
            _value(feature, heard)
            return heard
        except ValueError:
            say(f"  expected {feature.expects()}, ? for unknown or ! to stop now")


def _value(feature: Feature, heard: str) -> Value:
    if feature.kind == NUMERIC:
        number = float(heard)
        if not abs(number) < float("inf"):
            raise ValueError(heard)
        return number
    for category in feature.categories:
        if str(category).lower() == heard.lower():
            return category  # type: ignore[no-any-return]
    raise ValueError(heard)


def _chances(probabilities: dict[str | int | float | bool, float]) -> str:
    best = sorted(probabilities.items(), key=lambda item: -item[1])[:4]
    return ", ".join(f"{label} {100 * chance:.0f} %" for label, chance in best)
