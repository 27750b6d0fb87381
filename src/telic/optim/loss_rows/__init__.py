"""Losses of many rows in compiled code: a module for each family, so a fit compiles only its own.

Each has the same five functions. They begin with the terms that `Problem` has: the loss's code and
shape, predictions z, targets y and masses, which are one number for each row or one for all. Those
that end with `turn` and `threads` are run by `telic.optim.threads.share`.

- ``losses(*terms, move, step, sums, turn, threads)``: weighted sum of the losses of z + step · move
  in each block of rows.
- ``gradients(*terms, out, turn, threads)``: weighted derivatives; out may be z.
- ``curvatures(*terms, out, turn, threads)``: weighted second derivatives; at least 1e-12 times the
  mass, since a flat model would be unbounded.
- ``conjugates(code, shape, a, y, mass, scale, sums, turn, threads)``: weighted sum of the
  conjugates at scale · a / mass in each block, where a holds weighted derivatives.
- ``best_shift(*terms)``: number t that minimises the weighted loss of z + t.

The few lines that cut rows into blocks and turns stand in each: a kernel that took the loop over
them as an argument would be compiled anew by every process.
"""

from types import ModuleType

from telic.optim.loss_rows import logistic, plain, poisson, squared, tweedie

_FAMILIES = {0: squared, 1: logistic, 4: poisson, 5: tweedie}


def rows_of(code: int) -> ModuleType:
    """Return the loops of the loss of that code: `plain` ones, unless it has its own."""
    return _FAMILIES.get(code, plain)
