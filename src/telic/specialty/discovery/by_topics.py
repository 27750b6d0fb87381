"""Group users by topics: LDA on patients (or users), averaged over each user's patients."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from telic.data.object_storage import Place, place
from telic.errors import InputError
from telic.scale import Executor
from telic.specialty.discovery.by_residuals import signal
from telic.specialty.discovery.gibbs_lda import GibbsLDA, choose_n_topics
from telic.specialty.discovery.result import Grouping
from telic.specialty.discovery.user_patient_units import units_of
from telic.specialty.log.access_log import AccessLog
from telic.specialty.small_cells import shown

TOPIC_CANDIDATES = [20, 30, 40, 50]
SAMPLE = 40_000
"""Documents used to choose the number of topics."""
FEWEST = 50
"""Documents with something to hold out, below which no number of topics is chosen."""
CONCENTRATION = 6.0
"""Robust standard deviations by which a user's share of a topic must exceed the median user's."""


def group_by_topics(
    log: AccessLog,
    *,
    n_topics: int | str | None,
    document: str,
    restarts: int,
    seed: int,
    threads: int,
    progress: Callable[[str], None],
    assign: str = "concentrated",
    shards: int = 1,
    executor: Executor | None = None,
    work: str | Place | None = None,
) -> Grouping:
    """Cluster users by their largest topic; the options are those of `discover`.

    Other sizes, for the stability, are a quarter fewer and a quarter more topics.
    """
    details: dict[str, Any] = {"document": document} | ({"shards": shards} if shards > 1 else {})
    if document == "patient":
        documents = log.patient_diagnosis()
    elif document == "encounter":
        documents = log.diagnosis
    elif document == "user":
        documents = log.user_diagnosis().sign()  # the dissertation's is a set of diagnoses
    else:
        raise InputError(f"document is {document!r}, expected 'patient', 'encounter' or 'user'.")
    here = None if work is None else place(work)
    choose = partial(
        choose_n_topics,
        seed=seed,
        n_jobs=threads,
        shards=shards,
        executor=executor,
        work=here and here / "sample",
    )
    n_topics = _number(log, documents, n_topics, details, seed, choose, progress)
    opened_in = log.user_encounter if document == "encounter" else log.user_patient
    opened = opened_in()
    patients = opened.sum(axis=1)
    opens = patients > 0

    def run(n: int, seed: int) -> tuple[float, np.ndarray, np.ndarray, GibbsLDA]:
        model = GibbsLDA(n_topics=n, shards=shards, random_state=seed, n_jobs=threads)
        model.fit(documents, executor=executor, work=here and here / "all")
        topics = model.transform(documents)
        if document != "user":
            share = mean_share(opened, topics)
            noise = topics.var(axis=0) / np.maximum(patients, 1)[:, None]
        else:
            share, noise = topics, np.zeros(topics.shape)
        cluster = np.full(len(opens), -1)
        if assign == "argmax":
            cluster[opens] = share[opens].argmax(axis=1)
        else:
            cluster[opens] = concentrated_cluster(share[opens], noise[opens])
        progress(f"LDA with {n} topics")
        score = model.perplexity(documents) if restarts > 1 else 0.0
        return score, cluster, topics, model

    runs = [run(n_topics, seed + restart) for restart in range(restarts)]
    best = min(range(restarts), key=lambda r: runs[r][0])
    _, cluster, topics, model = runs[best]
    sizes = {max(2, round(n_topics * factor)) for factor in (0.75, 1.25)} - {n_topics}
    if restarts == 1:
        sizes = set()

    def by_month(rows: np.ndarray) -> np.ndarray:
        if document == "user":
            return model.transform(log.user_diagnosis(rows).sign())
        return mean_share(opened_in(rows), topics)

    return Grouping(
        cluster,
        n_topics,
        restarts=[one[1] for r, one in enumerate(runs) if r != best],
        sizes=[run(n, seed)[1] for n in sorted(sizes)],
        by_month=by_month,
        details=details,
        in_view=np.flatnonzero(opens),
    )


def _number(
    log: AccessLog,
    documents: sparse.csr_array,
    n_topics: int | str | None,
    details: dict[str, Any],
    seed: int,
    choose: Callable[..., tuple[int, dict[int, float]]],
    progress: Callable[[str], None],
) -> int:
    """Return the number of topics, chosen if it is not given; `details` gets what it rests on."""
    document = details["document"]
    if isinstance(n_topics, str):
        units, _ = units_of(log).of_active()
        chosen = max(2, signal(units, np.random.default_rng(seed)).n_practices)
        progress("number of topics")
    elif n_topics is None:
        several = int((documents.sum(axis=1) >= 2).sum())
        if several < FEWEST:
            raise InputError(
                f"{shown(several)} {document}s have two diagnoses or more; to choose the number of "
                f"topics {FEWEST} are needed. Give a longer log or the number (n_topics, --topics)."
            )
        rng = np.random.default_rng(seed)
        rows = rng.permutation(documents.shape[0])[:SAMPLE]
        chosen, perplexity = choose(documents[np.sort(rows)], TOPIC_CANDIDATES)
        details["perplexity"] = {str(k): round(value, 2) for k, value in perplexity.items()}
        progress("number of topics")
    elif n_topics > len(log.codes):
        raise InputError(
            f"n_topics is {n_topics}, expected at most {len(log.codes)}, the number of diagnosis "
            "categories."
        )
    else:
        chosen = n_topics
    details["n_topics"] = chosen
    return chosen


def concentrated_cluster(share: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
    """Cluster of each user: the topic of largest share if the share stands out, else −1.

    `noise` is the variance of each share by chance alone. What the typical user's noise adds to
    the spread of shares is replaced by the user's own, so that few patients do not look like a
    practice.

    Examples
    --------
    >>> share = np.full((9, 2), 0.5) + np.linspace(-0.02, 0.02, 9)[:, None] * [1, -1]
    >>> share[0] = [0.9, 0.1]
    >>> concentrated_cluster(share).tolist()
    [0, -1, -1, -1, -1, -1, -1, -1, -1]
    """
    largest = share.argmax(axis=1)
    median = np.median(share, axis=0)
    spread = 1.4826 * np.median(np.abs(share - median), axis=0)
    variance = np.broadcast_to(spread**2, share.shape)
    if noise is not None:
        variance = np.maximum(variance - np.median(noise, axis=0), 0.0) + noise
    needed = median + CONCENTRATION * np.sqrt(variance)
    everyone = np.arange(len(share))
    return np.where(share[everyone, largest] >= needed[everyone, largest], largest, -1)


def mean_share(opened: sparse.csr_array, topics: np.ndarray) -> np.ndarray:
    """T_u: the mean topic shares of a user's distinct patients (equal shares without patients)."""
    number = opened.sum(axis=1)[:, None]
    mean = (opened @ topics) / np.maximum(number, 1)
    return np.where(number > 0, mean, 1.0 / topics.shape[1])
