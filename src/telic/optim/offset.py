"""An offset of the predictions, such as an exposure's logarithm, put into targets and weights."""

import numpy as np

from telic.errors import InputError
from telic.optim.losses import LogLink, Loss

LARGEST_OFFSET = 100.0
"""Of a loss with a log link: exp of it must leave room for the data."""


def without_offset(
    loss: Loss, y: np.ndarray, mass: np.ndarray, offset: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Targets and masses with which the predictions need no offset: the objective is the same.

    Residuals do not change if it is taken off the target. Poisson's loss of z + o is exp(o) times
    that of z for y exp(−o), the rate instead of the count; Tweedie's exp((2 − power) o) times it.
    """
    if not isinstance(loss, LogLink):
        return y - offset, mass
    if np.abs(offset).max() > LARGEST_OFFSET:
        row = int(np.abs(offset).argmax())
        raise InputError(
            f"offset is {offset[row]:g} at row {row}, expected at most {LARGEST_OFFSET:g} in size: "
            "the logarithm of the exposure."
        )
    return y * np.exp(-offset), mass * np.exp((2.0 - loss.power) * offset)
