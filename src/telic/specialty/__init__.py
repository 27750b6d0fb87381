"""Specialties that exist in practice but have no code, and the false alarms they explain."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.specialty.alarms.access_reasons import Reasons, find_reasons
    from telic.specialty.alarms.before_and_after import Caught, Effect, effect, known_snooping
    from telic.specialty.alarms.colleagues import Care, care_of
    from telic.specialty.alarms.explained_alarms import Alerts, judge, lines
    from telic.specialty.alarms.patient_log import PatientLog, patient_log
    from telic.specialty.discovery.discover import discover
    from telic.specialty.discovery.gibbs_lda import GibbsLDA, choose_n_topics
    from telic.specialty.discovery.pathselclus import Clustering, fit_pathselclus, path_contrast
    from telic.specialty.discovery.result import (
        Discovery,
        Specialty,
        discovery_from,
        read_discovery,
    )
    from telic.specialty.later_logs.carry import Carried, Drift, carry
    from telic.specialty.later_logs.kept_findings import Findings, findings_of, read_findings
    from telic.specialty.log.access_log import AccessLog
    from telic.specialty.log.log_files import read_log, write_log
    from telic.specialty.log.other_systems import import_log
    from telic.specialty.pseudonyms import Pseudonyms
    from telic.specialty.recognition.recognise import PipelineScore, Recognition, recognise
    from telic.specialty.recognition.shuffled_control import (
        Shuffled,
        recognise_found,
        recognition_facts,
        shuffle,
    )
    from telic.specialty.recognition.tfidf import AccessTfidf, TopConditions
    from telic.specialty.report.page import full_report, specialty_report
else:
    __getattr__, __dir__ = lazy_names(__name__)

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
