"""What the loops of all losses share: which rows are whose, and their masses."""

from telic.kernels import kernel
from telic.optim.vector_math import BLOCK


@kernel
def rows_of_turn(size, turn, threads):
    """First row of a turn, and the first one after it."""
    return size * turn // threads, size * (turn + 1) // threads


@kernel
def rows_of_block(size, block):
    """First row of a block, and the first one after it."""
    return block * BLOCK, min(size, (block + 1) * BLOCK)


@kernel
def of_row(values, i):
    """Value of row i; all rows share one where `values` holds no more."""
    return values[i] if values.size > 1 else values[0]


@kernel
def of_rows(values, begin, end):
    """Return the values of some rows, or the one that all rows share."""
    return values[begin:end] if values.size > 1 else values


@kernel
def weigh(out, mass, begin, end):
    """Multiply rows by their masses; what does not count is 0, even if it is infinite."""
    for i in range(begin, end):
        m = of_row(mass, i)
        out[i] = m * out[i] if m > 0.0 else 0.0
