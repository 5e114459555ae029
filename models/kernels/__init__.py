"""All numba: arrays in, arrays out.

compiling   the one decorator, and where compiled code is kept; sharing, the locks on that folder
marks       numbers that stand for something else
pricing     the price of a feature, given what is bought
growth/     a tree from rows
serving/    a decision from answers
"""
