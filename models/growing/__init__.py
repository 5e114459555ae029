"""Growing trees, for every learner.

binning   values to small integers
rules     what makes a question good, by name
targets   what a tree is to tell, and what its questions cost
layout    a grown tree as a served one
pruning   by errors to be expected, by money, by cost-complexity
grower    trees from a binned table, a target, a rule and prices
"""
