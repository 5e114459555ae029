"""The slow obvious twin of the engine that grows trees: on lists of rows, every question tried, every sum taken afresh.

A row is a dict of feature values (None: missing) with "class" and "weight", or with "first" and "second" derivatives. A tree is a leaf's
sums, or (feature, question, sums, outcome of missing or None, children). Only the order in which ties fall is the engine's.
"""

import math
from dataclasses import dataclass, field
from itertools import combinations, pairwise


def threshold_pairs(counts, alpha):
    return sum(max(max(a - alpha, 0) * max(b - alpha, 0) - alpha**2, 0) for a, b in combinations(counts, 2))


def clipped_pairs(counts, alpha):
    return sum(max(a - alpha, 0) * max(b - alpha, 0) for a, b in combinations(counts, 2))


def powers(counts, power):
    return sum(counts) ** power - sum(n**power for n in counts)


def polynomial(counts, power):
    return sum(a**e * b ** (power - e) for a, b in combinations(counts, 2) for e in range(1, power))


def entropy(counts):
    total = sum(counts)
    return math.log2(total) - sum(n * math.log2(n) for n in counts if n) / total


def gini(counts):
    return 1 - sum(n * n for n in counts) / sum(counts) ** 2


def counts_of(rows, classes):
    counts = [0] * classes
    for row in rows:
        counts[row["class"]] += row["weight"]
    return counts


def all_of(outcomes):
    return [row for outcome in outcomes for row in outcome]


def weight_of(rows):
    return sum(row["weight"] for row in rows)


# How much a question is worth: (rows of the node, its outcomes as lists of rows) -> (whole, what remains); the least remains is best.


def worst(impurity, classes):
    def judge(rows, outcomes):
        return impurity(counts_of(all_of(outcomes), classes)), max(impurity(counts_of(outcome, classes)) for outcome in outcomes)

    return judge


def mean(impurity, classes):
    def judge(rows, outcomes):
        known = all_of(outcomes)
        remains = sum(impurity(counts_of(outcome, classes)) * weight_of(outcome) for outcome in outcomes) / weight_of(known)
        whole, share = impurity(counts_of(known, classes)), weight_of(known) / weight_of(rows)
        if len(known) == len(rows):
            return whole, remains
        all_ = impurity(counts_of(rows, classes))
        return all_, all_ - share * (whole - remains)

    return judge


def penalties(matrix):
    def cost(rows):
        return min(sum(said[row["class"]] * row["weight"] for row in rows) for said in matrix)

    return lambda rows, outcomes: (cost(all_of(outcomes)), sum(map(cost, outcomes)))


def derivatives_of(rows):
    """(G, H) of each score."""
    scores = range(len(rows[0]["first"]))
    return [(sum(row["first"][k] for row in rows), sum(row["second"][k] for row in rows)) for k in scores]


ANY = (-math.inf, math.inf)


def held(score, bounds):
    return min(max(score, bounds[0]), bounds[1])


def loss(l2):
    def left(rows, bounds):
        scores = [(g, h, held(-g / (h + l2), bounds)) for g, h in derivatives_of(rows)]
        return sum(g * s + (h + l2) * s * s / 2 for g, h, s in scores)

    return lambda rows, outcomes, bounds=ANY: (left(all_of(outcomes), bounds), sum(left(outcome, bounds) for outcome in outcomes))


def disjunction(impurity, classes, lam, theta, everybody):
    """Zhang and Gionis, Algorithm 1, object by object; `rows` are objects, their weight the probability."""

    def size_of(rows):
        """(probability, pairs of different classes)."""
        return weight_of(rows), sum(a * b for a, b in combinations([sum(row["class"] == c for row in rows) for c in range(classes)], 2))

    total, all_pairs = size_of(everybody)

    def covered(row, size):
        """f~ of one object where it is among a set of this size."""
        weight, pairs = size
        far = min((total - weight) / (total - max(row["weight"], theta)), 1)
        return 1 - (1 - far) * (pairs / all_pairs)

    def judge(rows, outcomes):
        whole, parts = size_of(rows), [size_of(outcome) for outcome in outcomes]
        balance = whole[0] - weight_of(max(outcomes, key=len))
        gained = 0.0
        for part, outcome in zip(parts, outcomes, strict=True):
            for row in outcome:
                before = covered(row, whole)
                gained += row["weight"] * (covered(row, part) - before) / (1 - before)
        impure, remains = mean(impurity, classes)(rows, outcomes)
        return 0.0, -(balance + gained + lam * whole[0] * (impure - remains))

    return judge


# How the price comes in.


def divided(gain, price):
    return gain / price


def squared(gain, price):
    return gain * gain / price


def eg2(w):
    return lambda gain, price: (2**gain - 1) / (price + 1) ** w


def subtracted(lam):
    return lambda gain, price: gain - lam * price


def plain(gain, price):
    return gain


@dataclass
class Engine:
    """What the twin grows by; `fees` gives (feature, features bought on the path, rows of the node) a price."""

    features: dict  # name -> (form, its bins in order)
    judge: object
    score: object
    fees: object
    sums: object
    done: object = lambda rows: False
    missing: str = "side"  # or "own", "ends", "fractions"
    ratio: bool = False
    tie: float = 0.0
    depth: int = 10**9
    leaves: int = 0
    least_rows: int = 1
    least_gain: float = 0.0
    least_score: float = 0.0
    trend: dict = field(default_factory=dict)  # name -> 1 where the score may only rise with it, -1 fall
    l2: float = 0.0  # what scores are held by, with a trend
    can_pay: object = lambda name, row: True
    pay: object = lambda name, rows: None
    rethink: bool = False  # what a question asks for may have become cheaper while a node waited
    step: float = 2.0**-20
    asked: list = field(default_factory=list)

    def grow(self, rows):
        root = {"rows": rows, "bought": (), "depth": 0, "number": 0, "children": None, "bounds": ANY}
        if self.leaves == 0:
            self._grow_below(root)
        else:
            self._grow_best_first(root)
        return self._shown(root)

    def _grow_below(self, node):
        best = self._best(node)
        if best:
            self._split(node, best, 0)
            for child in node["children"]:
                self._grow_below(child)

    def _grow_best_first(self, root):
        waiting, nodes, leaves = [(root, self._best(root))], 1, 1
        while leaves < self.leaves:
            if self.rethink:
                waiting = [(node, self._best(node)) for node, _ in waiting]
            ready = [(node, best) for node, best in waiting if best]
            if not ready:
                break
            node, best = max(ready, key=lambda pair: (pair[1]["score"], -pair[0]["number"]))
            waiting = [pair for pair in waiting if pair[0] is not node]
            self._split(node, best, nodes)
            nodes += len(node["children"])
            leaves += len(node["children"]) - 1
            waiting += [(child, self._best(child)) for child in node["children"]]

    def _best(self, node):
        """The best question of the best feature: first the least that remains within each feature, then the greatest score of all."""
        rows = node["rows"]
        if node["depth"] >= self.depth or len(rows) < max(2, 2 * self.least_rows) or self.done(rows):
            return None
        found = []
        for name, (form, bins) in self.features.items():
            kept = [row for row in rows if self.can_pay(name, row)]
            least = None
            for question in questions(form, kept, name, bins, self.missing):
                small = [len(outcome) < self.least_rows for outcome in question["outcomes"]]
                if sum(not few for few in small) < 2 if form == "every" else any(small[:2]):
                    continue
                if self._against(name, question, node["bounds"]):
                    continue
                whole, remains = self.judge(kept, question["outcomes"], *([node["bounds"]] if self.trend else []))
                lowest = whole - self.least_gain if least is None else least["remains"]
                if remains < lowest - self.tie * abs(lowest):
                    least = question | {"remains": remains, "gain": whole - remains}
            if least and least["gain"] > self.least_gain:
                price = self.fees(name, node["bought"], kept)
                found.append(least | {"name": name, "score": self.score(least["gain"], price)})
        if self.ratio and found:
            enough = sum(each["gain"] for each in found) / len(found) - 1e-3
            found = [each | {"score": each["gain"] / spread(each)} for each in found if each["gain"] >= enough]
        best = None
        for each in found:
            bar = self.least_score if best is None else best["score"]
            if each["score"] > bar + (0 if best is None else self.tie * abs(bar)):
                best = each
        return best

    def _scores(self, outcomes, bounds):
        return [held(-g / (h + self.l2), bounds) for outcome in outcomes for g, h in derivatives_of(outcome)[:1]]

    def _against(self, name, question, bounds):
        """Whether a question would move the score the wrong way."""
        if not self.trend.get(name):
            return False
        low, high = self._scores(question["outcomes"], bounds)
        return self.trend[name] * (high - low) < 0

    def _bounds(self, node, best):
        """Those of each child."""
        low, high = node["bounds"]
        if not self.trend.get(best["name"]):
            return [(low, high)] * len(best["outcomes"])
        middle = sum(self._scores(best["outcomes"], node["bounds"])) / 2
        below, above = (low, middle), (middle, high)
        return [below, above] if self.trend[best["name"]] > 0 else [above, below]

    def _split(self, node, best, number):
        self.pay(best["name"], [row for outcome in best["outcomes"] for row in outcome])
        outcomes = [list(outcome) for outcome in best["outcomes"]]
        if self.missing == "fractions":
            known = sum(map(weight_of, outcomes))
            weights = [weight_of(outcome) for outcome in outcomes]
            for outcome, weight in zip(outcomes, weights, strict=True):
                for row in best["behind"]:
                    share = round(row["weight"] * weight / known / self.step) * self.step
                    outcome.append(row | {"weight": max(share, self.step)})
        node["best"] = best
        bought, depth = (*node["bought"], best["name"]), node["depth"] + 1
        node["children"] = [
            {"rows": rows, "bought": bought, "depth": depth, "number": number + k, "children": None, "bounds": bounds}
            for k, (rows, bounds) in enumerate(zip(outcomes, self._bounds(node, best), strict=True))
        ]

    def _shown(self, node):
        sums = self.sums(node["rows"], *([node["bounds"]] if self.trend else []))
        if not node["children"]:
            return sums
        best = node["best"]
        return (best["name"], best["asks"], sums, best["way"], [self._shown(child) for child in node["children"]])


def questions(form, rows, name, bins, missing):
    """Every question of a feature, as dicts: its outcomes (lists of rows), who stays behind, what it asks in words of bins, and the outcome
    of missing values."""
    present = [b for b in bins if any(row[name] == b for row in rows)]
    absent = [row for row in rows if row[name] is None]
    if form == "every":
        outcomes = [[row for row in rows if row[name] == b] for b in present]
        own = bool(absent) and missing in ("side", "own")
        outcomes += [absent] if own else []
        if len(outcomes) > 1:
            behind = [] if own else absent
            yield {"outcomes": outcomes, "behind": behind, "asks": tuple(present), "way": len(present) if own else None}
        return
    if form == "some":
        sides = [(kept, kept, [row for row in rows if row[name] in kept]) for kept in sets_of(rows, name, present)]
    elif form == "cut":
        sides = [(low, high, [row for row in rows if row[name] is not None and row[name] <= low]) for low, high in pairwise(present)]
    else:
        sides = [(b, b, [row for row in rows if row[name] == b]) for b in present] if len(present) > 1 else []
    for low, high, left in sides:
        inside = {row[name] for row in left}
        right = [row for row in rows if row[name] is not None and row[name] not in inside]
        asks = bins[(bins.index(low) + bins.index(high) - 1) // 2] if form == "cut" else low  # halfway on the grid of all bins
        if not absent:
            yield {"outcomes": [left, right], "behind": [], "asks": asks, "way": None}
        elif missing == "side":
            yield {"outcomes": [left, right + absent], "behind": [], "asks": asks, "way": 1}
            yield {"outcomes": [left + absent, right], "behind": [], "asks": asks, "way": 0}
        elif missing == "own":
            yield {"outcomes": [left, right, absent], "behind": [], "asks": asks, "way": 2}
        else:
            yield {"outcomes": [left, right], "behind": absent, "asks": asks, "way": None}


def sets_of(rows, name, present):
    """Sets of categories to ask for: each alone; and sorted by each score, rare ones cautiously, the first few or the last few."""
    if len(present) > 1:
        yield from ((b,) for b in present)
    for k in range(len(rows[0]["first"]) if len(present) > 3 else 0):

        def score(b, k=k):
            first, second = derivatives_of([row for row in rows if row[name] == b])[k]
            return -first / (second + 10)

        ranked = sorted(present, key=lambda b: (score(b), b))
        for size in range(1, len(ranked)):
            yield tuple(sorted(ranked[:size] if 2 * size <= len(ranked) else ranked[size:]))


def spread(question):
    """C4.5's split information; those who stay behind are an outcome of their own."""
    sizes = [weight_of(outcome) for outcome in [*question["outcomes"], question["behind"]] if outcome]
    return math.log2(sum(sizes)) - sum(size * math.log2(size) for size in sizes) / sum(sizes)
