"""Specialties that exist in practice but have no code, and the false alarms they explain."""

from telic.specialty.access import AccessLog, read_log, write_log
from telic.specialty.care import Care, care_of
from telic.specialty.control import Shuffled, recognise_found, recognition_facts, shuffle
from telic.specialty.discover import discover
from telic.specialty.discovery import Discovery, Specialty, discovery_from, read_discovery
from telic.specialty.effect import Caught, Effect, effect, known_snooping
from telic.specialty.explain import Alerts, Pseudonyms, judge, lines
from telic.specialty.findings import Carried, Drift, Findings, carry, findings_of, read_findings
from telic.specialty.lda import GibbsLDA, choose_n_topics
from telic.specialty.pathselclus import Clustering, fit_pathselclus, path_contrast
from telic.specialty.patient import PatientLog, patient_log
from telic.specialty.reasons import Reasons, find_reasons
from telic.specialty.recognise import PipelineScore, Recognition, recognise
from telic.specialty.report import full_report, specialty_report
from telic.specialty.sources import import_log
from telic.specialty.tfidf import AccessTfidf, TopConditions

__all__ = [
    "AccessLog",
    "AccessTfidf",
    "Alerts",
    "Care",
    "Carried",
    "Caught",
    "Clustering",
    "Discovery",
    "Drift",
    "Effect",
    "Findings",
    "GibbsLDA",
    "PatientLog",
    "PipelineScore",
    "Pseudonyms",
    "Reasons",
    "Recognition",
    "Shuffled",
    "Specialty",
    "TopConditions",
    "care_of",
    "carry",
    "choose_n_topics",
    "discover",
    "discovery_from",
    "effect",
    "find_reasons",
    "findings_of",
    "fit_pathselclus",
    "full_report",
    "import_log",
    "judge",
    "known_snooping",
    "lines",
    "path_contrast",
    "patient_log",
    "read_discovery",
    "read_findings",
    "read_log",
    "recognise",
    "recognise_found",
    "recognition_facts",
    "shuffle",
    "specialty_report",
    "write_log",
]
