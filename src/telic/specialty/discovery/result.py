"""What discovery finds: specialties, their evidence, and their form on disk."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from telic.errors import InputError
from telic.specialty.discovery.evidence import Evidence, evidence_from
from telic.specialty.log.access_log import AccessLog
from telic.specialty.small_cells import SMALL_CELL


@dataclass(frozen=True)
class Specialty:
    """A cluster of users with a shared practice."""

    name: str
    """Proposed: the three diagnoses of highest lift."""
    listed_code: str | None
    """The code that names it, by a rule of `telic.specialty.discovery.evidence.NAMINGS`."""
    nearest_code: str | None
    """The code whose users overlap most (F1), whether it names it or not."""
    users: np.ndarray
    """Indices into `AccessLog.users`."""
    diagnoses: list[tuple[str, float]]
    """Up to ten categories and their lift, highest first."""
    stability: float | None
    """Mean Jaccard overlap of its users with the nearest cluster of other restarts, in [0, 1];
    None if there was no other."""
    stability_sizes: float | None
    """The same overlap where there are fewer or more clusters (δ ± 1, or K ± a quarter)."""
    stability_months: float | None
    """Mean share of its users who, month by month, practise it more than anything else."""
    evidence: Evidence | None = None
    """None if it was read from a file that does not tell."""

    def called(self, *, hide_small: bool = False) -> str:
        """Return the code that names it, else its own name; or that it is too small to be named."""
        if hide_small and len(self.users) < SMALL_CELL:
            return f"a specialty of fewer than {SMALL_CELL} users"
        return self.listed_code or self.name

    def as_json(self, label: Callable[[str], str] | None = None) -> dict[str, Any]:
        """Return the machine-readable form, without its users; `label` names categories in it."""

        def rounded(share: float | None) -> float | None:
            return None if share is None else round(share, 3)

        return {
            "name": self.name,
            "listed_code": self.listed_code,
            "nearest_code": self.nearest_code,
            "diagnoses": [
                {"code": code, "lift": round(lift, 3)} | ({"label": label(code)} if label else {})
                for code, lift in self.diagnoses
            ],
            "stability": rounded(self.stability),
            "stability_sizes": rounded(self.stability_sizes),
            "stability_months": rounded(self.stability_months),
            "evidence": self.evidence.as_json() if self.evidence else None,
        }


def specialty_from(content: Mapping[str, Any], users: np.ndarray) -> Specialty:
    """Read what `Specialty.as_json` wrote."""
    return Specialty(
        str(content["name"]),
        content["listed_code"] and str(content["listed_code"]),
        content.get("nearest_code"),
        users,
        [(str(d["code"]), float(d["lift"])) for d in content["diagnoses"]],
        _share(content["stability"]),
        _share(content.get("stability_sizes")),
        _share(content.get("stability_months")),
        evidence_from(content["evidence"]) if content.get("evidence") else None,
    )


@dataclass(frozen=True, eq=False)
class Grouping:
    """Users in clusters, before anything is said about them."""

    cluster: np.ndarray
    """Cluster of each user; −1 for users without a concentrated practice."""
    n_clusters: int
    restarts: list[np.ndarray]
    """Clusters from other random numbers."""
    sizes: list[np.ndarray]
    """Clusters where fewer or more are looked for."""
    by_month: Callable[[np.ndarray], np.ndarray]
    """Score of each user and cluster, given rows of accesses."""
    details: dict[str, Any]
    in_view: np.ndarray | None = None
    """Users who could be grouped at all, as indices; None for all."""
    before_checks: np.ndarray | None = None
    """Cluster of each user, also of clusters that did not hold up; None if there was no check."""


@dataclass(frozen=True)
class Discovery:
    """What `discover` found."""

    method: str
    specialties: list[Specialty]
    """De facto ones (without a listed code) first, then by number of users."""
    cluster: np.ndarray
    """Index into `specialties` of each user; −1 for users without a concentrated practice."""
    details: dict[str, Any] = field(default_factory=dict)
    """Numbers behind the choice: perplexities, path qualities, objective."""
    other_groups: np.ndarray | None = None
    """Group of each user among those that did not show to be specialties, numbered from 0; −1 for
    none. Whoever resembles them later is no member of a specialty that is merely the nearest
    (`telic.specialty.later_logs.carry`). None if it was read from a file that does not tell."""

    def as_json(self, log: AccessLog) -> dict[str, Any]:
        """Return the machine-readable form."""
        return {
            "method": self.method,
            "simulated": log.simulated,
            "log": fingerprint(log),
            "specialties": [
                {"users": log.users[one.users].tolist(), **one.as_json(log.label)}
                for one in self.specialties
            ],
            "details": self.details,
            "notes": log.notes,
        }


def fingerprint(log: AccessLog) -> dict[str, int | str]:
    """Return what tells this log's records from another's, however its files and rows are ordered.

    Declared codes are left out: a specialty stays what it is when somebody's code is corrected.
    """
    digest = hashlib.sha256()
    for part in (
        log.users,
        log.codes,
        log.access_user,
        log.access_encounter,
        log.access_at,
        log.diagnosis.indptr,
        log.diagnosis.indices,
    ):
        digest.update(np.ascontiguousarray(part).tobytes())
    return {
        "users": len(log.users),
        "encounters": len(log.encounters),
        "accesses": len(log.access_user),
        "codes": len(log.codes),
        "sha256": digest.hexdigest(),
    }


def read_discovery(file: str | Path, log: AccessLog) -> Discovery:
    """Read what `Discovery.as_json` wrote, for the log it was found in.

    A specialty needs ``name``, ``listed_code``, ``users``, ``diagnoses`` (each ``code`` and
    ``lift``) and ``stability``; the rest may be absent, so other programs can write the file too.
    If it holds the `fingerprint` of its log, it is read for that log only.

    Raises
    ------
    InputError
        If the file is damaged, was written for another log, or names users that the log lacks.
    """
    try:
        content = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # whose messages do not quote the file
        missing = isinstance(error, FileNotFoundError)
        wrong = "no such file or folder" if missing else f"cannot be read ({error})"
        raise InputError(
            f"{file}: {wrong}. Write findings with `telic specialty discover LOG --out FOLDER`."
        ) from None
    return discovery_from(content, log, source=file)


def discovery_from(
    content: Mapping[str, Any], log: AccessLog, *, source: str | Path = "discovery"
) -> Discovery:
    """Make a discovery from what `Discovery.as_json` returned, for the log it was found in.

    Parameters
    ----------
    content : dict
        As `read_discovery` describes it.
    log : AccessLog
    source : str or path
        Where the content is from, for messages.

    Raises
    ------
    InputError
        As `read_discovery` does.
    """
    try:
        listed = content["specialties"]
        _refuse_another_log(source, content.get("log"), log)
        specialties = [specialty_from(one, _users_of(source, one["users"], log)) for one in listed]
        method, details = content.get("method", "unknown"), dict(content.get("details") or {})
        if "n_topics" in details:
            details["n_topics"] = int(details["n_topics"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        # The error's own message may quote the file, which holds user ids.
        raise InputError(
            f"{source}: cannot be read: it is not of the expected form. "
            "Write findings with `telic specialty discover LOG --out FOLDER`."
        ) from None
    cluster = np.full(len(log.users), -1)
    for k, one in enumerate(specialties):
        if (cluster[one.users] >= 0).any():
            raise InputError(f"{source}: names a user in two specialties, expected one at most.")
        cluster[one.users] = k
    return Discovery(method, specialties, cluster, details)


def _users_of(file: str | Path, named: Any, log: AccessLog) -> np.ndarray:
    """Places of a specialty's users in the log."""
    if not isinstance(named, list) or not named:
        raise InputError(f"{file}: 'users' of a specialty must be a list of at least one user id.")
    users = np.searchsorted(log.users, named).clip(max=len(log.users) - 1)
    if not (log.users[users] == named).all():
        raise InputError(f"{file}: names users that the log does not have.")
    if len(np.unique(users)) < len(users):
        raise InputError(f"{file}: names a user twice in one specialty, expected once.")
    return users


def _share(value: Any) -> float | None:
    return None if value is None else float(value)


def _refuse_another_log(file: str | Path, written: Any, log: AccessLog) -> None:
    if written is None or written == (own := fingerprint(log)):
        return

    def said(of: Any) -> str:
        counts = of if isinstance(of, dict) else {}
        names = ("users", "encounters", "accesses", "codes")
        return ", ".join(f"{counts.get(name, '?')} {name}" for name in names)

    raise InputError(
        f"{file}: was found in a log of {said(written)}; this one has {said(own)} and other "
        "records. Give the log it was found in, read with the same --code-table and "
        "--skip-bad-rows, or run `telic specialty discover` again. What `discover --out FOLDER` "
        "wrote is taken to later logs."
    )


def lifts(own: np.ndarray, overall: np.ndarray, patients: np.ndarray) -> list[tuple[int, float]]:
    """Diagnoses by how much more often these users access them than everybody does.

    Lift is shrunk towards 1 by 50 imagined accesses of the hospital's mix, so that rare
    diagnoses do not lead by chance. Left out are diagnoses that these users do not access more
    often, those of fewer than `SMALL_CELL` patients, which are not shown, and those with less than
    1 % of these users' accesses: they do not make a practice.

    Parameters
    ----------
    own, overall : ndarray of shape (n_codes,)
        Accesses per diagnosis, of these users and of all.
    patients : ndarray of shape (n_codes,)
        Distinct patients per diagnosis whose records these users opened.

    Examples
    --------
    >>> patients = np.array([30, 10, 12])
    >>> found = lifts(np.array([90, 10, 20]), np.array([100, 800, 100]), patients)
    >>> [(d, round(lift, 1)) for d, lift in found]
    [(0, 5.6), (2, 1.5)]
    """
    base = overall / overall.sum()
    shrunk = (own + 50 * base) / (own.sum() + 50)
    lift = np.divide(shrunk, base, out=np.zeros_like(base), where=base > 0)
    order = np.argsort(-lift, kind="stable")
    kept = (lift > 1) & (patients >= SMALL_CELL) & (own >= 0.01 * own.sum())
    return [(int(d), float(lift[d])) for d in order if kept[d]]
