"""A patient's own log: who opened the record, when, what of it, and why.

Regulation (EU) 2025/327 (European Health Data Space) gives people the right to know who accessed
their health data, when, and which (Article 9(2)), and Annex II, 3.2 says what a system must have
recorded for it. An access log of contract 3 has part of that; `LACKING` says what it has not.
"""

from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data import contracts
from telic.errors import InputError
from telic.report import Report, Table
from telic.specialty.alarms.access_reasons import NO_REASON, Reasons
from telic.specialty.discovery.result import Discovery
from telic.specialty.log.access_log import AccessLog
from telic.specialty.log.contract_tables import find_table, read_table
from telic.specialty.log.source_gaps import lacks_of
from telic.specialty.pseudonyms import Pseudonyms

LACKING = {
    "healthcare provider": "the log names users, not the institutions they work for",
    "natural person": "users have the log's ids; their names are in the hospital's directory",
    "categories of data": "the log says which encounter was opened, not what was read there; the "
    "encounter's diagnoses stand for it",
    "origin of the data": "the log does not say which system the data came from",
}
"""Elements of Annex II, 3.2 that an access log of contract 3 does not have, and why."""
NOT_JUDGED = "not judged: the log has no diagnosis of this patient in this encounter"
COLUMNS = ("at", "user", "declared", "practised", "encounter", "diagnoses", "origin", "reason")


@dataclass(frozen=True)
class PatientLog:
    """Every access to one patient's records, in order of time."""

    patient: str
    rows: list[dict[str, Any]]
    """One for each row of the accesses file, with `COLUMNS` and its ``row``."""
    lacking: dict[str, str]
    """What the Regulation asks for and the log lacks."""
    simulated: bool

    def table(self) -> Table:
        """Return the rows as people and CSV files take them."""
        rows = [
            ["; ".join(one[name]) if name == "diagnoses" else one[name] for name in COLUMNS]
            for one in self.rows
        ]
        return Table("Accesses to your record", dict.fromkeys(COLUMNS, ""), rows)

    def on_a_page(self) -> Table:
        """Return the rows with times to the second, without columns that are empty in all rows.

        A page has room for no more: the reason stands last.
        """
        full = self.table()
        filled = [any(column) for column in zip(*full.rows, strict=True)]
        names = ["at (UTC)", *COLUMNS[1:]]
        rows = [[row[0][:19].replace("T", " "), *row[1:]] for row in full.rows]
        kept = [list(compress(row, filled)) for row in rows]
        return Table(full.title, dict.fromkeys(compress(names, filled), ""), kept)

    def report(self) -> Report:
        """Return the page for the patient."""
        reasons = [one["reason"] for one in self.rows]
        without, not_judged = reasons.count(NO_REASON), reasons.count(NOT_JUDGED)
        unasked = f", and {not_judged} could not be judged" if not_judged else ""
        page = Report(
            "Who opened your record",
            lead=f"Patient {self.patient}: {len(self.rows)} accesses. A reason was inferred for "
            f"{len(self.rows) - without - not_judged}; for {without} none was found{unasked}. "
            "Neither is a proof: a reason says that such an access is usual, and one without may "
            "have been needed. Ask the hospital's data protection officer about any of them.",
        )
        if self.simulated:
            page.note("Simulated: the hospital, its users and its accesses are invented.")
        page.section("Accesses")
        page.table(self.on_a_page())
        page.section("What this log does not hold")
        page.text(
            "Regulation (EU) 2025/327 (Article 9; Annex II, 3.2) asks for elements that are not in "
            "the log this page was made from:"
        )
        lacking = [[name, why] for name, why in self.lacking.items()]
        page.table(Table("Lacking", {"element": "", "why": ""}, lacking))
        return page

    def as_json(self) -> dict[str, Any]:
        """Return the machine-readable form."""
        return {
            "patient": self.patient,
            "simulated": self.simulated,
            "accesses": self.rows,
            "lacking": self.lacking,
        }


def patient_log(
    folder: str | Path,
    log: AccessLog,
    discovery: Discovery,
    found: Reasons,
    patient: str,
    *,
    origin: str | None = None,
    pseudonyms: Pseudonyms | None = None,
) -> PatientLog:
    """List every access to a patient's records, with its reason.

    Parameters
    ----------
    folder : path
        Of the log: rows that `read_log` leaves out (repeated ones, encounters without a diagnosis)
        are accesses too, and are listed.
    log, discovery, found
        What `read_log`, `discover` or `carry`, and `find_reasons` gave.
    patient : str
        Id in the log.
    origin : str, optional
        The system that the data come from, if all are from one.
    pseudonyms : Pseudonyms, optional
        Instead of the users' ids, where a restriction under Article 9(3) demands it; what a user
        practises is not named then where few do.

    Raises
    ------
    InputError
        If the log has no access to such a patient.
    """
    table, _ = read_table(
        find_table(Path(folder), "accesses"), contracts.ACCESSES, on_bad_row="skip"
    )
    table = table.filter(pc.equal(table["patient"].cast(pa.string()), patient))
    if not table.num_rows:
        raise InputError(f"{folder}: holds no access to this patient's records. Is the id right?")
    table = table.sort_by([("at", "ascending"), ("row", "ascending")])
    place = {user: u for u, user in enumerate(log.users)}
    number = np.searchsorted(log.patients, patient)  # a patient without diagnoses has none
    mine = np.flatnonzero(log.encounter_patient[log.access_encounter] == number)
    judged: dict[tuple[int, str, int], int] = {
        (
            int(log.access_user[a]),
            str(log.encounters[log.access_encounter[a]]),
            int(log.access_at[a]),
        ): int(a)
        for a in mine
    }
    rows, hide_small = [], pseudonyms is not None
    for row, user, encounter, at in zip(
        table["row"].to_pylist(),
        table["user"].to_pylist(),
        table["encounter"].to_pylist(),
        table["at"].to_numpy().astype("datetime64[us]").astype(np.int64).tolist(),
        strict=True,
    ):
        u = place[user]
        a = judged.get((u, encounter, at))
        k = int(discovery.cluster[u])
        one = discovery.specialties[k] if k >= 0 else None
        codes = [] if a is None else log.diagnosis[[log.access_encounter[a]]].indices
        rows.append(
            {
                "row": row,
                "at": str(np.datetime64(at, "us")) + "Z",
                "user": pseudonyms(user) if pseudonyms else user,
                "declared": str(log.taxonomy[u]) or None,
                "practised": one.called(hide_small=hide_small) if one else None,
                "encounter": encounter,
                "diagnoses": [log.label(str(log.codes[d])) for d in codes],
                "origin": origin,
                "reason": NOT_JUDGED
                if a is None
                else found.words(log, discovery, a, hide_small=hide_small),
            }
        )
    lacking = LACKING | lacks_of(folder)
    if origin:
        del lacking["origin of the data"]
    return PatientLog(patient, rows, lacking, log.simulated)
