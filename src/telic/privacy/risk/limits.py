"""How much risk a publisher accepts: for everybody on average, and for those who are worst off."""

from dataclasses import dataclass, fields

from telic.errors import InputError
from telic.privacy.risk.risks import Measures, Risk

NAMES = {
    "risk": "mean risk",
    "highest": "highest individual risk",
    "unique": "share of users alone of their kind",
    "tail": "mean risk of the worst 1 %",
}
"""What each limit is about."""


@dataclass(frozen=True)
class Limits:
    """Limits on a release's risk; None: not limited. At least one is needed.

    Parameters
    ----------
    risk : float in (0, 1], optional
        On the mean risk R(T).
    highest : float in (0, 1], optional
        On the highest individual risk. 1/k asks for k-anonymity of all that is seen: 0.2 means
        that everybody has at least five who look the same, themselves included.
    unique : float in [0, 1], optional
        On the share of users who are alone of their kind.
    tail : float in (0, 1], optional
        On the mean risk of the 1 % of users at the highest risk.

    Raises
    ------
    InputError
        If a limit is out of range, or none is given.

    Examples
    --------
    >>> Limits(risk=0.05, highest=0.2).words()
    'mean risk at most 5.0%, highest individual risk at most 20.0%'
    """

    risk: float | None = None
    highest: float | None = None
    unique: float | None = None
    tail: float | None = None

    def __post_init__(self) -> None:
        given = self.given()
        if not given:
            raise InputError(
                "limits: none is given. Limit the mean risk (--max-risk), or another measure."
            )
        for name, limit in given.items():
            if not (0 <= limit <= 1 if name == "unique" else 0 < limit <= 1):
                least = "0" if name == "unique" else "more than 0"
                raise InputError(
                    f"limit on the {NAMES[name]} is {limit}, expected {least} and at most 1."
                )

    def given(self) -> dict[str, float]:
        """Return the limits that are set, by name."""
        every = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: limit for name, limit in every.items() if limit is not None}

    def met_by(self, found: Measures | Risk) -> bool:
        """Say whether a release keeps all limits. Coarsening never breaks one that is kept."""
        return all(getattr(found, name) <= limit for name, limit in self.given().items())

    def words(self) -> str:
        """Name the limits."""
        return ", ".join(f"{NAMES[name]} at most {x:.1%}" for name, x in self.given().items())
