"""Practices as mixtures: everybody's work, and what some users do beside it.

A user's diagnoses are drawn from the hospital's mix ("everybody's work") and from practices, each
with its own profile; the user's shares of them follow by expectation-maximisation (EM). A user
belongs to the practice of largest share if the share is large, and surely so.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its parts load when they are used: they take seconds
from scipy import sparse
from threadpoolctl import threadpool_limits

from telic.kernels import kernel
from telic.specialty.discovery.user_patient_units import Units

MEMBER_SHARE = 1 / 3
"""Least share of a practice in its members' work."""
SURE_SHARE = 1 / 4
"""What the share's one-sided 95 % lower bound, by the user's number of patients, must reach."""
MIN_USERS = 5
"""Smaller groups are no practice."""
SHRINK = 50.0
"""Imagined diagnoses of the hospital's mix that every profile starts from."""
EM_STEPS = 40
ROUNDS = 8
"""Rounds of profiles and members, at most."""
ONE_PRACTICE = 0.7
"""Practices that deviate from everybody's work in directions nearer than this (cosine) are one, cut
in two because more are looked for than there are."""
HALVINGS = 3
"""Times that the patients are halved at random; a practice must show in most of the halves."""
SHOWN_SHARE = 0.3
"""What members' median share must reach on patients that did not make them members."""
SHOWN_DEVIATIONS = 1.5
"""By how many standard deviations of all users' shares members must exceed the others there."""

ONE_THREAD = threadpool_limits.wrap(limits=1)
"""For functions whose matrices are small: more threads are slower, and differ in last digits."""


@dataclass(frozen=True, eq=False)
class Practices:
    """Profiles of practices, and who belongs to them."""

    profile: np.ndarray
    """(n_practices + 1) × diagnoses, rows that add up to 1; the last is everybody's work."""
    member: np.ndarray
    """Practice of each user, −1 for none."""

    @property
    def sizes(self) -> np.ndarray:
        """Members of each practice."""
        return np.bincount(self.member + 1, minlength=len(self.profile))[1:]


def shares(counts: np.ndarray | sparse.csr_array, profile: np.ndarray) -> np.ndarray:
    """Return each user's shares of the profiles that make the user's diagnoses likeliest.

    Parameters
    ----------
    counts : ndarray or csr_array of shape (n_users, n_codes)
    profile : ndarray of shape (n_profiles, n_codes)
        Rows add up to 1.

    Returns
    -------
    ndarray of shape (n_users, n_profiles)
        `EM_STEPS` steps of EM from equal shares; users without diagnoses keep these.

    Examples
    --------
    >>> shares(np.array([[9.0, 1.0]]), np.array([[1.0, 0.0], [0.5, 0.5]])).round(1)
    array([[0.8, 0.2]])
    """
    share = np.full((counts.shape[0], len(profile)), 1 / len(profile))
    _climb(_rows(counts), profile.copy(), EM_STEPS, share)
    return share


def _rows(counts: np.ndarray | sparse.csr_array) -> tuple[np.ndarray, ...]:
    """Where each row begins, columns, and values, of the same types whatever holds the counts."""
    rows = sparse.csr_array(counts, dtype=float)
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _climb(rows, profile, steps, share):
    """Take EM's steps from every user's shares, over the diagnoses that the user has."""
    start, code, count = rows
    step = np.empty(len(profile))
    for u in range(len(share)):
        first, n = start[u], start[u + 1] - start[u]
        likely, ratio, own = np.empty((len(profile), n)), np.empty(n), share[u]
        for k in range(len(profile)):
            for p in range(n):
                likely[k, p] = profile[k, code[first + p]]
        for _ in range(steps):
            ratio[:] = 0.0
            for k in range(len(own)):
                part = own[k]
                for p in range(n):
                    ratio[p] += part * likely[k, p]
            for p in range(n):
                if ratio[p] > 0.0:  # else no profile holds the diagnosis
                    ratio[p] = count[first + p] / ratio[p]
            total = 0.0
            for k in range(len(own)):
                taken = 0.0
                for p in range(n):
                    taken += ratio[p] * likely[k, p]
                step[k] = own[k] * taken
                total += step[k]
            if total == 0.0:  # no diagnosis, or none that a profile holds: nothing tells them apart
                break
            for k in range(len(own)):
                own[k] = step[k] / total


def refine(units: Units, member: np.ndarray, n_practices: int) -> Practices:
    """Alternate profiles of members and members by shares, until nobody moves.

    `member` is the practice of each user to begin with, −1 for none.
    """
    counts, patients = units.counts(), units.patients()
    profile, share = _raw(counts, member, n_practices)
    for _ in range(ROUNDS):
        profile = _profiles(counts, member, profile, share)
        share = shares(counts, profile)
        before, member = member, members(share[:, :-1], patients)
        if (member == before).all():
            break
    return Practices(profile, member)


def merge(units: Units, found: Practices) -> Practices:
    """Join practices that are one, the most alike first, and refine what is joined."""
    while len(found.sizes) > 1:
        alike = np.triu(_alike(found), 1)
        one, other = np.unravel_index(alike.argmax(), alike.shape)
        if alike[one, other] <= ONE_PRACTICE:
            break
        member = np.where(found.member == other, one, found.member)
        found = refine(units, member - (member > other), len(alike) - 1)
    return found


def _alike(found: Practices) -> np.ndarray:
    """Cosine between how two practices deviate from everybody's work; 0 for one without members.

    A diagnosis's deviation is measured in standard deviations of a count, as in residuals.
    """
    profile, mix = found.profile[:-1], found.profile[-1]
    deviation = np.divide(profile - mix, np.sqrt(mix), out=np.zeros_like(profile), where=mix > 0)
    deviation[found.sizes == 0] = 0.0
    length = np.linalg.norm(deviation, axis=1, keepdims=True)
    deviation /= np.maximum(length, np.finfo(float).tiny)
    return deviation @ deviation.T


def profiles_of(units: Units, member: np.ndarray, n_practices: int) -> np.ndarray:
    """Return the profiles of groups whose members stay, as `Practices.profile`."""
    counts = units.counts()
    profile = _profiles(counts, member, *_raw(counts, member, n_practices))
    return _profiles(counts, member, profile, shares(counts, profile))


def _raw(
    counts: sparse.csr_array, member: np.ndarray, n_practices: int
) -> tuple[np.ndarray, np.ndarray]:
    """Profiles and shares to begin with: all that members do is of their practice."""
    mix = counts.sum(axis=0) / max(counts.sum(), 1.0)
    # Place −1 is the last row: everybody's work.
    return np.tile(mix, (n_practices + 1, 1)), np.eye(n_practices + 1)[member]


def _profiles(
    counts: sparse.csr_array, member: np.ndarray, profile: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """Profiles of what members do in their practice, without what they do of the other profiles."""
    own = np.tile(SHRINK * profile[-1], (len(profile), 1))
    _add_own_work(_rows(counts), member, profile.T.copy(), share, own)
    return own / np.maximum(own.sum(axis=1, keepdims=True), np.finfo(float).tiny)


@kernel
def _add_own_work(rows, member, by_code, share, own):
    """Add to each practice the part of its members' diagnoses that is of it."""
    start, code, count = rows
    for u in range(len(member)):
        if member[u] < 0:
            continue
        for p in range(start[u], start[u + 1]):
            likely = share[u] * by_code[code[p]]
            own[member[u], code[p]] += count[p] * likely[member[u]] / likely.sum()


def members(share: np.ndarray, patients: np.ndarray) -> np.ndarray:
    """Return each user's practice, −1 for none.

    Examples
    --------
    >>> members(np.array([[0.5, 0.1], [0.5, 0.1], [0.1, 0.3]]), np.array([40, 4, 1000])).tolist()
    [0, -1, -1]
    """
    largest = share.argmax(axis=1)
    share = share[np.arange(len(share)), largest]
    noise = np.sqrt(share * (1 - share) / np.maximum(patients, 1))
    sure = share - scipy.stats.norm.ppf(0.95) * noise >= SURE_SHARE
    return np.where((share >= MEMBER_SHARE) & sure, largest, -1)


def held_up(units: Units, found: Practices, rng: np.random.Generator) -> np.ndarray:
    """Say which practices show on patients that did not make them.

    Profiles and members are formed on the units of a random half of the patients and measured on
    the others, both ways, `HALVINGS` times. Patients are halved, and not units, because a team that
    shares patients looks alike on any cut that leaves a patient on both sides, whatever it does. A
    practice that fails in half of the measurements or more is dropped. Measuring stops once every
    practice is decided.
    """
    large = found.sizes >= MIN_USERS
    shown, left = np.zeros(len(large), dtype=int), 2 * HALVINGS
    for _ in range(HALVINGS):
        halves = units.halves(rng)
        for formed, measured in (halves, halves[::-1]):
            undecided = large & (shown <= HALVINGS) & (shown + left > HALVINGS)
            if not undecided.any():  # what is left to measure changes nothing
                return shown > HALVINGS
            again = refine(formed, found.member, len(large))
            share = shares(measured.counts(), again.profile)
            for k in np.flatnonzero(undecided):
                own, others = share[again.member == k, k], share[again.member != k, k]
                shown[k] += len(own) >= MIN_USERS and (
                    np.median(own) >= SHOWN_SHARE
                    and own.mean() - others.mean() >= SHOWN_DEVIATIONS * share[:, k].std()
                )
            left -= 1
    return shown > HALVINGS
