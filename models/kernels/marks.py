"""Numbers that stand for something else, in growth and in serving alike."""

NONE = -1  # no feature, no slot, nobody
LEAF = -1  # `feature` of a leaf; `wanted` of a tree that stands on one
