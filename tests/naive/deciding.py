"""The slow obvious twin of `decide`: works on the grown trees themselves, in exact fractions, straight from the rules."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from frugal.models import CostModel, Leaf, Schema, Split
from frugal.models.tree import ENDS

SMALL = Fraction(1, 10**9)


@dataclass
class Model:
    """What an ensemble is made from."""

    trees: list[Any]
    schema: Schema
    costs: CostModel
    classes: list[str]
    vote: str
    order: str
    stop: str
    delayed: str
    weights: list[float]
    penalties: list[list[float]] | None = None
    smoothing: float = 1.0
    calibration: dict[str, Any] | None = None
    reader: list[Any] | None = None
    blend: float = 0.5
    sureness: str = "label"
    settings: dict[str, Any] = field(default_factory=dict)


def walk(tree, answers, schema):
    """(the node a tree stands on, the feature it waits for or None, whether it cannot go on)."""
    node = tree
    while isinstance(node, Split):
        if node.feature not in answers:
            return node, node.feature, False
        way = branch(node, answers[node.feature])
        if way == ENDS:
            return node, None, True
        node = node.children[way]
    return node, None, False


def branch(split, value):
    missing = split.missing
    if missing is None:
        sizes = [sum(child.values) for child in split.children]
        missing = sizes.index(max(sizes))
    if value is None:
        return missing
    if split.category is not None:
        return 0 if value == split.category else 1
    if split.branches is None:
        return 0 if split.low < value <= split.threshold else 1
    return split.branches.get(value, missing)


def at_or_below(node):
    yield node
    for child in getattr(node, "children", ()):
        yield from at_or_below(child)


def best(values):
    return max(range(len(values)), key=lambda c: (values[c], -c))


def gives(model, t, node):
    """What tree t gives each class at a node."""
    weight = Fraction(model.weights[t])
    if model.vote in ("majority", "weighted"):
        return [weight if c == best(node.values) else Fraction(0) for c in range(len(model.classes))]
    return [weight * Fraction(value) for value in node.values]


def totals(model, nodes):
    given = [gives(model, t, node) for t, node in enumerate(nodes)]
    return [sum(column) for column in zip(*given, strict=True)]


def elect(model, sums):
    """(label, shares of the votes)"""
    if model.vote == "additive":
        powers = [math.exp(s - max(sums)) for s in sums]
        shares = [p / sum(powers) for p in powers]
    elif sum(sums) > 0:
        shares = [s / sum(sums) for s in sums]
    else:
        shares = [Fraction(1, len(sums))] * len(sums)
    if model.penalties is None:
        return best(sums), shares
    expected = [
        sum(Fraction(row[i]) * shares[i] if model.vote != "additive" else row[i] * shares[i] for i in range(len(row)))
        for row in model.penalties
    ]
    return expected.index(min(expected)), shares


def tell(model, nodes, over, answers):
    """(label, told probabilities, shares of the votes) of trees that stand on these nodes; `over`: which ask for nothing more. The reader
    sees the answers."""
    sums = totals(model, nodes)
    label, shares = elect(model, sums)
    if model.vote == "additive":
        told = [float(share) for share in shares]
    elif model.vote == "counts":
        told = smoothed(model, sums)
    else:
        weights = [Fraction(w) for w in model.weights]
        each = [smoothed(model, [Fraction(v) for v in node.values]) for node in nodes]
        told = [sum(w * own[c] for w, own in zip(weights, each, strict=True)) / sum(weights) for c in range(len(sums))]
    if model.reader is not None:
        share = model.blend if any(value is not None for value in answers.values()) else 0.0
        told = [(1 - share) * float(p) + share * q for p, q in zip(told, read(model, answers), strict=True)]
        label = best(told) if model.penalties is None else least_penalty(model, told)
    leader = label
    if model.penalties is None:
        told = with_the_label_first(told, label)
    else:
        leader = told.index(max(told)) if told[label] < max(told) else label
    if model.calibration is not None:
        told = calibrated(model, *progress(model, nodes, over), leader, [float(p) for p in told])
    return label, told, shares


def read(model, answers):
    """What the reader says of a case: where nothing is answered, all is missing to it."""
    seen = {name: answers.get(name) for name in model.schema.names}
    sums = [sum(float(walk(tree, seen, model.schema)[0].values[c]) for tree in model.reader) for c in range(len(model.classes))]
    powers = [math.exp(s - max(sums)) for s in sums]
    return [p / sum(powers) for p in powers]


def least_penalty(model, chances):
    expected = [sum(row[i] * chances[i] for i in range(len(row))) for row in model.penalties]
    return expected.index(min(expected))


def sureness(model, label, chances):
    if model.penalties is None or model.sureness == "label":
        return chances[label]
    greatest = max(max(row) for row in model.penalties)
    expected = sum(price * float(chance) for price, chance in zip(model.penalties[label], chances, strict=True))
    return 1 - expected / greatest if greatest else 1.0


def smoothed(model, counts):
    cases, s = sum(counts), Fraction(model.smoothing)
    return [(n + s * p) / (cases + s) if cases + s else p for n, p in zip(counts, prior(model), strict=True)]


def prior(model):
    """The mean share of each class at the roots of trees that have cases there."""
    roots = [(Fraction(w), [Fraction(v) for v in tree.values]) for w, tree in zip(model.weights, model.trees, strict=True)]
    full = [(w, values) for w, values in roots if sum(values) > 0]
    if not full:
        return [Fraction(1, len(model.classes))] * len(model.classes)
    return [sum(w * values[c] / sum(values) for w, values in full) / sum(w for w, _ in full) for c in range(len(model.classes))]


def with_the_label_first(told, label):
    before = [c for c in range(len(told)) if told[c] > told[label] or (told[c] == told[label] and c < label)]
    mean = (told[label] + sum(told[c] for c in before)) / (len(before) + 1)
    return [mean if c in (label, *before) else p for c, p in enumerate(told)]


def progress(model, nodes, over):
    """(how far the trees have come, how many have come to their ends), by weight; a tree at its root has done neither.

    How far: 0 at the root, 1 at nodes of one case, the logarithms between.
    """
    one = model.smoothing or 1.0

    def way(tree, node):
        if model.vote == "additive":
            return float(node is not tree)
        whole, here = sum(tree.values), max(sum(node.values), one)
        return math.log(whole / here) / math.log(whole / one) if node is not tree and sum(node.values) < whole > one else 0.0

    places = list(zip(model.weights, model.trees, nodes, over, strict=True))
    far = sum(w * way(tree, node) for w, tree, node, _ in places)
    done = sum(w for w, tree, node, ended in places if ended and node is not tree)
    return far / sum(model.weights), done / sum(model.weights)


def calibrated(model, far, done, leader, told):
    others = [p for c, p in enumerate(told) if c != leader]
    if not any(others):
        return told
    given = model.calibration
    p = min(max(told[leader], 1e-12), 1 - 1e-12)
    odds = math.log(p / (1 - p))
    moved = odds + far * (given["bias"][leader] + given["slope"] * odds) + done * given["end_bias"]
    q = max(1 / (1 + math.exp(-moved)), max(others) / (max(others) + 1 - told[leader]))
    return [q if c == leader else p * (1 - q) / (1 - told[leader]) for c, p in enumerate(told)]


def is_decided(model, nodes, over, label):
    least, greatest = [Fraction(0)] * len(model.classes), [Fraction(0)] * len(model.classes)
    for t, node in enumerate(nodes):
        reachable = [gives(model, t, n) for n in ([node] if over[t] else at_or_below(node))]
        for c in range(len(model.classes)):
            least[c] += min(given[c] for given in reachable)
            greatest[c] += max(given[c] for given in reachable)
    return all(rival == label or beaten(model, label, rival, least, greatest) for rival in range(len(model.classes)))


def beaten(model, label, rival, least, greatest):
    if model.penalties is not None:
        if model.vote == "additive":
            return False
        dearer = [Fraction(model.penalties[rival][i]) - Fraction(model.penalties[label][i]) for i in range(len(least))]
        lead = sum(d * (least[i] if d > 0 else greatest[i]) for i, d in enumerate(dearer))
        return lead > SMALL * Fraction(max(model.penalties[rival] + model.penalties[label])) * sum(greatest)
    lead = least[label] - greatest[rival]
    if model.vote == "majority":
        return lead > 0 or (lead == 0 and label < rival)
    return lead > SMALL * total_weight(model)


def total_weight(model):
    if model.vote in ("majority", "weighted"):
        return sum(map(Fraction, model.weights))
    return sum(
        Fraction(w) * max(abs(Fraction(v)) for node in at_or_below(tree) for v in node.values)
        for w, tree in zip(model.weights, model.trees, strict=True)
    )


def decide(model, answers, budget=None, spent=0, bought=None, pending=(), confidence=None, cap=None):
    """("ask", feature, cost) | ("wait", features) | ("stop", reason), then label, probabilities and votes."""
    bought = {name for name, value in answers.items() if value is not None} if bought is None else set(bought)
    places = [walk(tree, answers, model.schema) for tree in model.trees]
    nodes = [node for node, _, _ in places]
    waits = [feature for _, feature, _ in places]
    label, chances, shares = tell(model, nodes, [feature is None for feature in waits], answers)
    result = [label, [float(p) for p in chances], [float(share) for share in shares]]
    if not any(waits):
        return ["stop", "exhausted" if any(ended for _, _, ended in places) else "leaf", *result]
    if model.stop == "decided" and is_decided(model, nodes, [feature is None for feature in waits], label):
        return ["stop", "decided", *result]
    if confidence is not None and sureness(model, label, chances) >= confidence and confidence < 1:
        return ["stop", "confident", *result]
    offers = [offered(model, node, feature, answers, pending) for node, feature in zip(nodes, waits, strict=True)]
    price = {name: Fraction(model.costs.marginal(name, bought)).limit_denominator(10**6) for name in model.schema.names}
    left = None if budget is None else Fraction(budget).limit_denominator(10**6) - Fraction(spent).limit_denominator(10**6)
    candidates = {f for offer in offers for f in offer if f not in pending and (left is None or price[f] <= left)}
    if candidates:
        chosen = in_turn(offers, candidates) if model.order == "sequential" else by_votes(model, offers, candidates, price, bought)
        if cap is None or price[chosen] <= max(0, Fraction(cap).limit_denominator(10**6) - Fraction(spent).limit_denominator(10**6)):
            return ["ask", chosen, float(price[chosen]), *result]
    awaited = tuple(name for name in model.schema.names if name in waits and name in pending)
    return ["wait", awaited, *result] if awaited else ["stop", "aim" if candidates else "budget", *result]


def offered(model, node, feature, answers, pending):
    """The features a tree offers: the one it waits for; if that is pending and may be ordered ahead, all it may need below."""
    if feature is None:
        return []
    if feature in pending and model.delayed == "ahead":
        return list(dict.fromkeys(needed_below(node, answers)))
    return [feature]


def needed_below(node, answers):
    if isinstance(node, Leaf):
        return
    if node.feature in answers:
        way = branch(node, answers[node.feature])
        if way != ENDS:
            yield from needed_below(node.children[way], answers)
        return
    yield node.feature
    for child in node.children:
        yield from needed_below(child, answers)


def in_turn(offers, candidates):
    return next(f for offer in offers for f in offer if f in candidates)


def by_votes(model, offers, candidates, price, bought):
    names = model.schema.names
    waiting = {f: sum(Fraction(model.weights[t]) for t, offer in enumerate(offers) if f in offer) for f in candidates}
    free = [f for f in names if f in candidates and price[f] == 0]
    if free:
        return free[0]
    floor = sum(Fraction(p.cost).limit_denominator(10**6) for p in model.costs.prices) / len(names) / 100
    entered = {model.costs[f].group for f in bought}
    rivals = []  # (score, feature index) of each single candidate and each group
    groups = {}
    for i, f in enumerate(names):
        if f not in candidates:
            continue
        group = model.costs[f].group
        if group is None or group in entered:
            rivals.append((waiting[f] / max(price[f], floor), -i))
        else:
            groups.setdefault(group, []).append(f)
    for members in groups.values():
        inside = {f: exact(model.costs[f].cost_in_group, price[f]) for f in members}
        together = sum(inside.values()) + min(price[f] - inside[f] for f in members)
        own = max(members, key=lambda f: (waiting[f] / max(price[f], floor), -names.index(f)))
        rivals.append((sum(waiting[f] for f in members) / max(together, floor), -names.index(own)))
    return names[-max(rivals)[1]]


def exact(amount, otherwise):
    return otherwise if amount is None else Fraction(amount).limit_denominator(10**6)
