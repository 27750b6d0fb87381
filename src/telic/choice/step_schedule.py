"""How the step of an online fit shrinks from one submission to the next."""

from typing import Literal

import numpy as np

from telic.kernels import kernel

Schedule = Literal["annealed", "steady"]


@kernel
def step_after(step_size, t, annealed):
    """Step size after t updates: eta 0.9^t as printed [Zhang2017] (2.7.2), or eta / sqrt(1 + t)."""
    return step_size * 0.9**t if annealed else step_size / np.sqrt(1.0 + t)
