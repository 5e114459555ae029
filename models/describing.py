"""A tree, and the path a case takes through it, as text for people."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from frugal.models.flat import Flat
from frugal.models.schema import NUMERIC, Feature, Schema, Value


def tree_text(flat: Flat, schema: Schema, classes: Sequence[Any], vote: str, root: int) -> str:
    lines = []
    stack = [(root, 0, "")]
    while stack:
        i, depth, branch = stack.pop()
        lines.append(_indent(depth) + branch + _node_text(flat, schema, classes, vote, i))
        for child, answers in reversed(_branches(flat, schema, i)):
            stack.append((child, depth + 1, ", ".join(answers) + ": "))
    return "\n".join(lines)


def path_text(flat: Flat, schema: Schema, classes: Sequence[Any], vote: str, root: int, answers: Mapping[str, Value]) -> str:
    codes = {name: schema.encode(name, value) for name, value in answers.items()}
    lines: list[str] = []
    i = root
    while flat.feature[i] >= 0:
        name = schema.names[flat.feature[i]]
        question = _node_text(flat, schema, classes, vote, i)
        if name not in codes:
            return "\n".join([*lines, f"{question}  waiting for {name}"])
        child, branch = _way(flat, schema, i, codes[name])
        lines.append(f"{question}  {name} = {'unavailable' if answers[name] is None else answers[name]}: {branch}")
        if child < 0:
            return "\n".join([*lines, "ends here"])
        i = child
    return "\n".join([*lines, _node_text(flat, schema, classes, vote, i)])


def _indent(depth: int, most: int = 40) -> str:
    """Deeper than this a line would be mostly blanks: it says its depth instead."""
    return "  " * depth if depth <= most else "  " * most + f"(depth {depth}) "


def _node_text(flat: Flat, schema: Schema, classes: Sequence[Any], vote: str, i: int) -> str:
    values = "[" + ", ".join(f"{value:g}" for value in flat.values[i]) + "]" if len(classes) <= 12 else f"[{len(classes)} classes]"
    if flat.feature[i] < 0:
        return f"{'score' if vote == 'additive' else classes[flat.values[i].argmax()]}  {values}"
    return f"{_question(flat, schema[schema.names[flat.feature[i]]], i)}?  {values}"


def _question(flat: Flat, feature: Feature, i: int) -> str:
    if feature.kind != NUMERIC:
        return feature.name
    low = "" if flat.low[i] == -math.inf else f"{flat.low[i]:.10g} < "
    return f"{low}{feature.name} <= {flat.threshold[i]:.10g}"


def _branches(flat: Flat, schema: Schema, i: int) -> list[tuple[int, list[str]]]:
    """The children of a node, each with the answers that lead to it."""
    if flat.feature[i] < 0:
        return []
    ways: dict[int, list[str]] = {}
    for child, answer in zip(_slice(flat, i), _answers(schema, int(flat.feature[i])), strict=True):
        if child >= 0:
            ways.setdefault(child, []).append(answer)
    if flat.missing_child[i] >= 0:
        ways.setdefault(int(flat.missing_child[i]), []).append("missing")
    return [(child, answers if len(answers) <= 12 else [*answers[:10], "...", answers[-1]]) for child, answers in ways.items()]


def _way(flat: Flat, schema: Schema, i: int, code: float) -> tuple[int, str]:
    """Where a code leads from a node, and the name of that branch."""
    if code != code:
        return int(flat.missing_child[i]), "missing"
    feature = schema.features[flat.feature[i]]
    choice = int(code) if feature.kind != NUMERIC else (0 if flat.low[i] < code <= flat.threshold[i] else 1)
    child = _slice(flat, i)[choice]
    if child < 0:
        return int(flat.missing_child[i]), "never seen here, as missing"
    return child, _answers(schema, int(flat.feature[i]))[choice]


def _slice(flat: Flat, i: int) -> list[int]:
    entries: list[int] = flat.children[flat.child_start[i] : flat.child_start[i + 1]].tolist()
    return entries


def _answers(schema: Schema, feature: int) -> list[str]:
    described = schema.features[feature]
    return ["yes", "no"] if described.kind == NUMERIC else [str(category) for category in described.categories]
