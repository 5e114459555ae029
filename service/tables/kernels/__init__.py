"""The kernels of reading CSV. Compiled and kept as those of frugal.models.kernels are.

parsing     cells of a block to numbers and codes of words
decimals    decimal digits to the nearest float
"""
