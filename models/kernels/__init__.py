"""All numba: arrays in, arrays out.

compiling   the one decorator, and where compiled code is kept
checking    one pass over the flat form: indices, cycles, finiteness; what is possible below each node
walking     one tree, one step
voting      how positions in trees become one prediction, and when it can no longer change
choosing    which feature to ask for next
deciding    one case, from its answers to a decision
acquiring   many full rows, each to its end
binning     values to small integers
impurity    how mixed a set of cases is
splitting   the best question at a node
slots       places for histograms, taken and given back
histograms  class counts per bin of a node's rows
growing     one tree, from its root to its leaves
parsing     cells of CSV to numbers and codes of words; decimals, digits to the nearest float
"""
