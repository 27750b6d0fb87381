"""Accesses, diagnoses and providers of a FHIR export in NDJSON."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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
_FAILED = {"4", "8", "12", "error", "fatal"}
"""Outcomes of an AuditEvent: the codes of R4, and those that R5 has for them."""


def read_fhir(source: Path, notes: list[str]) -> dict[str, pa.Table]:
    """Read FHIR NDJSON: AuditEvent, Encounter, Condition, Practitioner and PractitionerRole.

    An access is an AuditEvent that did not fail, whose agent is a Practitioner or a
    PractitionerRole, and one of whose entities, or whose encounter (since R5), is an Encounter; the
    patient is the encounter's. Codes are a Condition's ICD-10 coding, or else
    its first one, which is written ``system|code`` if it names another system. A provider has one
    row per PractitionerRole, with its first specialty; without a role that has one, the first
    qualification counts. Codes of specialties and of other systems are called as their codings'
    ``display`` has it.
    """
    export = _Export()
    for file, line, resource in _resources(source):
        export.add(file, line, resource)
    tables = export.tables(notes)
    notes += [note.format(shown(count)) for note, count in export.lost.items()]
    if export.unused:
        kinds = ", ".join(sorted(export.unused))
        total = shown(export.unused.total())
        notes.append(f"resources: {total} are of kinds that are not read ({kinds})")
    return tables


class _Event(NamedTuple):
    """An AuditEvent: who opened which encounters, and when."""

    users: list[str]
    roles: list[str]
    encounters: list[str]
    at: str | None
    place: tuple[Path, int]


class _Export:
    """What is read of an export, one resource after another, in any order of their kinds."""

    def __init__(self) -> None:
        self.lost: Counter[str] = Counter()
        """Sentences with a place for a number, and the number."""
        self.unused: Counter[str] = Counter()
        """Kinds of resources that are not read."""
        self._events: list[_Event] = []
        self._diagnoses: list[tuple[str, str, str]] = []
        self._patient_of: dict[str, str] = {}
        self._practitioner_of: dict[str, str] = {}  # of a role
        self._declared: dict[tuple[str, str], None] = {}  # by roles
        self._qualified: dict[str, str | None] = {}
        self._names: dict[str, str] = {}
        """What the export calls codes of specialties, and diagnoses that are not of ICD-10."""

    def add(self, file: Path, line: int, resource: dict[str, Any]) -> None:
        """Take what is needed of a resource."""
        kind, own = resource.get("resourceType"), str(resource.get("id") or "")
        if kind == "AuditEvent":
            self._add_event(resource, (file, line))
        elif kind == "Condition":
            self._add_condition(resource)
        elif kind == "PractitionerRole":
            self._add_role(own, resource)
        elif kind not in ("Encounter", "Practitioner"):
            named = isinstance(kind, str) and kind.isalpha()
            self.unused[str(kind) if named else "without a kind"] += 1
        elif not own:
            self.lost[f"{kind.lower()}s: {{}} have no id"] += 1
        elif kind == "Encounter":
            self._patient_of[own] = _reference(resource.get("subject"), "Patient")
        else:
            qualifications = _objects(resource.get("qualification"))
            codes = [self._specialty(one.get("code")) for one in qualifications]
            self._qualified[own] = next(filter(None, codes), None)

    def _add_event(self, resource: dict[str, Any], place: tuple[Path, int]) -> None:
        if _FAILED & set(_statuses(resource.get("outcome"))):
            self.lost["audit events: {} are of attempts that failed ('outcome')"] += 1
            return
        agents = [agent.get("who") for agent in _objects(resource.get("agent"))]
        opened = [entity.get("what") for entity in _objects(resource.get("entity"))]
        opened.append(resource.get("encounter"))  # since R5
        encounters = dict.fromkeys(_reference(what, "Encounter") for what in opened)
        self._events.append(
            _Event(
                [_reference(who, "Practitioner") for who in agents],
                [_reference(who, "PractitionerRole") for who in agents],
                [one for one in encounters if one],
                str(resource.get("recorded") or "") or None,
                place,
            )
        )

    def _add_condition(self, resource: dict[str, Any]) -> None:
        if _NO_DIAGNOSIS & set(_statuses(resource.get("verificationStatus"))):
            self.lost["conditions: {} are refuted or entered in error"] += 1
            return
        system, code = _first_coding(resource.get("code"), preferred=_ICD10)
        if code and system and not _ICD10.search(system):
            self.lost["conditions: {} have a code of another system than ICD-10"] += 1
            name = _display(resource["code"], code)
            code = f"{system.rstrip('/').rpartition('/')[2]}|{code}"
            self._names.setdefault(code, name)
        patient = _reference(resource.get("subject"), "Patient")
        encounter = _reference(resource.get("encounter"), "Encounter")
        if patient and encounter and code:
            self._diagnoses.append((patient, encounter, code))
        else:
            self.lost["conditions: {} lack patient, encounter or code"] += 1

    def _add_role(self, own: str, resource: dict[str, Any]) -> None:
        user = _reference(resource.get("practitioner"), "Practitioner")
        if own:
            self._practitioner_of[own] = user
        codes = [self._specialty(one) for one in _objects(resource.get("specialty"))]
        if user and (code := next(filter(None, codes), "")):
            self._declared[user, code] = None

    def _specialty(self, value: Any) -> str:
        """Return the code of a specialty, and remember what it is called."""
        _, code = _first_coding(value)
        if code:
            self._names.setdefault(code, _display(value, code))
        return code

    def tables(self, notes: list[str]) -> dict[str, pa.Table]:
        """Return accesses, diagnoses, providers and the names of codes."""
        in_roles = {user for user, _ in self._declared}
        providers: list[tuple[str, str | None]] = [*self._declared]
        providers += ((u, code) for u, code in self._qualified.items() if u not in in_roles)
        names = [(code, name) for code, name in self._names.items() if name]
        called = {"names": _text_table(["code", "name"], names)} if names else {}
        return called | {
            "accesses": self._accesses(notes),
            "diagnoses": _text_table(["patient", "encounter", "code"], self._diagnoses),
            "providers": _text_table(["user", "taxonomy"], providers),
        }

    def _accesses(self, notes: list[str]) -> pa.Table:
        at = _times(self._events, notes)
        accesses: list[tuple[str, str, str]] = []
        of_event: list[int] = []
        for number, event in enumerate(self._events):
            if any(role and role not in self._practitioner_of for role in event.roles):
                self.lost["audit events: {} name a PractitionerRole that is not there"] += 1
            in_roles = (self._practitioner_of.get(role, "") for role in event.roles)
            named = dict.fromkeys([*event.users, *in_roles])  # named both ways, it is one user
            pairs = [(user, one) for user in named if user for one in event.encounters]
            if not pairs:
                self.lost["audit events: {} name no practitioner and encounter"] += 1
            elif event.at is None:
                self.lost["audit events: {} have no time ('recorded')"] += 1
            else:
                patient_of = self._patient_of
                known = [(user, patient_of[one], one) for user, one in pairs if patient_of.get(one)]
                if len(known) < len(pairs):
                    self.lost["audit events: {} are of unknown encounters"] += 1
                accesses += known
                of_event += [number] * len(known)
        opened = _text_table(["user", "patient", "encounter"], accesses)
        return opened.append_column("at", at.take(pa.array(of_event, pa.int64())))


def _times(events: Sequence[_Event], notes: list[str]) -> pa.Array:
    """When events were recorded; one that is no time is named by its line."""
    given = _texts([event.at for event in events])
    at, naive = in_utc(given)
    wrong = pc.index(pc.and_(given.is_valid(), at.is_null()), True).as_py()
    if wrong >= 0:
        file, line = events[wrong].place
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
                for inner in _entries(line, resource):
                    yield file, number, inner
        except OSError as error:
            raise unreadable(file, error) from None


def _entries(line: str, bundle: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The resources of the Bundle of a line; who refers to an entry's `fullUrl` refers to its id.

    So a Bundle names what has no address yet (``urn:uuid:…``). Without an id of its own, such a
    resource has the end of its `fullUrl`.
    """
    named = {}
    for entry in _objects(bundle.get("entry")):
        url, inner = entry.get("fullUrl"), entry.get("resource")
        if isinstance(url, str) and isinstance(inner, dict):
            own = inner.get("id") or re.split("[:/]", url)[-1]
            named[url] = f"{inner.get('resourceType')}/{own}"

    def resolved(value: dict[str, Any]) -> dict[str, Any]:
        reference = value.get("reference")
        if isinstance(reference, str) and reference in named:
            value["reference"] = named[reference]
        return value

    for entry in _objects(json.loads(line, object_hook=resolved).get("entry")):
        if isinstance(inner := entry.get("resource"), dict):
            name = named.get(str(entry.get("fullUrl")), "").partition("/")[2]
            yield inner | {"id": inner.get("id") or name}


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


def _display(value: dict[str, Any], code: str) -> str:
    """What the codings of a concept call a code, or an empty string."""
    given = [c.get("display") for c in _objects(value["coding"]) if str(c.get("code")) == code]
    return next((name for name in given if isinstance(name, str) and name.isprintable()), "")


def _first_coding(value: Any, *, preferred: re.Pattern[str] | None = None) -> tuple[str, str]:
    """System and code of the first coding, of one of the preferred system if there is any."""
    codings = _codings(value)
    own = [one for one in codings if preferred and preferred.search(one[0])]
    return next(iter([*own, *codings]), ("", ""))


def _statuses(value: Any) -> list[str]:
    """Codes of a status, which is one code in early versions of FHIR.

    An outcome has, in R5, one coding.
    """
    if isinstance(value, str):
        return [value]
    own = value.get("code") if isinstance(value, dict) else None
    return [code for _, code in [*_codings(value), *_codings({"coding": [own]})]]


def _text_table(names: list[str], rows: Sequence[tuple[str | None, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table(dict(zip(names, map(_texts, columns), strict=True)))


def _texts(values: Sequence[str | None]) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:  # JSON can say "\ud83d" alone, which no text holds
        raise InputError(
            "an id, a code or a time of the export ends in the middle of a character. Write the "
            "export again."
        ) from None
