"""One node as a walk reads it, and one step from it."""

import numpy as np

from frugal.models.kernels.compiling import inlined

NO_TABLE = -1  # `table` of a test that compares numbers

# What a walk reads of a node, in one half of a cache line. Outcome 0 is low < value <= threshold, which a test for one category is too, of
# its code; or, where there is a table, what that says from `table` on. Child = first + outcome. A leaf with a value of one class only has
# that class in `missing` and the value in `low`: a walk that ends there has both at hand.
NODE = np.dtype(
    [("feature", "i4"), ("first", "i4"), ("missing", "i4"), ("table", "i4"), ("low", "f8"), ("threshold", "f8")],
    align=True,
)


@inlined
def step(forest, plain, i, value):
    """The child of node i for this value (nan is missing), or -1.

    `plain` promises a test of numbers and a value that is there. Then the child is computed without a branch: which way a case goes is what
    a processor cannot guess, and a wrong guess costs more than the rest of the step (4 us against 10 for a row through 40 trees).
    """
    node = forest.nodes[i]
    outside = np.int64((value > node["threshold"]) | (value <= node["low"]))
    return node["first"] + outside if plain else any_step(forest, i, value)


@inlined
def any_step(forest, i, value):
    node = forest.nodes[i]
    if value != value:
        return np.int64(node["missing"])
    if node["table"] == NO_TABLE:
        if value <= node["threshold"] and value > node["low"]:
            return np.int64(node["first"])
        return np.int64(node["first"]) + 1
    outcome = np.int64(forest.outcomes[node["table"] + np.int64(value)])
    return node["first"] + outcome if outcome >= 0 else np.int64(node["missing"])
