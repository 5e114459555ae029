"""A tree, and the path a case takes through it, as text for people."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from frugal.models.flat import Flat
from frugal.models.kernels.marks import BIN, CUT, ENDS, EVERY_CATEGORY, NEVER_SEEN, ONE_CATEGORY
from frugal.models.schema import Schema, Value


def tree_text(flat: Flat, schema: Schema, classes: Sequence[Any], vote: str, root: int) -> str:
    nodes = _Nodes(flat, schema, classes, vote)
    lines = []
    stack = [(root, 0, "")]
    while stack:
        i, depth, branch = stack.pop()
        lines.append(_indent(depth) + branch + nodes.text(i))
        for child, answers in reversed(nodes.branches(i)):
            stack.append((child, depth + 1, ", ".join(answers) + ": "))
    return "\n".join(lines)


def path_text(flat: Flat, schema: Schema, classes: Sequence[Any], vote: str, root: int, answers: Mapping[str, Value]) -> str:
    nodes = _Nodes(flat, schema, classes, vote)
    codes = {name: schema.encode(name, value) for name, value in answers.items()}
    lines: list[str] = []
    i = root
    while flat.feature[i] >= 0:
        name = schema.names[flat.feature[i]]
        if name not in codes:
            return "\n".join([*lines, f"{nodes.text(i)}  waiting for {name}"])
        outcome, branch = nodes.way(i, codes[name])
        lines.append(f"{nodes.text(i)}  {name} = {'unavailable' if answers[name] is None else answers[name]}: {branch}")
        if outcome == ENDS:
            return "\n".join([*lines, "ends here"])
        i = int(flat.first_child[i]) + outcome
    return "\n".join([*lines, nodes.text(i)])


def _indent(depth: int, most: int = 40) -> str:
    """Deeper than this a line would be mostly blanks: it says its depth instead."""
    return "  " * depth if depth <= most else "  " * most + f"(depth {depth}) "


class _Nodes:
    """The nodes of an ensemble, in words."""

    def __init__(self, flat: Flat, schema: Schema, classes: Sequence[Any], vote: str) -> None:
        self.flat, self.schema, self.classes, self.vote = flat, schema, classes, vote
        self.bins = np.flatnonzero(flat.kind == BIN)  # which nodes the arrays of some nodes only are for
        self.every = np.flatnonzero(flat.kind == EVERY_CATEGORY)
        self.tables = flat.tables(schema.arity)

    def text(self, i: int) -> str:
        dense = self.flat.dense(i, len(self.classes))
        values = "[" + ", ".join(f"{value:g}" for value in dense) + "]" if len(dense) <= 12 else f"[{len(dense)} classes]"
        if self.flat.feature[i] < 0:
            return f"{'score' if self.vote == 'additive' else self.classes[int(dense.argmax())]}  {values}"
        return f"{self.question(i)}?  {values}"

    def question(self, i: int) -> str:
        feature, threshold = self.schema.features[self.flat.feature[i]], float(self.flat.threshold[i])
        kind = self.flat.kind[i]
        if kind == EVERY_CATEGORY:
            return str(feature.name)
        if kind == ONE_CATEGORY:
            return f"{feature.name} is {feature.categories[int(threshold)]}"
        low = f"{self.low(i):.10g} < " if kind == BIN else ""
        return f"{low}{feature.name} <= {threshold:.10g}"

    def branches(self, i: int) -> list[tuple[int, list[str]]]:
        """The children of a node, each with the answers that lead to it."""
        if self.flat.feature[i] < 0:
            return []
        ways: dict[int, list[str]] = {}
        for outcome, answer in self.answers(i):
            if outcome != NEVER_SEEN:
                ways.setdefault(outcome, []).append(answer)
        if self.flat.missing[i] != ENDS:
            ways.setdefault(int(self.flat.missing[i]), []).append("missing")
        first = int(self.flat.first_child[i])
        return [(first + way, answers if len(answers) <= 12 else [*answers[:10], "...", answers[-1]]) for way, answers in ways.items()]

    def way(self, i: int, code: float) -> tuple[int, str]:
        """The outcome of a code at a node, or ENDS, and the name of that branch."""
        missing, threshold = int(self.flat.missing[i]), self.flat.threshold[i]
        if code != code:
            return missing, "missing"
        if self.flat.kind[i] == EVERY_CATEGORY:
            outcome, answer = self.answers(i)[int(code)]
            return (missing, "never seen here, as missing") if outcome == NEVER_SEEN else (outcome, answer)
        if self.flat.kind[i] == ONE_CATEGORY:
            inside = code == threshold
        else:
            inside = code <= threshold and (self.flat.kind[i] == CUT or code > self.low(i))
        return (0, "yes") if inside else (1, "no")

    def answers(self, i: int) -> list[tuple[int, str]]:
        """Every answer in words, with its outcome."""
        if self.flat.kind[i] != EVERY_CATEGORY:
            return [(0, "yes"), (1, "no")]
        place = int(np.searchsorted(self.every, i))
        outcomes = self.flat.outcomes[self.tables[place] : self.tables[place + 1]].tolist()
        categories = self.schema.features[self.flat.feature[i]].categories
        return [(outcome, str(category)) for outcome, category in zip(outcomes, categories, strict=True)]

    def low(self, i: int) -> float:
        return float(self.flat.low[np.searchsorted(self.bins, i)])
