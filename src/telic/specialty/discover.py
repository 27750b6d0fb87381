"""Find specialties: clusters of users, what they treat, and whether a listed code names them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from telic.errors import InputError
from telic.specialty.access import AccessLog
from telic.specialty.discovery import Discovery, Specialty, lifts
from telic.specialty.lda import GibbsLDA, choose_n_topics
from telic.specialty.pathselclus import fit_pathselclus, path_contrast
from telic.specialty.recognise import large_classes

METHODS = ("lda", "pathselclus")
TOPIC_CANDIDATES = [20, 30, 40, 50]
SAMPLE = 40_000
"""Documents used to choose the number of topics."""
CONCENTRATION = 6.0
"""Robust standard deviations by which a user's share of a topic must exceed the median user's."""
MIN_THETA = 0.25
"""Least share of a PathSelClus cluster's users in it."""
MIN_USERS = 5
"""Smaller clusters are not reported; their users count as without a concentrated practice."""
SEED_CLASS = 10
"""Codes with at least this many users seed a cluster."""


def discover(
    log: AccessLog,
    *,
    method: str = "lda",
    n_topics: int | None = None,
    document: str = "patient",
    view: str | None = None,
    full_paths: bool = False,
    free: int = 3,
    restarts: int = 3,
    seed: int = 0,
    threads: int = 1,
    on_step: Callable[[str], None] = lambda step: None,
) -> Discovery:
    """Cluster the users of an access log into specialties.

    Parameters
    ----------
    log : AccessLog
    method : {"lda", "pathselclus"}
        Topics of patients averaged per user (section 6.4.3), or seeded clustering over
        meta-paths (section 6.4.2).
    n_topics : int, optional
        LDA's K; chosen by held-out perplexity if not given (the text's choice was 30).
    document : {"patient", "user"}
        LDA's documents. "user" is the text's negative control.
    view : {"fine", "general"}, optional
        PathSelClus: links U–D of the fine-grained view, or U–P–D over all diagnoses of the
        patients. The fine-grained one if the log has it.
    full_paths : bool
        PathSelClus: U–P–U and U–P–D–P–U instead of U–P and U–P–D. Memory grows with the square
        of the number of users.
    free : int
        PathSelClus: δ, clusters without seeds.
    restarts : int
        Runs from other random numbers; the best is used, the others give the stability.
    seed, threads : int
    on_step : callable
        Called with the name of each step when it is done, for a progress bar.

    Returns
    -------
    Discovery

    Notes
    -----
    The text assigns every user to the topic of largest share. Users with a flat profile then fall
    into whichever cluster is a hair larger, so we also ask for a concentrated practice: for LDA a
    share at least `CONCENTRATION` robust standard deviations above the median user's, for
    PathSelClus a share of at least `MIN_THETA`. Others belong to no cluster.
    """
    if method not in METHODS:
        raise InputError(f"method is {method!r}, expected one of {', '.join(METHODS)}.")
    if restarts < 1:
        raise InputError(f"restarts is {restarts}, expected at least 1.")
    if method == "lda":
        return _by_lda(log, n_topics, document, restarts, seed, threads, on_step)
    return _by_pathselclus(log, view, full_paths, free, restarts, seed, threads, on_step)


def concentrated_cluster(share: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
    """Cluster of each user: the topic of largest share if the share stands out, else −1.

    Parameters
    ----------
    share : ndarray of shape (n_users, n_topics)
    noise : ndarray of shape (n_users, n_topics), optional
        Variance of each share by chance alone. What the typical user's noise adds to the spread of
        shares is replaced by the user's own, so that few patients do not look like a practice.

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


def _by_lda(
    log: AccessLog,
    n_topics: int | None,
    document: str,
    restarts: int,
    seed: int,
    threads: int,
    on_step: Callable[[str], None],
) -> Discovery:
    details: dict[str, Any] = {"document": document}
    if document == "patient":
        documents = log.patient_diagnosis()
    elif document == "user":
        documents = log.user_diagnosis()
    else:
        raise InputError(f"document is {document!r}, expected 'patient' or 'user'.")
    if n_topics is None:
        rng = np.random.default_rng(seed)
        rows = rng.permutation(documents.shape[0])[:SAMPLE]
        n_topics, perplexity = choose_n_topics(
            documents[np.sort(rows)], TOPIC_CANDIDATES, seed=seed, threads=threads
        )
        details["perplexity"] = {str(k): round(value, 2) for k, value in perplexity.items()}
        on_step("number of topics")
    details["n_topics"] = n_topics
    opened = log.user_patient()
    runs = []
    for restart in range(restarts):
        model = GibbsLDA(n_topics=n_topics, seed=seed + restart, threads=threads).fit(documents)
        topics = model.transform(documents)
        if document == "patient":
            patients = np.maximum(np.asarray(opened.sum(axis=1)), 1)[:, None]
            share = _mean_share(opened, topics)
            cluster = concentrated_cluster(share, topics.var(axis=0) / patients)
        else:
            cluster = concentrated_cluster(topics)
        runs.append((model.perplexity(documents), cluster, topics))
        on_step(f"LDA, run {restart + 1} of {restarts}")
    best = min(range(restarts), key=lambda r: runs[r][0])
    cluster, topics = runs[best][1:]
    others = [run[1] for r, run in enumerate(runs) if r != best]

    def by_month(rows: np.ndarray) -> np.ndarray:
        if document == "user":
            return model.transform(log.user_diagnosis(rows))
        return _mean_share(log.user_patient(rows), topics)

    found = _describe(log, cluster, n_topics, others, _months(log, by_month))
    return _ordered("lda", found, cluster, details)


def _by_pathselclus(
    log: AccessLog,
    view: str | None,
    full_paths: bool,
    free: int,
    restarts: int,
    seed: int,
    threads: int,
    on_step: Callable[[str], None],
) -> Discovery:
    paths, month_counts = _paths(log, view, full_paths)
    active = np.flatnonzero(sum(np.asarray(W.sum(axis=1)).ravel() for W in paths.values()) > 0)
    labels, _ = large_classes(log.taxonomy[active], minimum=SEED_CLASS)
    codes = [str(code) for code in np.unique(labels) if code]
    if not codes:
        raise InputError(
            f"no declared specialty has {SEED_CLASS} users, so PathSelClus has nothing to seed. "
            "Use the method lda, which needs no codes."
        )
    if free < 1:
        raise InputError(f"free is {free}, expected at least 1 cluster without seeds.")
    seeds = np.array([codes.index(label) if label else -1 for label in labels])
    links = {name: sparse.csr_array(W)[active] for name, W in paths.items()}
    model = fit_pathselclus(
        links,
        seeds,
        n_clusters=len(codes) + free,
        restarts=max(restarts, 10),
        seed=seed,
        finished=max(2, restarts - 1),
        threads=threads,
        on_restart=lambda: on_step("restart"),
    )

    def everyone(label: np.ndarray) -> np.ndarray:
        cluster = np.full(len(log.users), -1)
        cluster[active] = label
        return cluster

    cluster = everyone(np.where(model.theta.max(axis=1) >= MIN_THETA, model.labels, -1))
    others = [everyone(label) for label in model.labels_of_restarts[1:]]
    details = {
        "view": "fine" if month_counts is None else "general",
        "objective": model.objective,
        "seeded_codes": codes,
        "path_share": {m: q / sum(model.quality.values()) for m, q in model.quality.items()},
        "path_contrast": path_contrast(links, model, seed=seed),
    }
    # Month by month, a user is compared with the clusters' diagnosis profiles of the whole year.
    counts = log.user_diagnosis()
    member = np.eye(model.theta.shape[1] + 1)[cluster][:, :-1]
    profile = member.T @ counts + 0.5
    log_profile = np.log(profile / profile.sum(axis=1, keepdims=True))
    months = _months(log, lambda rows: log.user_diagnosis(rows) @ log_profile.T)
    found = _describe(log, cluster, model.theta.shape[1], others, months)
    # A free cluster has no code of its own, whoever drifted into it.
    found = {
        k: replace(one, listed_code=codes[k] if k < len(codes) else None)
        for k, one in found.items()
    }
    return _ordered("pathselclus", found, cluster, details)


def _paths(
    log: AccessLog, view: str | None, full_paths: bool
) -> tuple[dict[str, sparse.csr_array], str | None]:
    view = view or ("fine" if log.fine is not None else "general")
    if view == "fine":
        if log.fine is None or log.fine_patient is None:
            raise InputError(
                "the log has no access_diagnoses table, so there is no fine-grained view. "
                "Use the general view."
            )
        patient, diagnosis, general = log.fine_patient, log.fine, None
    elif view == "general":
        patient, general = log.user_patient(), "general"
        diagnosis = patient @ log.patient_diagnosis()
    else:
        raise InputError(f"view is {view!r}, expected 'fine' or 'general'.")
    if not full_paths:
        return {"U-P-D": diagnosis}, general
    through = sparse.csr_array(diagnosis @ diagnosis.T)
    return {"U-P-U": sparse.csr_array(patient @ patient.T), "U-P-D-P-U": through}, general


def _mean_share(opened: sparse.csr_array, topics: np.ndarray) -> np.ndarray:
    """T_u: the mean topic shares of a user's distinct patients (equal shares without patients)."""
    number = np.asarray(opened.sum(axis=1)).ravel()[:, None]
    mean = (opened @ topics) / np.maximum(number, 1)
    return np.where(number > 0, mean, 1.0 / topics.shape[1])


def _months(
    log: AccessLog, score: Callable[[np.ndarray], np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per month, the users who accessed anything and their highest-scoring cluster."""
    month = log.month()
    found = []
    for one in np.unique(month):
        rows = np.flatnonzero(month == one)
        active = np.unique(log.access_user[rows])
        found.append((active, score(rows)[active].argmax(axis=1)))
    return found


def _describe(
    log: AccessLog,
    cluster: np.ndarray,
    n_clusters: int,
    others: list[np.ndarray],
    months: list[tuple[np.ndarray, np.ndarray]],
) -> dict[int, Specialty]:
    counts = log.user_diagnosis()
    overall = np.asarray(counts.sum(axis=0)).ravel()
    found = {}
    for k in range(n_clusters):
        users = np.flatnonzero(cluster == k)
        if len(users) < MIN_USERS:
            continue
        diagnoses = lifts(np.asarray(counts[users].sum(axis=0)).ravel(), overall)[:10]
        named = [(str(log.codes[d]), lift) for d, lift in diagnoses]
        nearest, listed = _code_of(log.taxonomy, users)
        kept = [
            (best[np.isin(active, users)] == k).mean()
            for active, best in months
            if np.isin(active, users).any()
        ]
        found[k] = Specialty(
            name=" / ".join(log.label(code) for code, _ in named[:3]) or "(no frequent diagnosis)",
            listed_code=nearest if listed else None,
            nearest_code=nearest,
            users=users,
            diagnoses=named,
            stability=float(np.mean([_best_overlap(users, other) for other in others]))
            if others
            else 1.0,
            stability_months=float(np.mean(kept)),
        )
    return found


def _code_of(taxonomy: np.ndarray, users: np.ndarray) -> tuple[str | None, bool]:
    """The code that overlaps a cluster most, and whether it names it.

    It does if at least half of the code's users are in the cluster and at least a fifth of the
    cluster's coded users declare it.
    """
    own = taxonomy[users]
    codes, here = np.unique(own[own != ""], return_counts=True)
    if not len(codes):
        return None, False
    size = np.array([(taxonomy == code).sum() for code in codes])
    best = int(np.argmax(2 * here / (size + here.sum())))
    named = here[best] >= 0.5 * size[best] and here[best] >= 0.2 * here.sum()
    return str(codes[best]), bool(named)


def _best_overlap(users: np.ndarray, other: np.ndarray) -> float:
    """Largest Jaccard overlap of a user set with a cluster of another run."""
    inside = np.bincount(other[users] + 1, minlength=2)[1:]
    sizes = np.bincount(other + 1, minlength=len(inside) + 1)[1 : len(inside) + 1]
    return float((inside / (sizes + len(users) - inside)).max(initial=0.0))


def _ordered(
    method: str, found: Mapping[int, Specialty], cluster: np.ndarray, details: dict[str, Any]
) -> Discovery:
    order = sorted(found, key=lambda k: (found[k].listed_code is not None, -len(found[k].users)))
    place = np.full(max(cluster.max(), 0) + 2, -1)
    place[order] = np.arange(len(order))
    renumbered = np.where(cluster >= 0, place[cluster], -1)
    return Discovery(method, [found[k] for k in order], renumbered, details)
