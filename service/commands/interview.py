"""`frugal ask`: a session in the terminal, one question at a time with its price. One loop for a model file and for a server's session."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from frugal.models import Ask, Ensemble, load, stand
from frugal.models.frontier import stop_at
from frugal.models.schema import NUMERIC, Feature, Value

Hear = Callable[[str], str]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Now:
    """Where a case stands: the question if there is one (`reason` says why not), the money, what would be predicted."""

    feature: Feature | None
    cost: float
    spent: float
    budget: float | None
    label: object
    probabilities: Mapping[Any, float]
    votes: Mapping[Any, float]
    reason: str | None


class Case(Protocol):
    """A case under way."""

    def now(self) -> Now: ...
    def answer(self, feature: str, value: Value) -> Now:
        """Take a value, or None for what cannot be had."""

    def stop(self) -> Now:
        """Predict from what is known."""

    def shown(self) -> dict[str, Any]:
        """The case for a program."""


def ask(options: argparse.Namespace) -> str:
    """The interview with a model file."""
    if options.key:
        raise ValueError("--key is for a server: say which with --url")
    if not Path(options.model).exists():
        raise ValueError(f"{options.model}: No such file or directory (a model on a server? say where with --url)")
    ensemble = load(options.model)
    check_aim(ensemble, options)
    return told(LocalCase(ensemble, options.budget, options.aim, options.confidence), options.json)


def check_aim(ensemble: Ensemble, options: argparse.Namespace) -> None:
    """Only operating points say when to stop for a mean cost."""
    if options.aim is not None and ensemble.frontier is None:
        raise ValueError(
            f"--aim: {options.model} has no operating points; give --budget or --confidence, "
            "or train it again with the learner frontier, or with --set points=true"
        )


def told(case: Case, as_json: bool) -> str:
    """Hold the interview in this terminal; gives the closing line, or for programs the case as JSON, with the talk on stderr."""
    if not as_json:
        return closing(converse(case, input, print))
    converse(case, _hear_on_stderr, _say_on_stderr)
    return json.dumps(case.shown(), indent=2)


def interview(ensemble: Ensemble, budget: float | None, hear: Hear, say: Say) -> str:
    """Ask until the decision is to stop, or the person says so; gives the closing line."""
    return closing(converse(LocalCase(ensemble, budget), hear, say))


def converse(case: Case, hear: Hear, say: Say) -> Now:
    say("? for unknown, ! to stop now\n")
    now = case.now()
    while now.feature is not None:
        heard = _answer(now.feature, now.cost, hear, say)
        if heard == "!":
            return case.stop()
        now = case.answer(now.feature.name, None if heard == "?" else _value(now.feature, heard))
        of = f" of {now.budget:,.2f}" if now.budget is not None else ""
        say(f"    spent {now.spent:,.2f}{of}; {_chances(now.probabilities)}\n")
    return now


def closing(now: Now) -> str:
    return f"{now.label}  ({now.reason}; {_chances(now.probabilities)}; spent {now.spent:,.2f})"


class LocalCase:
    """A case on an ensemble in this process; nothing is kept."""

    def __init__(self, ensemble: Ensemble, budget: float | None, aim: float | None = None, confidence: float | None = None) -> None:
        self.ensemble, self.budget, self.aim, self.confidence = ensemble, budget, aim, confidence
        self.stopping = stop_at(ensemble.frontier, budget, aim, confidence)
        self.answers: dict[str, Value] = {}
        self.costs: dict[str, float] = {}
        self._now = self._stand()

    def now(self) -> Now:
        return self._now

    def answer(self, feature: str, value: Value) -> Now:
        self.answers[feature] = value
        self.costs[feature] = 0.0 if value is None else self._now.cost
        self._now = self._stand()
        return self._now

    def stop(self) -> Now:
        self._now = replace(self._now, feature=None, reason="stopped")
        return self._now

    def _stand(self) -> Now:
        spent = round(sum(self.costs.values()), 6)
        sure, cap = self.stopping
        decision, label, chances, votes = stand(self.ensemble, self.answers, self.budget, spent, confidence=sure, cap=cap)
        if isinstance(decision, Ask):
            return Now(self.ensemble.schema[decision.feature], decision.cost, spent, self.budget, label, chances, votes, None)
        return Now(None, 0.0, spent, self.budget, label, chances, votes, getattr(decision, "reason", "waiting"))

    def shown(self) -> dict[str, Any]:
        now = self._now
        said = {name: {"status": "unavailable"} if value is None else {"value": value} for name, value in self.answers.items()}
        return {
            "status": "done",
            "budget": self.budget,
            "spent": now.spent,
            "aim": self.aim,
            "confidence": self.confidence,
            "answers": [{"feature": name, **said[name], "cost": cost} for name, cost in self.costs.items()],
            "prediction": {
                "label": str(now.label),
                "probabilities": {str(label): chance for label, chance in now.probabilities.items()},
                "votes": {str(label): share for label, share in now.votes.items()},
                "final": True,
                "reason": now.reason,
            },
        }


def _answer(feature: Feature, cost: float, hear: Hear, say: Say) -> str:
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
    alike = [category for category in feature.categories if str(category).lower() == heard.lower() or _is_number(category, heard)]
    for category in sorted(alike, key=lambda category: str(category) != heard):  # as it was typed, before another case of it
        return category  # type: ignore[no-any-return]
    raise ValueError(heard)


def _is_number(category: Value, heard: str) -> bool:
    """Whether a category is the number that was typed: 2 for 2.0."""
    try:
        return isinstance(category, (int, float)) and not isinstance(category, bool) and float(heard) == category
    except ValueError:
        return False


def _chances(probabilities: Mapping[Any, float]) -> str:
    best = sorted(probabilities.items(), key=lambda item: -item[1])[:4]
    return ", ".join(f"{label} {100 * chance:.0f} %" for label, chance in best)


def _hear_on_stderr(prompt: str) -> str:
    print(prompt, end="", file=sys.stderr, flush=True)
    return input()


def _say_on_stderr(line: str) -> None:
    print(line, file=sys.stderr)
