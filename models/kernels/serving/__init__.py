"""Serving: a decision from answers.

checking    one pass over the flat form: indices, cycles, finiteness; what is possible below each node
walking     one tree, one step
values      what a node holds, as it is kept
voting      how positions in trees become one label, and when it can no longer change
telling     how likely each class is said to be
choosing    which feature to ask for next
deciding    one case, from its answers to a decision
acquiring   many full rows, each to its end
judging     rows at some moment of their sessions, by trees that they did not grow
"""
