"""What speaks for a proposed specialty: what members declare, and how far above chance it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when they are used: they take seconds

from telic.evaluate.wilson import wilson_interval
from telic.specialty.discovery.practice_mixture import ONE_THREAD, profiles_of, shares
from telic.specialty.discovery.user_patient_units import Units

LEVEL = 0.05
"""Level at which a code must be over-represented among members, corrected for the codes tried."""
CODES_USERS = 1 / 4
"""Share of a code's users that must be members, for the code to name them."""
HOME = 2 / 3
"""A code names no group that has a smaller share than this of the users it has in another group."""
DECLARE_IT = 1 / 3
"""Share of declared members who must declare a code that speaks for them, whichever it is."""
LEAST_DECLARING = 2
"""Members who must declare a code: one is no group."""
OVERLAP_OF_CODE, OVERLAP_OF_MEMBERS = 1 / 2, 1 / 5
"""`CODES_USERS` and `DECLARE_IT` where a code is named by overlap alone."""
DEALS = 5
"""Times that each half's units are dealt to users at random, to see what share chance gives."""


@dataclass(frozen=True)
class Evidence:
    """What speaks for a specialty, and what against."""

    code: str | None
    """The code that names it; without one, the code that most members declare."""
    declaring: int
    """Members who declare `code`."""
    declared: int
    """Members who declare any."""
    share: float
    """Share of the practice in its median member's work (patients' diagnoses, by EM), on a half of
    the patients that the profile was not formed on, in [0, 1]."""
    by_chance: float
    """The same where the patients are dealt to users at random."""
    deviations: float
    """How many standard deviations of the deals `share` lies above `by_chance`."""

    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % interval of the share of declared members who declare `code`.

        Examples
        --------
        >>> low, high = Evidence("Urology", 8, 10, 0.5, 0.1, 9.0).interval()
        >>> round(low, 3), round(high, 3)
        (0.49, 0.943)
        """
        if not self.declared:
            return 0.0, 1.0
        return wilson_interval(self.declaring / self.declared, self.declared)

    def as_json(self) -> dict[str, Any]:
        """Return the machine-readable form."""
        low, high = self.interval()
        return {
            "code": self.code,
            "declaring": self.declaring,
            "declared": self.declared,
            "declaring_95": [round(low, 3), round(high, 3)],
            "share": round(self.share, 3),
            "share_by_chance": round(self.by_chance, 3),
            "deviations_above_chance": round(self.deviations, 1),
        }


def evidence_from(content: Mapping[str, Any]) -> Evidence:
    """Read what `Evidence.as_json` wrote."""
    return Evidence(
        content["code"] and str(content["code"]),
        int(content["declaring"]),
        int(content["declared"]),
        float(content["share"]),
        float(content["share_by_chance"]),
        float(content["deviations_above_chance"]),
    )


def over_represented(
    taxonomy: np.ndarray, cluster: np.ndarray, k: int, in_view: np.ndarray | None = None
) -> tuple[str | None, bool]:
    """Return the code nearest to a group of users, and whether it names the group.

    A code speaks for the group if the members declare it more often than as many declared users
    drawn at random would (hypergeometric, at `LEVEL` over the number of codes that members
    declare), if `LEAST_DECLARING` members declare it, if `CODES_USERS` of its users are members,
    and if these are `HOME` of as many as it has in any other group: a code's users are mostly where
    its work is done, and others may practise what has no code. The codes that speak for the group
    name it if `DECLARE_IT` of the declared members declare one of them: a specialty may have
    several codes, each of few users. Where all in view declare one and the same, no draw would
    differ, and `OVERLAP_OF_CODE` of its users decide instead. The code returned is the one of
    highest F1 among those that name it, or among all if none does.

    Each user declares a code of `taxonomy` (or ``""``) and is in a group of `cluster` (or in none:
    −1), of which k is looked at. Only users `in_view` could be grouped at all; a code's other users
    are not missed, nor drawn.

    Examples
    --------
    >>> taxonomy = np.array(["a"] * 9 + ["b"] * 20 + [""] * 6)
    >>> cluster = np.where(np.isin(np.arange(35), [0, 1, 2, 3, 4, 5, 30]), 0, -1)
    >>> over_represented(taxonomy, cluster, 0)
    ('a', True)
    """
    users = np.flatnonzero(cluster == k)
    codes, here, everywhere = _declared(taxonomy, users, in_view)
    if not len(codes):
        return None, False
    coded = ((taxonomy if in_view is None else taxonomy[in_view]) != "").sum()
    chance = scipy.stats.hypergeom.sf(here - 1, coded, everywhere, here.sum())
    if everywhere[0] == coded:  # no draw would differ
        chance[:] = np.where(here >= OVERLAP_OF_CODE * everywhere, 0.0, 1.0)
    # A chance that is the level itself, such as 1/20, comes with rounding.
    speaks = (chance * len(codes) <= LEVEL * (1 + 1e-9)) & (here >= LEAST_DECLARING)
    speaks &= here >= CODES_USERS * everywhere
    speaks &= here >= HOME * np.array([_most_in_a_group(cluster[taxonomy == c]) for c in codes])
    named = speaks.any() and here[speaks].sum() >= DECLARE_IT * here.sum()
    f1 = 2 * here / (everywhere + len(users))
    best = int(np.argmax(np.where(speaks & named, f1 + 1, f1)))
    return str(codes[best]), bool(named)


def _most_in_a_group(groups: np.ndarray) -> int:
    return int(np.bincount(groups[groups >= 0], minlength=1).max())


def by_overlap(
    taxonomy: np.ndarray, cluster: np.ndarray, k: int, in_view: np.ndarray | None = None
) -> tuple[str | None, bool]:
    """As `over_represented`, without a test: shares of the code's users and of members decide.

    A cluster that leaves out the code's half-hearted users loses its name by this.
    """
    codes, here, everywhere = _declared(taxonomy, np.flatnonzero(cluster == k), in_view)
    if not len(codes):
        return None, False
    best = int(np.argmax(here / (everywhere + here.sum())))  # as by F1, which is twice this
    named = here[best] >= OVERLAP_OF_CODE * everywhere[best]
    named &= here[best] >= OVERLAP_OF_MEMBERS * here.sum()
    return str(codes[best]), bool(named)


NAMINGS: dict[str, Callable[..., tuple[str | None, bool]]] = {
    "tested": over_represented,
    "overlap": by_overlap,
}
"""Rules by which a listed code names a group."""


def _declared(
    taxonomy: np.ndarray, users: np.ndarray, in_view: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of the members, how many of them declare each, and how many users in view do."""
    own = taxonomy[users]
    codes, here = np.unique(own[own != ""], return_counts=True)
    seen = taxonomy if in_view is None else taxonomy[in_view]
    return codes, here, np.array([(seen == code).sum() for code in codes], dtype=int)


def commonest(taxonomy: np.ndarray, users: np.ndarray) -> str | None:
    """Return the code that most of the users declare, if any declares one."""
    codes, here, _ = _declared(taxonomy, users, None)
    return str(codes[here.argmax()]) if len(codes) else None


@ONE_THREAD
def shares_shown(
    units: Units, cluster: np.ndarray, n_clusters: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Measure each cluster's share in its median member's work, and what chance gives.

    Profiles are formed on a random half of the patients and measured on the other, both ways.
    `cluster` is that of each user, −1 for none.

    Returns
    -------
    share : ndarray of shape (n_clusters,)
    by_chance : ndarray of shape (2 · DEALS, n_clusters)
        The same where the measured half's units are dealt to users at random.
    """
    grouped = cluster >= 0
    own = cluster[grouped]

    def medians(measured: Units, profile: np.ndarray) -> np.ndarray:
        share = shares(measured.counts()[grouped], profile)
        parts = [share[own == k, k] for k in range(n_clusters)]
        return np.array([np.median(part) if len(part) else 0.0 for part in parts])

    real, chance = [], []
    halves = units.halves(rng)
    for formed, measured in (halves, halves[::-1]):
        profile = profiles_of(formed, cluster, n_clusters)
        real.append(medians(measured, profile))
        chance += [medians(measured.dealt(rng), profile) for _ in range(DEALS)]
    return np.mean(real, axis=0), np.array(chance)


def evidence_of(
    taxonomy: np.ndarray, users: np.ndarray, code: str | None, share: float, by_chance: np.ndarray
) -> Evidence:
    """Put together what speaks for a cluster of users that `code` names, if one does.

    `share` and `by_chance` are the cluster's columns of what `shares_shown` returned.
    """
    code = code or commonest(taxonomy, users)
    own = taxonomy[users]
    return Evidence(
        code,
        int((own == code).sum()),
        int((own != "").sum()),
        share,
        float(by_chance.mean()),
        float((share - by_chance.mean()) / max(by_chance.std(ddof=1), np.finfo(float).eps)),
    )
