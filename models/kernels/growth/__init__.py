"""Growing: a tree from rows.

binning     values to small integers
impurity    how mixed a set of cases is
rules       what makes a question good: gain, price, score, pick
targets     what is to be told, and the sums that it is judged by
context     what a question costs at a node
questions   what may be asked of a feature, and a node's rows by outcome
splitting   the best question of one feature
slots       places that are taken and given back
histograms  sums per bin of a node's rows
nodes       the tree while it grows, and all room that growing needs
searching   the question of one node
growing     one tree, from its root to its leaves
pruning     backward passes over a grown tree
"""
