"""The slow obvious twin of the greedy grower: straight from GREEDYTREE, on lists of rows."""

from itertools import combinations, pairwise

from frugal.models import Leaf, Split


def threshold_pairs(counts, alpha):
    return sum(max(max(a - alpha, 0) * max(b - alpha, 0) - alpha**2, 0) for a, b in combinations(counts, 2))


def clipped_pairs(counts, alpha):
    return sum(max(a - alpha, 0) * max(b - alpha, 0) for a, b in combinations(counts, 2))


def powers(counts, power):
    return sum(counts) ** power - sum(n**power for n in counts)


def polynomial(counts, power):
    return sum(a**e * b ** (power - e) for a, b in combinations(counts, 2) for e in range(1, power))


def counts_of(rows, classes):
    counts = [0] * classes
    for row in rows:
        counts[row["class"]] += row["weight"]
    return counts


def grow(rows, features, classes, impurity, fees, expected=False, on_path=False, bought=(), grid=None):
    """`rows` are dicts of feature values, class and weight; `features` maps a name to None (numeric) or its categories."""
    totals = counts_of(rows, classes)
    grid = grid or {name: sorted({row[name] for row in rows if row[name] is not None}) for name in features}
    whole = impurity(totals)
    best = None
    if whole > 0:
        for name, categories in features.items():
            for outcomes, split in cuts(rows, name, grid[name]) if categories is None else every_category(rows, name, categories):
                parts = [impurity(counts_of(outcome, classes)) for outcome in outcomes]
                sizes = [sum(row["weight"] for row in outcome) for outcome in outcomes]
                left = sum(p * s for p, s in zip(parts, sizes, strict=True)) / sum(sizes) if expected else max(parts)
                if left < whole:
                    risk = fees(name, bought if on_path else ()) / (whole - left)
                    if best is None or risk < best[0]:
                        best = (risk, name, outcomes, split)
    if best is None:
        return Leaf(totals)
    _, name, outcomes, split = best
    deeper = [grow(outcome, features, classes, impurity, fees, expected, on_path, (*bought, name), grid) for outcome in outcomes]
    return Split(name, totals, deeper, **split)


def cuts(rows, name, grid):
    """Every two-way cut between neighbouring values, with missing on either side: right before left where they tie. The threshold lies
    halfway on the grid of all values in the table."""
    present = sorted({row[name] for row in rows if row[name] is not None})
    missing = [row for row in rows if row[name] is None]
    for low, high in pairwise(present):
        left = [row for row in rows if row[name] is not None and row[name] <= low]
        right = [row for row in rows if row[name] is not None and row[name] > low]
        middle = (grid.index(low) + grid.index(high) - 1) // 2
        threshold = {"threshold": (grid[middle] + grid[middle + 1]) / 2}
        if not missing:
            yield [left, right], threshold
        else:
            yield [left, right + missing], threshold | {"missing": 1}
            yield [left + missing, right], threshold | {"missing": 0}


def every_category(rows, name, categories):
    """One outcome per category that is there; missing is an outcome of its own."""
    seen = [category for category in categories if any(row[name] == category for row in rows)]
    outcomes = [[row for row in rows if row[name] == category] for category in seen]
    missing = [row for row in rows if row[name] is None]
    way = {"missing": len(seen)} if missing else {}
    outcomes += [missing] if missing else []
    if len(outcomes) > 1:
        yield outcomes, {"branches": {category: k for k, category in enumerate(seen)}} | way
