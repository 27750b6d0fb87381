"""Accesses as FHIR AuditEvents that say what was found of them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from telic.data.atomic_writes import atomic_path
from telic.specialty.alarms.access_reasons import Reasons
from telic.specialty.alarms.explained_alarms import Alerts
from telic.specialty.discovery.result import Discovery
from telic.specialty.log.access_log import AccessLog
from telic.specialty.log.fhir_exports import ID_SYSTEM

REASON = "urn:telic:access-reason"
"""Extension with the reason in plain words, or that none was found."""
ALARM = "urn:telic:access-alarm"
"""Extension with "none", "open" or "explained"."""
_ID = re.compile(r"[A-Za-z0-9\-.]{1,64}")


def audit_events(
    log: AccessLog, discovery: Discovery, alerts: Alerts, found: Reasons
) -> Iterator[dict[str, Any]]:
    """Describe every access as an AuditEvent (FHIR R4) with two extensions.

    The log's ids stand in the references: of a Practitioner, a Patient and an Encounter. One that
    FHIR cannot have as a resource's id stands in an identifier. What the log lacks is not made up:
    no name, no network address, no purpose.
    """
    explained, raised = alerts.explained, alerts.raised
    times = np.datetime_as_string(log.access_at.astype("datetime64[us]"), unit="us")
    for a in range(len(log.access_user)):
        e = log.access_encounter[a]
        alarm = "none" if not raised[a] else "explained" if explained[a] else "open"
        yield {
            "resourceType": "AuditEvent",
            "extension": [
                {"url": REASON, "valueString": found.words(log, discovery, a)},
                {"url": ALARM, "valueCode": alarm},
            ],
            "type": {
                "system": "http://dicom.nema.org/resources/ontology/DCM",
                "code": "110110",
                "display": "Patient Record",
            },
            "action": "R",
            "recorded": f"{times[a].removesuffix('000')}Z",
            "agent": [
                {
                    "who": _reference("Practitioner", log.users[log.access_user[a]]),
                    "requestor": True,
                }
            ],
            "source": {"observer": {"display": "access log read by telic"}},
            "entity": [
                {"what": _reference("Patient", log.patients[log.encounter_patient[e]])},
                {"what": _reference("Encounter", log.encounters[e])},
            ],
        }


def _reference(kind: str, name: str) -> dict[str, Any]:
    """Refer to a resource by its id, or by an identifier if no resource can have that id."""
    if _ID.fullmatch(name):
        return {"reference": f"{kind}/{name}"}
    return {"type": kind, "identifier": {"system": ID_SYSTEM, "value": str(name)}}


def write_audit_events(
    file: str | Path, log: AccessLog, discovery: Discovery, alerts: Alerts, found: Reasons
) -> None:
    """Write `audit_events` as NDJSON, whole or not at all. The file holds the log's ids."""
    with atomic_path(file) as temporary, temporary.open("w", encoding="utf-8") as lines:
        for event in audit_events(log, discovery, alerts, found):
            lines.write(json.dumps(event, ensure_ascii=False) + "\n")
