"""Numbers that stand for something else, in growth and in serving alike."""

NONE = -1  # no feature, no slot, nobody
LEAF = -1  # `feature` of a leaf; `wanted` of a tree that stands on one

# `kind` of a node: which test it makes. An outcome is a position among its children.
NO_TEST = 0  # a leaf
CUT = 1  # value <= threshold: outcome 0, else 1
BIN = 2  # low < value <= threshold: outcome 0, else 1
ONE_CATEGORY = 3  # the code of this category: outcome 0, else 1
EVERY_CATEGORY = 4  # a table says which outcome each code has
SOME_CATEGORIES = 5  # while growing: one of a set of categories: outcome 0, else 1; served with a table

ENDS = -1  # the outcome of a missing value that ends the walk
NEVER_SEEN = -1  # in the table of a node: training had no such category here, so it goes where missing goes
