"""The reason of every access, in plain words, or that none was found.

Three things speak for an access, and are asked in turn: the people whom the user works with opened
the record too; the users of the declared specialty see such patients; those who practise what the
user practises do. Each is a figure (of `colleagues.py` or `diagnosis_lifts.py`), and counts as a
reason by `beyond_chance.py`. That is stricter than what raises an alarm: hardly a record is so
strange to a specialty that it covers none of its diagnoses.
"""

from dataclasses import dataclass

import numpy as np

from telic.specialty.alarms.beyond_chance import KINDS, FirstReasons
from telic.specialty.alarms.colleagues import Care, ask_colleagues, care_of
from telic.specialty.alarms.diagnosis_lifts import ask_specialties
from telic.specialty.discovery.result import Discovery
from telic.specialty.later_logs.kept_findings import Findings
from telic.specialty.log.access_log import AccessLog

NO_REASON = "no reason found"


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why each access may have been made."""

    kind: np.ndarray
    """Place in `KINDS` of each access's reason."""
    code: np.ndarray
    """The diagnosis that a specialty covers best, the declared one first; −1 if none is covered."""

    by_declared: np.ndarray
    """Whether it is the declared specialty that covers it."""

    @property
    def explained(self) -> np.ndarray:
        """Accesses that have a reason."""
        return self.kind > 0

    def words(
        self, log: AccessLog, discovery: Discovery, access: int, *, hide_small: bool = False
    ) -> str:
        """Say the reason of an access in plain words, which need not name a small specialty."""
        kind, user = KINDS[self.kind[access]], log.access_user[access]
        if kind == "none":
            return NO_REASON
        parts = ["works with the people who treat this patient"] * (kind == "colleagues")
        if (code := self.code[access]) >= 0:
            seen = log.label(str(log.codes[code]))
            if self.by_declared[access]:
                parts.append(f"is of {log.taxonomy[user]}, where patients with {seen} are seen")
            else:
                one = discovery.specialties[discovery.cluster[user]]
                practice = one.called(hide_small=hide_small)
                parts.append(f"mostly sees patients of {practice}, and such with {seen}")
        return "; ".join(parts)


def find_reasons(
    log: AccessLog,
    discovery: Discovery,
    *,
    before: Findings | None = None,
    care: Care | None = None,
    seed: int = 0,
) -> Reasons:
    """Find the reason of every access.

    Parameters
    ----------
    log, discovery
    before : Findings, optional
        As in `judge`.
    care : Care, optional
        What `care_of` made of the same log and discovery; made here if not given.
    seed : int
        As in `care_of`; not used if `care` is given.

    Returns
    -------
    Reasons
        In the order of ``log.access_row``.
    """
    care = care or care_of(log, discovery, before=before, seed=seed)
    first = FirstReasons(log, care.seed)
    ask_colleagues(first, care)
    declared, practised = ask_specialties(first, discovery, care.coverage)
    by_declared = (declared >= 0) & (first.kind != KINDS.index("practised"))
    return Reasons(first.kind, np.where(by_declared, declared, practised), by_declared)
