"""The losses of one prediction: NumPy methods are the reference, `code` names the numba kernel.

Each is convex in the prediction z = ⟨w, x⟩ + b. `smoothness` bounds the second derivative.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, xlogy

from telic.errors import InputError, expect_above, expect_one_of


@dataclass(frozen=True, slots=True)
class Squared:
    """(z − y)² / 2."""

    code: ClassVar[int] = 0
    classifies: ClassVar[bool] = False
    smoothness: ClassVar[float] = 1.0
    shape: ClassVar[float] = 0.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of the predictions z, elementwise."""
        return 0.5 * (z - y) ** 2

    def gradient(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return z - y

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""
        return np.ones_like(z - y)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sup over z of a z − loss(z): infinite outside its domain."""
        return 0.5 * a**2 + a * y


@dataclass(frozen=True, slots=True)
class Logistic:
    """log(1 + exp(−y z)) for y in {−1, +1}."""

    code: ClassVar[int] = 1
    classifies: ClassVar[bool] = True
    smoothness: ClassVar[float] = 0.25
    shape: ClassVar[float] = 0.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of the predictions z, elementwise."""
        return np.logaddexp(0.0, -y * z)

    def gradient(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return -y * expit(-y * z)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""
        return expit(z) * expit(-z) + 0.0 * y

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sup over z of a z − loss(z): infinite outside its domain."""
        p = -a * y
        inside = (p >= 0) & (p <= 1)
        p = np.clip(p, 0.0, 1.0)
        return np.where(inside, xlogy(p, p) + xlogy(1 - p, 1 - p), np.inf)


@dataclass(frozen=True, slots=True)
class SquaredHinge:
    """max(0, 1 − y z)² for y in {−1, +1}."""

    code: ClassVar[int] = 2
    classifies: ClassVar[bool] = True
    smoothness: ClassVar[float] = 2.0
    shape: ClassVar[float] = 0.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of the predictions z, elementwise."""
        return np.maximum(0.0, 1.0 - y * z) ** 2

    def gradient(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z (a subgradient's at the kink)."""
        return np.where(y * z < 1.0, 2.0, 0.0)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sup over z of a z − loss(z): infinite outside its domain."""
        p = -a * y
        return np.where(p >= 0, 0.25 * p**2 - p, np.inf)


@dataclass(frozen=True, slots=True)
class Huber:
    """Squared within `delta` of y, linear beyond: the residual's influence is bounded by delta."""

    delta: float = 1.35

    code: ClassVar[int] = 3
    classifies: ClassVar[bool] = False
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        expect_above(0, delta=self.delta)

    @property
    def shape(self) -> float:
        """The parameter handed to the kernels."""
        return float(self.delta)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of the predictions z, elementwise."""
        r = np.abs(z - y)
        return np.where(r <= self.delta, 0.5 * r**2, self.delta * (r - 0.5 * self.delta))

    def gradient(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return np.clip(z - y, -self.delta, self.delta)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z (a subgradient's at the kinks)."""
        return np.where(np.abs(z - y) <= self.delta, 1.0, 0.0)

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sup over z of a z − loss(z): infinite outside its domain."""
        inside = np.abs(a) <= self.delta * (1 + 1e-12)
        return np.where(inside, 0.5 * a**2 + a * y, np.inf)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Half the Poisson deviance with a log link: exp(z) − y z + y log y − y, for y >= 0.

    Its second derivative is unbounded, so methods whose step needs a Lipschitz constant refuse it.
    """

    code: ClassVar[int] = 4
    classifies: ClassVar[bool] = False
    smoothness: ClassVar[float] = np.inf
    shape: ClassVar[float] = 0.0
    power: ClassVar[float] = 1.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of the predictions z, elementwise."""
        return np.exp(z) - y * z + xlogy(y, y) - y

    def gradient(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return np.exp(z) - y

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""
        return np.exp(z) + 0.0 * y

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sup over z of a z − loss(z): infinite outside its domain."""
        u = np.maximum(a + y, 0.0)
        return np.where(a + y >= 0, xlogy(u, u) - u - xlogy(y, y) + y, np.inf)


@dataclass(frozen=True, slots=True)
class Tweedie:
    """Half the Tweedie deviance with a log link, for y >= 0; power 2 is Gamma's, for y > 0.

    With k = power − 1, c = 2 − power and t = z − log y it is
    y^c ((exp(−k t) − 1)/k + (exp(c t) − 1)/c), for Gamma exp(−t) − 1 + t. It is convex for powers
    from 1, which is `Poisson`, to 2. Its second derivative is unbounded, as Poisson's.
    """

    power: float = 1.5

    code: ClassVar[int] = 5
    classifies: ClassVar[bool] = False
    smoothness: ClassVar[float] = np.inf

    def __post_init__(self) -> None:
        if not 1 < self.power <= 2:
            raise InputError(
                f"Tweedie's power is {self.power!r}, expected a number above 1 and at most 2; "
                "1 is the poisson loss."
            )

    @property
    def shape(self) -> float:
        """The parameter handed to the kernels."""
        return float(self.power)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of the predictions z, elementwise."""
        k, c = self.power - 1.0, 2.0 - self.power
        level = np.log(np.where(y > 0, y, 1.0))
        t = z - level
        fall = np.expm1(np.where(y > 0, -k * t, 0.0)) / k
        if c > 0:
            fall = np.where(y > 0, fall, 1 / c)
        return np.exp(c * level) * (fall + (np.expm1(c * t) / c if c > 0 else t))

    def gradient(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Derivative in z."""
        return np.exp((2.0 - self.power) * z) - self._falling(z, y)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Second derivative in z."""
        k, c = self.power - 1.0, 2.0 - self.power
        return c * np.exp(c * z) + k * self._falling(z, y)

    def _falling(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Compute y exp(−k z): 0 where y is, however small z is."""
        return y * np.exp(np.where(y > 0, (1.0 - self.power) * z, 0.0))

    def conjugate(self, a: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Sup over z of a z − loss(z): infinite outside its domain.

        It is at the z whose derivative is a, found by halving; Gamma's z is log(y/(1 − a)).
        """
        k, c = self.power - 1.0, 2.0 - self.power
        y = np.asarray(y, dtype=float)
        if c == 0:
            u = np.maximum(1.0 - a, 0.0)
            return np.where(a <= 1, xlogy(u, u) + a + a * np.log(y), np.inf)
        slope = a / np.where(y > 0, y, 1.0) ** c
        high, low = np.log1p(np.maximum(slope, 0.0)) / c, -np.log1p(np.maximum(-slope, 0.0)) / k
        for _ in range(100):
            t = (low + high) / 2
            above = np.exp(c * t) - np.exp(-k * t) > slope
            low, high = np.where(above, low, t), np.where(above, t, high)
        z = np.log(np.where(y > 0, y, 1.0)) + low
        u = np.maximum(a, 0.0)
        without = np.where(a >= 0, (xlogy(u, u) - u) / c, np.inf)
        return np.where(y > 0, a * z - self.value(z, y), without)


LogLink = Poisson | Tweedie
"""Losses that predict exp of the linear score."""

Loss = Squared | Logistic | SquaredHinge | Huber | Poisson | Tweedie

_BY_NAME: dict[str, Callable[[], Loss]] = {
    "squared": Squared,
    "logistic": Logistic,
    "squared_hinge": SquaredHinge,
    "huber": Huber,
    "poisson": Poisson,
    "gamma": lambda: Tweedie(2.0),
    "tweedie": Tweedie,
}


def as_loss(loss: "str | Loss") -> Loss:
    """Return the loss of that name, or the loss itself.

    Raises
    ------
    InputError
        If the name is unknown.

    Examples
    --------
    >>> as_loss("huber")
    Huber(delta=1.35)
    """
    if isinstance(loss, Loss):
        return loss
    expect_one_of(_BY_NAME, loss=loss)
    return _BY_NAME[loss]()
