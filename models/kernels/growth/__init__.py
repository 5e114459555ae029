"""Growing: a tree from rows.

binning     values to small integers
impurity    how mixed a set of cases is
splitting   the best question at a node
slots       places for histograms, taken and given back
histograms  class counts per bin of a node's rows
growing     one tree, from its root to its leaves
"""
