"""What of chapter 6 calibrated the simulated hospital: no result, and said so."""

from typing import Any

from telic.simulate.hospital import Difficulty
from telic.specialty.log.access_log import AccessLog
from telic.specialty.recognition.classifiers import CHOSEN, PRINTED
from telic.specialty.recognition.recognise import large_classes, recognise
from telic.study.chapter6.hospital import hospital

KNOB = "columns in [0, 1], Gaussian, C = 10"
"""The SVM's pipeline beside which the simulator's knobs were set."""


def counts(*, scale: float, seed: int) -> dict[str, int]:
    """Table 6.1 and the number of CCS codes: how large the hospital is."""
    log, _ = hospital(scale, seed)
    return {
        "accesses": len(log.access_user),
        "patients": len(log.patients),
        "providers": len(log.users),
        "encounters": len(log.encounters),
        "taxonomy codes": len(log.class_sizes()),
        "CCS codes": len(log.codes),
    }


def diagnoses(*, scale: float, seed: int) -> dict[str, int]:
    """Table 6.2: how many diagnoses the records hold, which are groups from the start."""
    log, _ = hospital(scale, seed)
    assert log.fine is not None
    opened = {"fine-grained": log.fine, "general": log.user_diagnosis()}
    return {view: int((one.sum(axis=0) > 0).sum()) for view, one in opened.items()}


def naive_contrast(*, scale: float, seed: int) -> dict[str, Any]:
    """Section 6.2: F1 of a specialty that is easy to recognise and of one that is hard.

    Returns
    -------
    dict
        "dropped", the number of classes that are too small; "f1", a list of classifier, pipeline,
        class and F1.
    """
    log, _ = hospital(scale, seed)
    return {
        "dropped": len(large_classes(log.taxonomy)[1]),
        "f1": contrast(log, seed, (PRINTED, KNOB, CHOSEN)),
    }


def contrast(log: AccessLog, seed: int, svm: tuple[str, ...]) -> list[tuple[str, str, str, float]]:
    """Return classifier, pipeline, class and F1: the naive classifier's and some of the SVM's."""
    labels, _ = large_classes(log.taxonomy)
    opened = log.user_diagnosis()
    rows = []
    for method, pipeline in [("Naive", CHOSEN), *(("SVM", one) for one in svm)]:
        found = recognise(opened, labels, method=method, pipeline=pipeline, every=False, seed=seed)
        for name in ("Urology", "Anesthesiology"):
            rows.append((method, pipeline, name, float(found.of(name)[2])))
    return rows


def knob(*, scale: float, tilt: float) -> dict[str, Any]:
    """Section 6.2 at a `Difficulty.surgical_tilt`: why the naive classifier misses anesthesiology.

    "opened" is the reason: where nearly every user has opened nearly every diagnosis, tf-idf leaves
    only the rarest a weight, and those are nobody's most accessed ones.
    """
    log, _ = hospital(scale, 0, Difficulty(surgical_tilt=tilt))
    opened = log.user_diagnosis()
    return {
        "scale": scale,
        "tilt": tilt,
        "f1": [row[-1] for row in contrast(log, 0, (KNOB,))],
        "opened": opened.nnz / (opened.shape[0] * opened.shape[1]),
    }
