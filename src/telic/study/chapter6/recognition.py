"""Tables 6.7 to 6.9: is a found specialty recognised as well as the core classes are?"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.result import Specialty, discovery_from
from telic.specialty.log.access_log import AccessLog
from telic.specialty.recognition.classifiers import CLASSIFIERS
from telic.specialty.recognition.recognise import present_core, recognise, with_specialty
from telic.specialty.recognition.shuffled_control import DE_FACTO, Shuffled, shuffle
from telic.study.chapter6.hospital import hospital, nearest


@lru_cache(maxsize=2)
def shuffled(*, scale: float, seed: int, n_topics: int, fine: bool, threads: int = 1) -> Shuffled:
    """Return the hospital after every access was moved to a random encounter."""
    log, _ = hospital(scale, seed)
    return shuffle(log, n_topics=n_topics, fine=fine, seed=seed, threads=threads)


def recognise_nearest(
    *,
    scale: float,
    seed: int,
    found: dict[str, Any],
    hidden: str,
    n_topics: int,
    fine: bool,
    pipeline: str,
    threads: int = 1,
) -> dict[str, Any] | None:
    """Recognise the found specialty that is nearest to a hidden one; None if nothing was found.

    `fine` says that the classifiers see the users and diagnoses of the fine-grained view.
    """
    log, truth = hospital(scale, seed)
    one, _ = nearest(discovery_from(found, log), truth, hidden)
    if one is None:
        return None
    mixed = shuffled(scale=scale, seed=seed, n_topics=n_topics, fine=fine, threads=threads)
    return recognised(log, mixed, one, fine=fine, pipeline=pipeline, seed=seed)


def recognised(
    log: AccessLog, mixed: Shuffled, one: Specialty, *, fine: bool, pipeline: str, seed: int
) -> dict[str, Any]:
    """Recognise a specialty beside the core classes, and as many users of shuffled data.

    Returns
    -------
    dict
        The specialty's name and number of users; by classifier: precision, recall and F1 of each
        class and of the mean of the core classes, F1 in shuffled data, the core classes' macro-F1,
        p-values, and scores by pipeline.
    """
    counts = log.fine if fine and log.fine is not None else log.user_diagnosis()
    labels = with_specialty(log.taxonomy, one.users, DE_FACTO)
    core = present_core(labels)
    seen = np.asarray(counts.sum(axis=1)).ravel() > 0
    # A core class may be small in the fine-grained view, but is kept as long as it can be halved.
    core = [c for c in core if ((labels == c) & seen).sum() >= 4]
    labels = np.where(np.isin(labels, [*core, DE_FACTO]) & seen, labels, "")
    size = int((labels == DE_FACTO).sum())
    by_classifier = {}
    for name in CLASSIFIERS[1:]:
        options: dict[str, Any] = {"method": name, "pipeline": pipeline, "seed": seed}
        found = recognise(counts, labels, **options)
        tests = found.compare(DE_FACTO, core)
        by_classifier[name] = {
            "scores": {label: found.of(label) for label in (DE_FACTO, *core)},
            "core": found.mean_of(core),
            "core_macro_f1": found.macro_f1(core),
            "shuffled_f1": mixed.f1(log.taxonomy, size, core, **options)[0],
            "p_values": {test: result.p_value for test, result in tests.items()},
            "pipelines": [score._asdict() for score in found.pipeline_scores(DE_FACTO, core)],
        }
    return {"name": one.name, "users": len(one.users), "classifiers": by_classifier}


def shuffled_clusters(
    *, scale: float, seed: int, n_topics: int, pipeline: str, threads: int = 1
) -> dict[str, Any]:
    """Say how well clusters by largest share alone are recognised in shuffled data, by their size.

    Returns
    -------
    dict
        "f1" of the SVM by number of users, and "found": the users that discovery puts in clusters
        of concentrated practice there, which should be none.
    """
    log, _ = hospital(scale, seed)
    mixed = shuffled(scale=scale, seed=seed, n_topics=n_topics, fine=False, threads=threads)
    rng = np.random.default_rng(seed)
    concentrated = discover(
        replace(log, access_encounter=rng.permutation(log.access_encounter)),
        method="lda",
        n_topics=n_topics,
        restarts=1,
        seed=seed,
        threads=threads,
    )
    core = present_core(log.taxonomy)
    scores = {
        size: mixed.f1(log.taxonomy, size, core, method="SVM", pipeline=pipeline, seed=seed)[0]
        for size in (20, 50, 100, 200, 400)
    }
    return {"f1": scores, "found": sum(len(one.users) for one in concentrated.specialties)}
