"""The slow obvious twins of pruning, on nested trees: a leaf is its class counts, an inner node (question, counts, children)."""

import math


def upper_errors(many, wrong, cf):
    """Of whole cases: the share at which so few errors have the probability cf, by halving, times the cases."""
    low, high = 0.0, 1.0
    for _ in range(100):
        share = (low + high) / 2
        few = sum(math.comb(many, k) * share**k * (1 - share) ** (many - k) for k in range(wrong + 1))
        low, high = (share, high) if few > cf else (low, share)
    return many * low


def pruned(tree, as_leaf, asking, slack=0.0, bought=()):
    """(tree, cost): bottom up, a leaf wherever that costs no more; `asking` gives (question, counts, what is bought) a cost."""
    if isinstance(tree, list):
        return tree, as_leaf(tree)
    question, counts, children = tree
    below = [pruned(child, as_leaf, asking, slack, (*bought, question)) for child in children]
    cost = asking(question, counts, bought) + sum(each for _, each in below)
    if as_leaf(counts) <= cost + slack:
        return counts, as_leaf(counts)
    return (question, counts, [child for child, _ in below]), cost


def weakest_path(tree, wrong):
    """Minimal cost-complexity pruning by the book: [(strength, tree)], the weakest link found anew each time by looking at all."""
    path = [(0.0, tree)]
    while isinstance(tree, tuple):
        links = list(_links(tree, wrong))
        weakest = min(strength for strength, _ in links)
        weakest = max(weakest, path[-1][0])
        while isinstance(tree, tuple):
            links = [(strength, node) for strength, node in _links(tree, wrong) if strength <= weakest + 1e-12]
            if not links:
                break
            tree = _without(tree, links[0][1])
        path.append((weakest, tree))
    return path


def _leaves(tree):
    return [tree] if isinstance(tree, list) else [leaf for child in tree[2] for leaf in _leaves(child)]


def _links(tree, wrong):
    if isinstance(tree, tuple):
        leaves = _leaves(tree)
        yield (wrong(tree[1]) - sum(map(wrong, leaves))) / (len(leaves) - 1), tree
        for child in tree[2]:
            yield from _links(child, wrong)


def _without(tree, node):
    if tree is node:
        return tree[1]
    if isinstance(tree, list):
        return tree
    return (tree[0], tree[1], [_without(child, node) for child in tree[2]])
