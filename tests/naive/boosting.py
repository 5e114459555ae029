"""Boosting with money as a slow, obvious loop: derivatives, a tree by the naive engine, every row's walk and payment."""

import math

from tests.naive import growing


def path(rows, features, costs, classes, *, lams, each, l2, rate, leaves, least_rows, price="case", purse=math.inf, loss="log", trend=None):
    """Trees, each (what it asks and the scores of its nodes, nested), and what the rows' scores are then.

    Rows are dicts with a class, a weight and values; of two classes there is one score. `price` "model": who asks first pays for all.
    """
    scores, shares = 1 if classes == 2 else classes, [0.0] * classes
    for row in rows:
        shares[row["class"]] += row["weight"] / sum(other["weight"] for other in rows)
    for row in rows:
        row.update(owned=set(), purse=purse, scores=first_scores(shares, scores, loss))
    used, trees = set(), []
    for lam in lams:
        for _ in range(each):
            for row in rows:
                row["first"], row["second"] = derivatives(row, scores, loss)
            tree = engine(rows, features, costs, used, scores, lam, l2, leaves, least_rows, price, trend or {}).grow(rows)
            if not isinstance(tree, tuple):
                break
            name, asks, _, *rest = with_scores(tree, scores, l2, rate)
            tree = (name, asks, [0.0] * scores, *rest)  # who is asked nothing says nothing
            for row in rows:
                row["scores"] = [a + b for a, b in zip(row["scores"], walk(tree, row, features, costs, price), strict=True)]
            trees.append(tree)
    return trees, [row["scores"] for row in rows]


def first_scores(shares, scores, loss):
    if loss == "squared":
        return [2 * share - 1 for share in shares[-scores:]]
    return [math.log(shares[1] / shares[0])] if scores == 1 else [math.log(share) for share in shares]


def derivatives(row, scores, loss):
    wanted = [row["class"] == (c if scores > 1 else 1) for c in range(scores)]
    if loss == "squared":
        first = [row["weight"] * (s - (1 if right else -1)) for s, right in zip(row["scores"], wanted, strict=True)]
        return first, [row["weight"]] * scores
    if scores == 1:
        chances, factor = [1 / (1 + math.exp(-row["scores"][0]))], 1
    else:
        total = sum(math.exp(s) for s in row["scores"])
        chances, factor = [math.exp(s) / total for s in row["scores"]], scores / (scores - 1)
    first = [row["weight"] * (chance - right) for chance, right in zip(chances, wanted, strict=True)]
    return first, [row["weight"] * chance * (1 - chance) * factor for chance in chances]


def owed(costs, name, row):
    return 0 if row[name] is None else costs.marginal(name, row["owned"])


def pay(costs, name, row):
    row["purse"] -= owed(costs, name, row)
    if row[name] is not None:
        row["owned"].add(name)


def engine(rows, features, costs, used, scores, lam, l2, leaves, least_rows, price, trend):
    """The engine of one tree. Per case, who cannot pay stays behind."""
    cases = sum(row["weight"] for row in rows)

    def fee(name, bought, here):
        if price == "model":
            return cases * costs.marginal(name, used)
        return sum(row["weight"] * owed(costs, name, row) for row in here)

    def buy(name, here):
        used.add(name)
        for row in here if price == "case" else ():
            pay(costs, name, row)

    return growing.Engine(
        features,
        growing.loss(l2),
        growing.subtracted(lam),
        fee,
        lambda here, bounds=growing.ANY: [*sums_of(here, scores), bounds],
        missing="side",
        leaves=leaves,
        least_rows=least_rows,
        can_pay=lambda name, row: price == "model" or owed(costs, name, row) <= row["purse"],
        pay=buy,
        rethink=price == "model",
        trend=trend,
        l2=l2,
    )


def sums_of(rows, scores):
    return [sum(row[kind][c] for row in rows) for kind in ("first", "second") for c in range(scores)]


def with_scores(tree, scores, l2, rate):
    """The same with what each node says instead of its sums."""
    sums = tree[2] if isinstance(tree, tuple) else tree
    said = [rate * growing.held(-sums[c] / (sums[scores + c] + l2), sums[-1]) for c in range(scores)]
    if not isinstance(tree, tuple):
        return said
    name, asks, _, way, children = tree
    return name, asks, said, way, [with_scores(child, scores, l2, rate) for child in children]


def outcome_of(form, value, asks):
    return int(value > asks if form == "cut" else value not in asks if form == "some" else value != asks)


def walk(tree, row, features, costs, price):
    while isinstance(tree, tuple):
        name, asks, said, way, children = tree
        if price == "case" and owed(costs, name, row) > row["purse"]:
            return said
        if price == "case":
            pay(costs, name, row)
        outcome = way if row[name] is None else outcome_of(features[name][0], row[name], asks)
        if outcome is None:
            return said
        tree = children[outcome]
    return tree
