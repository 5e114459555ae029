"""Values to bins, one feature at a time."""

from frugal.models.kernels.compiling import kernel


@kernel
def bin_numbers(table, column, edges, missing, codes):
    """The bin of every value of a column: how many edges lie below it; nan is `missing`."""
    for r in range(table.shape[0]):
        value = table[r, column]
        if value != value:
            codes[r] = missing
            continue
        low, high = 0, len(edges)
        while low < high:
            middle = (low + high) // 2
            if edges[middle] < value:
                low = middle + 1
            else:
                high = middle
        codes[r] = low


@kernel
def bin_categories(table, column, bin_of, missing, codes):
    """The bin of every category code of a column."""
    for r in range(table.shape[0]):
        value = table[r, column]
        codes[r] = missing if value != value else bin_of[int(value)]
