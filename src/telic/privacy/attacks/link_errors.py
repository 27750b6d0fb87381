"""How far links may differ between a release and what an intruder knows."""

from dataclasses import asdict, dataclass

from telic.errors import InputError

UNKNOWN = "may be false or unknown to the intruder"
"""What `added` says of published links."""


@dataclass(frozen=True, slots=True)
class LinkErrors:
    """The attack's error model: three budgets, each for links of one type in one direction.

    A person's published links are matched with the known links of a candidate, each with one at
    most, so that the nodes at the other ends match too. The defaults are DeHIN itself. Where
    several link types are looked at jointly, a budget counts neighbours instead of links: a
    neighbour who lacks one of several links has no counterpart. Profiles have no errors.

    Parameters
    ----------
    added : float in [0, 1]
        Share of a person's published links that may have no known counterpart: fake, or unknown
        to the intruder. With 1, `missing` 0, and links that are not looked at jointly, the attack
        is that of an intruder who knows a few links of each person, all of which are published.
        (Jointly, a neighbour of whom one of several links is unknown does not match.)
    changed : float in [0, 1)
        Share of a person's published links whose known counterpart may have a strength that does
        not fit.
    missing : float in [0, 1]
        Share of a candidate's known links that may have no published counterpart. 1: any number,
        as DeHIN takes it, because a network grows. 0 with the others at 0: as many links that
        are all equal or, where links are looked at jointly, as many neighbours who all match;
        further links of a candidate to a neighbour who is matched are not counted then.

    Notes
    -----
    Of d links, ⌊share · d⌋ may be in error. The same budgets apply to every neighbour's own links
    at the distances beyond.

    Examples
    --------
    >>> LinkErrors(added=0.2).words()
    'Of every 100 published links of a person, up to 20 may be false or unknown to the intruder.'
    """

    added: float = 0.0
    changed: float = 0.0
    missing: float = 1.0

    def __post_init__(self) -> None:
        for name, share in asdict(self).items():
            top = share < 1 if name == "changed" else share <= 1
            if not (share >= 0 and top):
                last = "less than" if name == "changed" else "at most"
                raise InputError(f"{name} is {share}, expected at least 0 and {last} 1.")

    def shares(self) -> tuple[float, float, float]:
        """Return added, changed and missing, as the kernels take them."""
        return float(self.added), float(self.changed), float(self.missing)

    def words(self) -> str:
        """Say in whole sentences what is tolerated, beyond what the matching rules allow."""
        told = [
            f"up to {100 * share:g} {what}"
            for share, what in (
                (self.added if self.added < 1 else 0.0, UNKNOWN),
                (self.changed, "may have a strength that does not fit"),
            )
            if share
        ]
        parts = [f"Any number of published links {UNKNOWN}."] if self.added == 1 else []
        if told:
            parts.append(f"Of every 100 published links of a person, {' and '.join(told)}.")
        if self.missing < 1:
            parts.append(
                f"Of every 100 links that the intruder knows of a person, up to "
                f"{100 * self.missing:g} may be missing in the release."
            )
        return " ".join(parts) or (
            "The attack assumes that no published link is false; any number of known links may be "
            "missing."
        )


EXACT = LinkErrors()
"""DeHIN itself."""
