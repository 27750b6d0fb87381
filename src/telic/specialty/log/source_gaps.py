"""What each source of access logs lacks, of what contract 3 and a patient's own log want."""

import json
from collections.abc import Mapping
from pathlib import Path

LACKS: Mapping[str, Mapping[str, str]] = {
    "omop": {
        "accesses": "OMOP has no access log: a provider of a visit or of a condition recorded in "
        "it counts as having opened the record, and who only read it is not there",
        "date and time": "the visit's start stands for the time of every access in it",
        "fine-grained accesses": "only of conditions that name a provider",
    },
    "fhir": {
        "categories of data": "an AuditEvent's entity is taken as its Encounter alone; what was "
        "read there (entity.detail, entity.type) is not kept",
        "purpose": "purposeOfEvent is not kept: contract 3 has no column for it",
        "fine-grained accesses": "an AuditEvent names no diagnosis",
    },
    "mimic3": {
        "accesses": "MIMIC-III has no access log: a charted event counts as an access of its "
        "caregiver, and who only read a record is not there",
        "date and time": "dates are shifted by an offset of each patient, so months of different "
        "patients do not compare",
        "fine-grained accesses": "charted events name no diagnosis",
    },
    "eicu": {
        "accesses": "eICU has no access log: a care provider's entry counts as an access",
        "natural person": "providers are not identified: a user is a specialty at a hospital",
        "date and time": "minutes since admission are counted from 1970",
        "fine-grained accesses": "entries name no diagnosis",
    },
}
"""Element and why, by kind of source."""


def lacks_of(folder: str | Path) -> dict[str, str]:
    """Return what the source of an imported log lacks; nothing for other logs.

    Examples
    --------
    >>> lacks_of("no-such-log")
    {}
    """
    try:
        meta = json.loads((Path(folder) / "meta.json").read_text(encoding="utf-8-sig"))
        return {str(name): str(why) for name, why in meta.get("lacks", {}).items()}
    except (OSError, ValueError, AttributeError):
        return {}
