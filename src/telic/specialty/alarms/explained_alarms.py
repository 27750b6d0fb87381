"""Which alarms a de facto specialty explains, and which stay open.

An access raises an alarm when the declared specialty covers none of the encounter's diagnoses. A
specialty covers a diagnosis that its users access more often than everybody does. An alarm is
explained by the de facto specialty, or by colleagues who opened the same record. Nothing is ever
closed here: an explained alarm is marked, and ranked behind the open ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy  # its parts load when they are used: they take seconds

from telic.errors import expect_one_of
from telic.specialty.alarms.beyond_chance import FirstReasons
from telic.specialty.alarms.colleagues import Care, ask_colleagues
from telic.specialty.alarms.diagnosis_lifts import COVERED, ask_specialties, coverage_of
from telic.specialty.discovery.result import Discovery
from telic.specialty.later_logs.kept_findings import Findings
from telic.specialty.log.access_log import AccessLog
from telic.specialty.pseudonyms import Pseudonyms

DECLARED = "the declared specialty covers a diagnosis"
COLLEAGUES = "people whom the user works with opened the same record"
STATUS = ("all", "open", "explained", "no-reason")
"""What a queue holds: alarms, or every access without a reason."""


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
    colleagues: np.ndarray = field(default_factory=lambda: np.zeros(1, dtype=bool))
    """Whether colleagues opened the same record, per access; False where it was not asked."""
    standing: np.ndarray | None = None
    """What orders the queue, if not the larger of `declared` and `practised`."""
    has_reason: np.ndarray | None = None
    """Whether `find_reasons` finds a reason, per access; None where it was not asked."""

    @property
    def raised(self) -> np.ndarray:
        """Accesses that raise an alarm."""
        return self.declared <= COVERED

    @property
    def explained(self) -> np.ndarray:
        """Alarms that the de facto specialty or colleagues explain."""
        return self.raised & ((self.practised > COVERED) | self.colleagues)

    @property
    def by_practice(self) -> np.ndarray:
        """Alarms that the de facto specialty explains."""
        return self.raised & (self.practised > COVERED)

    def queue(self, status: str = "all") -> np.ndarray:
        """Accesses to review, least covered first.

        Parameters
        ----------
        status : {"all", "open", "explained", "no-reason"}
            Open alarms and then explained ones, or one kind of them, or every access without a
            reason: those that raise an alarm, and then those that the declared code covers.

        Raises
        ------
        ValueError
            For "no-reason" where `judge` was not told who works with whom.
        """
        expect_one_of(STATUS, status=status)
        if status == "no-reason":
            if self.has_reason is None:
                raise ValueError("queue: 'no-reason' needs alarms that were judged with `care`.")
            rows = np.flatnonzero(~self.has_reason)
            lift = np.maximum(self.declared, self.practised)[rows]
            return rows[np.lexsort((lift, self.place[rows], ~self.raised[rows]))]
        kinds = {
            "all": self.raised,
            "open": self.raised & ~self.explained,
            "explained": self.explained,
        }
        rows = np.flatnonzero(kinds[status])
        return rows[np.lexsort((self.place[rows], self.explained[rows]))]

    @property
    def place(self) -> np.ndarray:
        """What orders the queue, the first the least."""
        lift = np.maximum(self.declared, self.practised)
        return lift if self.standing is None else self.standing

    def queue_without(self) -> np.ndarray:
        """The queue if nobody knew the de facto specialties."""
        rows = np.flatnonzero(self.raised)
        return rows[np.argsort(self.declared[rows], kind="stable")]


def judge(
    log: AccessLog,
    discovery: Discovery,
    *,
    before: Findings | None = None,
    care: Care | None = None,
) -> Alerts:
    """Judge every access by the user's declared and de facto specialties.

    Parameters
    ----------
    log : AccessLog
    discovery : Discovery
    before : Findings, optional
        What an earlier log of the hospital taught: its users and accesses count in the profiles.
    care : Care, optional
        Who works with whom, of the same log and discovery. Then colleagues who opened the same
        record explain alarms too. Users with neither a declared nor a de facto specialty are dealt
        into the queue by what their colleagues see; those without colleagues come first, as nothing
        speaks for them. Without it all of these stand last, each with a lift of 1.

    Returns
    -------
    Alerts
        In the order of ``log.access_row``.
    """
    coverage = coverage_of(log, discovery, before) if care is None else care.coverage
    made = log.access_user, log.access_encounter
    declared, declared_reason = coverage.declared(*made)
    practised, reason = coverage.practised(*made)
    none = (discovery.cluster < 0)[log.access_user]
    practised = np.where(none, declared, practised)
    reason = np.where(none, declared_reason, reason)
    specialty = discovery.cluster[log.access_user]
    if care is None:
        return Alerts(declared, practised, reason, specialty)

    unknown = np.flatnonzero((log.taxonomy == "") & (discovery.cluster < 0))
    colleagues = care.profiles(coverage.own, unknown)
    of_unknown = np.isin(log.access_user, unknown)
    lift = np.maximum(declared, practised)
    lift[of_unknown] = coverage.beside(unknown, colleagues, *made)[of_unknown]
    # All accesses of the unknown are alarms, of others the least covered alone: their lifts do not
    # compare, so the two are dealt into one queue, each in its own order.
    standing = np.ones(len(lift))
    for group in (of_unknown, ~of_unknown):
        rows = np.flatnonzero(group & (declared <= COVERED))
        standing[rows] = scipy.stats.rankdata(lift[rows], method="ordinal") / len(rows)
    alone = np.isin(log.access_user, unknown[colleagues[:, -1] == 0])
    standing[alone] = 0.0
    first = FirstReasons(log, care.seed)
    ask_colleagues(first, care)
    by_colleagues = first.kind > 0
    ask_specialties(first, discovery, care.coverage)
    return Alerts(declared, practised, reason, specialty, by_colleagues, standing, first.kind > 0)


def lines(
    log: AccessLog,
    discovery: Discovery,
    alerts: Alerts,
    accesses: np.ndarray,
    *,
    pseudonyms: Pseudonyms | None,
    because: bool = True,
) -> Iterator[dict[str, object]]:
    """Describe alarms line by line; each names the row of the accesses file it comes from.

    Parameters
    ----------
    log, discovery, alerts
    accesses : ndarray of int
        What to describe, such as the first of ``alerts.queue()``. One that raises no alarm is
        explained: by the declared specialty.
    pseudonyms : Pseudonyms or None
        None shows the log's own user ids.
    because : bool
        Whether to say what explains an access, by the rule of alarms. Of accesses without a reason,
        which is asked for more strictly, that would confuse: one that raises no alarm then has the
        status "no alarm".

    Notes
    -----
    ``row`` counts the rows of the accesses table from 1. In a CSV file neither the header nor blank
    lines are rows.
    """
    explained = alerts.explained[accesses]
    by_practice = alerts.by_practice[accesses]
    covered = ~alerts.raised[accesses]
    for a, status, practice, declared in zip(
        accesses, explained | covered, by_practice, covered, strict=True
    ):
        user = str(log.users[log.access_user[a]])
        k = int(alerts.specialty[a])
        found = discovery.specialties[k] if k >= 0 else None
        codes = log.diagnosis[[log.access_encounter[a]]].indices
        line = {
            "row": int(log.access_row[a]),
            "user": pseudonyms(user) if pseudonyms else user,
            "at": str(np.datetime64(int(log.access_at[a]), "us")) + "Z",
            "declared": str(log.taxonomy[log.access_user[a]]) or None,
            "practised": found.called(hide_small=pseudonyms is not None) if found else None,
            "diagnoses": [log.label(str(log.codes[d])) for d in codes],
            "status": "explained" if status else "open",
            "because": log.label(str(log.codes[alerts.reason[a]]))
            if practice
            else DECLARED
            if declared
            else COLLEAGUES
            if status
            else "neither the declared nor a de facto specialty covers a diagnosis",
            "lift": round(float(max(alerts.declared[a], alerts.practised[a])), 3),
        }
        if not because:
            del line["because"]
            line["status"] = "no alarm" if declared else line["status"]
        yield line
