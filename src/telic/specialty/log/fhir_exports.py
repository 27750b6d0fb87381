"""Accesses, diagnoses and providers of a FHIR export in NDJSON."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from telic.data.pieces import text_lines
from telic.data.tables import in_utc
from telic.errors import InputError
from telic.specialty.log.contract_tables import unreadable
from telic.specialty.small_cells import shown

ID_SYSTEM = "urn:telic:id"
"""System of an identifier that is an id of the log, where FHIR cannot have it as a resource's."""
_ICD10 = re.compile(r"icd-?10|2\.16\.840\.1\.113883\.6\.(3|90)$", re.IGNORECASE)
_NO_DIAGNOSIS = {"entered-in-error", "refuted"}


def read_fhir(source: Path, notes: list[str]) -> dict[str, pa.Table]:
    """Read FHIR NDJSON: AuditEvent, Encounter, Condition, Practitioner and PractitionerRole.

    An access is an AuditEvent whose agent is a Practitioner or a PractitionerRole and whose entity
    is an Encounter; the patient is the encounter's. Codes are a Condition's ICD-10 coding, or else
    its first one, which is written ``system|code`` if it names another system. A provider has one
    row per PractitionerRole, with its first specialty; without a role that has one, the first
    qualification counts.
    """
    patient_of: dict[str, str] = {}
    practitioner_of: dict[str, str] = {}
    events: list[tuple[list[str], list[str], list[str]]] = []
    times: list[str | None] = []
    places: list[tuple[Path, int]] = []
    diagnoses: list[tuple[str, str, str]] = []
    qualified: dict[str, str | None] = {}
    declared: dict[tuple[str, str], None] = {}
    lost: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    for file, line, resource in _resources(source):
        kind = resource.get("resourceType")
        own = str(resource.get("id") or "")
        if kind == "AuditEvent":
            agents = [agent.get("who") for agent in _objects(resource.get("agent"))]
            opened = [entity.get("what") for entity in _objects(resource.get("entity"))]
            events.append(
                (
                    [_reference(who, "Practitioner") for who in agents],
                    [_reference(who, "PractitionerRole") for who in agents],
                    [one for what in opened if (one := _reference(what, "Encounter"))],
                )
            )
            times.append(str(resource.get("recorded") or "") or None)
            places.append((file, line))
        elif kind == "Condition":
            if _NO_DIAGNOSIS & set(_statuses(resource.get("verificationStatus"))):
                lost["conditions: {} are refuted or entered in error"] += 1
                continue
            system, code = _first_coding(resource.get("code"), preferred=_ICD10)
            if code and system and not _ICD10.search(system):
                lost["conditions: {} have a code of another system than ICD-10"] += 1
                code = f"{system.rstrip('/').rpartition('/')[2]}|{code}"
            patient = _reference(resource.get("subject"), "Patient")
            encounter = _reference(resource.get("encounter"), "Encounter")
            if patient and encounter and code:
                diagnoses.append((patient, encounter, code))
            else:
                lost["conditions: {} lack patient, encounter or code"] += 1
        elif kind == "PractitionerRole":
            user = _reference(resource.get("practitioner"), "Practitioner")
            if own:
                practitioner_of[own] = user
            codes = [_first_coding(one)[1] for one in _objects(resource.get("specialty"))]
            if user and (code := next(filter(None, codes), "")):
                declared[user, code] = None
        elif kind not in ("Encounter", "Practitioner"):
            unused[kind if isinstance(kind, str) and kind.isalpha() else "without a kind"] += 1
        elif not own:
            lost[f"{kind.lower()}s: {{}} have no id"] += 1
        elif kind == "Encounter":
            patient_of[own] = _reference(resource.get("subject"), "Patient")
        else:
            qualifications = _objects(resource.get("qualification"))
            codes = [_first_coding(one.get("code"))[1] for one in qualifications]
            qualified[own] = next(filter(None, codes), None)
    at = _times(times, places, notes)
    accesses: list[tuple[str, str, str]] = []
    of_event: list[int] = []
    for number, (users, roles, encounters) in enumerate(events):
        if any(role and role not in practitioner_of for role in roles):
            lost["audit events: {} name a PractitionerRole that is not there"] += 1
        # An agent named both ways is one user.
        named = dict.fromkeys([*users, *(practitioner_of.get(role, "") for role in roles)])
        pairs = [(user, one) for user in named if user for one in encounters]
        if not pairs:
            lost["audit events: {} name no practitioner and encounter"] += 1
        elif times[number] is None:
            lost["audit events: {} have no time ('recorded')"] += 1
        else:
            known = [(user, patient_of[one], one) for user, one in pairs if patient_of.get(one)]
            if len(known) < len(pairs):
                lost["audit events: {} are of unknown encounters"] += 1
            accesses += known
            of_event += [number] * len(known)
    in_roles = {user for user, _ in declared}
    providers: list[tuple[str, str | None]] = [*declared]
    providers += ((u, code) for u, code in qualified.items() if u not in in_roles)
    notes += [note.format(shown(count)) for note, count in lost.items()]
    if unused:
        kinds = ", ".join(sorted(unused))
        notes.append(f"resources: {shown(unused.total())} are of kinds that are not read ({kinds})")
    opened = _text_table(["user", "patient", "encounter"], accesses)
    return {
        "accesses": opened.append_column("at", at.take(pa.array(of_event, pa.int64()))),
        "diagnoses": _text_table(["patient", "encounter", "code"], diagnoses),
        "providers": _text_table(["user", "taxonomy"], providers),
    }


def _times(times: list[str | None], places: list[tuple[Path, int]], notes: list[str]) -> pa.Array:
    """When events were recorded; one that is no time is named by its line."""
    given = pa.array(times, pa.string())
    at, naive = in_utc(given)
    wrong = pc.index(pc.and_(given.is_valid(), at.is_null()), True).as_py()
    if wrong >= 0:
        file, line = places[wrong]
        raise InputError(
            f"{file}: line {line}: 'recorded' is not a time, expected one such as "
            "2024-01-31T09:30:00Z. Correct the line."
        )
    if zoneless := pc.sum(naive).as_py():
        notes.append(f"audit events: {shown(zoneless)} times without a time zone were read as UTC")
    return at


def _resources(source: Path) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    """Every resource with its file and line, also those that a Bundle holds."""
    folder = sorted(source.iterdir()) if source.is_dir() else []
    files = [file for file in folder if file.name.lower().endswith((".ndjson", ".ndjson.gz"))]
    if not files:
        raise InputError(f"{source}: holds no .ndjson file. Is this the export's folder?")
    for file in files:
        try:
            for number, line in text_lines(file):
                if not line.strip():
                    continue
                try:
                    resource = json.loads(line)
                except (ValueError, RecursionError):
                    resource = None
                if not isinstance(resource, dict):
                    raise InputError(
                        f"{file}: line {number}: is no JSON object, expected one FHIR resource "
                        "a line. Write the export as NDJSON."
                    )
                if resource.get("resourceType") != "Bundle":
                    yield file, number, resource
                    continue
                for entry in _objects(resource.get("entry")):
                    if isinstance(inner := entry.get("resource"), dict):
                        yield file, number, inner
        except OSError as error:
            raise unreadable(file, error) from None


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON list; none if it is null or no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _reference(value: Any, kind: str) -> str:
    """Id of a reference of this kind, or an empty string."""
    if not isinstance(value, dict):
        return ""
    (identifier,) = _objects([value.get("identifier")]) or [{}]
    if identifier.get("system") == ID_SYSTEM and value.get("type") == kind:
        return str(identifier.get("value") or "")
    reference = str(value.get("reference", "")).partition("#")[0].partition("/_history/")[0]
    parts = reference.split("/")
    return parts[-1] if len(parts) >= 2 and parts[-2] == kind else ""


def _codings(value: Any) -> list[tuple[str, str]]:
    """System and code of the codings that have a code."""
    coding = _objects(value.get("coding")) if isinstance(value, dict) else []
    return [(str(c.get("system") or ""), str(c["code"])) for c in coding if c.get("code")]


def _first_coding(value: Any, *, preferred: re.Pattern[str] | None = None) -> tuple[str, str]:
    """System and code of the first coding, of one of the preferred system if there is any."""
    codings = _codings(value)
    own = [one for one in codings if preferred and preferred.search(one[0])]
    return next(iter([*own, *codings]), ("", ""))


def _statuses(value: Any) -> list[str]:
    """Codes of a status, which is one code in early versions of FHIR."""
    return [value] if isinstance(value, str) else [code for _, code in _codings(value)]


def _text_table(names: list[str], rows: Sequence[tuple[str | None, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.table(dict(zip(names, arrays, strict=True)))
