"""Which alarms a de facto specialty explains, and which stay open.

An access raises an alarm when the declared specialty covers none of the encounter's diagnoses. A
specialty covers a diagnosis that its users access at least as often as everybody does. Nothing is
ever closed here: an explained alarm is marked, and ranked behind the open ones.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from telic.specialty.access import AccessLog
from telic.specialty.discovery import Discovery

SHRINK = 200.0
"""Imagined accesses of the hospital's mix that every specialty's profile starts from."""
COVERED = 1.0
"""Lift from which a specialty covers a diagnosis."""


@njit(cache=True, nogil=True)
def _best_lift(user, encounter, start, code, profile_of, counts, own, base, shrink, best, reason):
    """Largest lift, over an encounter's codes, for the user's profile without the user's share."""
    for a in range(len(user)):
        u = user[a]
        k = profile_of[u]
        best[a] = -1.0
        for p in range(start[encounter[a]], start[encounter[a] + 1]):
            d = code[p]
            here, total = 0.0, 0.0
            if k >= 0:
                here = counts[k, d] - own[u, d]
                total = counts[k, -1] - own[u, -1]
            lift = (here + shrink * base[d]) / ((total + shrink) * base[d])
            if lift > best[a]:
                best[a] = lift
                reason[a] = d


@dataclass(frozen=True, eq=False)
class Alerts:
    """Every access of a log, judged by the declared and by the de facto specialty."""

    declared: np.ndarray
    """Largest lift of the encounter's diagnoses under the declared specialty, per access."""
    practised: np.ndarray
    """The same under the de facto specialty; the declared one's where none was found."""
    reason: np.ndarray
    """The code that decided `practised`."""
    specialty: np.ndarray
    """De facto specialty of each access's user, −1 for none."""

    @property
    def raised(self) -> np.ndarray:
        """Accesses that raise an alarm."""
        return self.declared <= COVERED

    @property
    def explained(self) -> np.ndarray:
        """Alarms that the de facto specialty explains."""
        return self.raised & (self.practised > COVERED)

    def queue(self) -> np.ndarray:
        """Alarms to review: open ones first, least covered first; explained ones behind."""
        return _by_lift(np.maximum(self.declared, self.practised), self.raised)

    def queue_without(self) -> np.ndarray:
        """The queue if nobody knew the de facto specialties."""
        return _by_lift(self.declared, self.raised)


def judge(log: AccessLog, discovery: Discovery) -> Alerts:
    """Judge every access by the user's declared and de facto specialties.

    Parameters
    ----------
    log : AccessLog
    discovery : Discovery

    Returns
    -------
    Alerts
        In the order of ``log.access_row``.

    Notes
    -----
    A user's own accesses are left out of the profile the user is judged by, so nobody becomes
    normal by doing something often. Without a declared specialty nothing is covered.
    """
    counts = log.user_diagnosis().toarray().astype(np.float64)
    own = np.hstack([counts, counts.sum(axis=1, keepdims=True)])
    base = counts.sum(axis=0) / counts.sum()
    base[base == 0] = 1.0
    codes = np.unique(log.taxonomy[log.taxonomy != ""])
    declared_of = np.where(log.taxonomy == "", -1, np.searchsorted(codes, log.taxonomy))

    def best(profile_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        profiles = np.zeros((max(int(profile_of.max()) + 1, 1), own.shape[1]))
        np.add.at(profiles, profile_of[profile_of >= 0], own[profile_of >= 0])
        lift = np.empty(len(log.access_user))
        reason = np.zeros(len(log.access_user), dtype=np.int32)
        _best_lift(
            log.access_user,
            log.access_encounter,
            log.diagnosis.indptr,
            log.diagnosis.indices,
            profile_of.astype(np.int32),
            profiles,
            own,
            base,
            SHRINK,
            lift,
            reason,
        )
        return lift, reason

    declared, declared_reason = best(declared_of)
    practised, reason = best(discovery.cluster)
    none = discovery.cluster[log.access_user] < 0
    return Alerts(
        declared,
        np.where(none, declared, practised),
        np.where(none, declared_reason, reason),
        discovery.cluster[log.access_user],
    )


@dataclass(frozen=True)
class Effect:
    """What the de facto specialties change, with known truth or without."""

    alerts: int
    explained: int
    open: int
    undeclared_alerts: int
    """Alarms of users without a declared specialty: no code of theirs could cover anything."""
    unlisted_alerts: int
    """Alarms raised by users of specialties without a listed code."""
    unlisted_explained: int
    queue_length: int
    """Alarms reviewed, the same number with and without: those that stay open."""
    snooping: int | None = None
    """Planted snooping accesses in the log."""
    caught_without: int | None = None
    """Of these, how many lie in a queue of that length without de facto specialties."""
    caught_with: int | None = None


def effect(
    log: AccessLog, discovery: Discovery, alerts: Alerts, snooping_rows: np.ndarray | None = None
) -> Effect:
    """Count alarms before and after, and planted snooping caught at equal queue length.

    Parameters
    ----------
    log, discovery, alerts
    snooping_rows : ndarray of int, optional
        1-based rows of the accesses file that are known to be snooping.
    """
    unlisted = [k for k, one in enumerate(discovery.specialties) if one.listed_code is None]
    hidden = np.isin(alerts.specialty, unlisted)
    snooping = (
        np.zeros(len(hidden), dtype=bool)
        if snooping_rows is None
        else np.isin(log.access_row, snooping_rows)
    )
    length = int((alerts.raised & ~alerts.explained).sum())
    found = Effect(
        alerts=int(alerts.raised.sum()),
        explained=int(alerts.explained.sum()),
        open=length,
        undeclared_alerts=int(alerts.raised[log.taxonomy[log.access_user] == ""].sum()),
        unlisted_alerts=int((alerts.raised & hidden & ~snooping).sum()),
        unlisted_explained=int((alerts.explained & hidden & ~snooping).sum()),
        queue_length=length,
    )
    if snooping_rows is None:
        return found
    return Effect(
        **{
            **found.__dict__,
            "snooping": int(snooping.sum()),
            "caught_without": int(snooping[alerts.queue_without()[:length]].sum()),
            "caught_with": int(snooping[alerts.queue()[:length]].sum()),
        }
    )


class Pseudonyms:
    """Names for users that cannot be undone without the key.

    Parameters
    ----------
    key : bytes, optional
        The same key gives the same names; without one a random key is drawn and forgotten.

    Examples
    --------
    >>> names = Pseudonyms(b"a key of your own")
    >>> names("ann") == names("ann") != names("bob")
    True
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def __call__(self, identifier: str) -> str:
        """Return the pseudonym of an id."""
        digest = hmac.new(self._key, identifier.encode(), hashlib.sha256).hexdigest()
        return f"user-{digest[:10]}"


def lines(
    log: AccessLog,
    discovery: Discovery,
    alerts: Alerts,
    *,
    limit: int,
    pseudonyms: Pseudonyms | None,
) -> Iterator[dict[str, object]]:
    """Give the queue line by line; each names the row of the accesses file it comes from.

    Parameters
    ----------
    log, discovery, alerts
    limit : int
        Lines at most.
    pseudonyms : Pseudonyms or None
        None shows the log's own user ids.
    """
    for a in alerts.queue()[:limit]:
        user = str(log.users[log.access_user[a]])
        k = int(alerts.specialty[a])
        found = discovery.specialties[k] if k >= 0 else None
        codes = log.diagnosis[[log.access_encounter[a]]].indices
        yield {
            "row": int(log.access_row[a]),
            "user": pseudonyms(user) if pseudonyms else user,
            "at": str(np.datetime64(int(log.access_at[a]), "us")) + "Z",
            "declared": str(log.taxonomy[log.access_user[a]]) or None,
            "practised": found.listed_code or found.name if found else None,
            "diagnoses": [log.label(str(log.codes[d])) for d in codes],
            "status": "explained" if alerts.explained[a] else "open",
            "because": log.label(str(log.codes[alerts.reason[a]]))
            if alerts.explained[a]
            else "neither the declared nor a de facto specialty covers a diagnosis",
            "lift": round(float(max(alerts.declared[a], alerts.practised[a])), 3),
        }


def _by_lift(lift: np.ndarray, raised: np.ndarray) -> np.ndarray:
    rows = np.flatnonzero(raised)
    return rows[np.argsort(lift[rows], kind="stable")]
