"""Find specialties: clusters of users, what they treat, and whether a listed code names them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from telic.data.object_storage import Place
from telic.errors import InputError, expect_one_of, expect_whole
from telic.scale import Executor
from telic.specialty.discovery.evidence import NAMINGS, evidence_of, shares_shown
from telic.specialty.discovery.practice_mixture import MIN_USERS
from telic.specialty.discovery.result import Discovery, Grouping, Specialty, lifts
from telic.specialty.discovery.user_patient_units import units_of
from telic.specialty.log.access_log import AccessLog

METHODS = ("residuals", "lda", "pathselclus")
SEEDS = ("representative", "all")
ASSIGNMENTS = ("concentrated", "argmax")
PATHS = ("U-P-D",)
FREE = 3
"""Of PathSelClus: half-paths, and clusters without seeds."""
MEASURED = "measured"
"""For as many topics as there are practices beyond chance (`by_residuals.signal`)."""
MIN_LIFT = 2.0
"""A cluster none of whose diagnoses has this lift is no practice, and is not reported either:
PathSelClus's seeded clusters of cross-cutting codes are such. For "residuals" it is the lift beside
the other users."""


def discover(
    log: AccessLog,
    *,
    method: str = "residuals",
    naming: str = "tested",
    n_topics: int | str | None = None,
    document: str = "patient",
    view: str | None = None,
    paths: Sequence[str] = PATHS,
    free: int = FREE,
    seeds: str = "representative",
    assign: str = "concentrated",
    restarts: int = 3,
    seed: int = 0,
    threads: int = 1,
    shards: int = 1,
    executor: Executor | None = None,
    work: str | Place | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Discovery:
    """Cluster the users of an access log into specialties.

    Parameters
    ----------
    log : AccessLog
    method : {"residuals", "lda", "pathselclus"}
        What users see beyond chance, topics of patients averaged per user (section 6.4.3), or
        seeded clustering over meta-paths (section 6.4.2).
    naming : {"tested", "overlap"}
        When a listed code names a cluster: by `over_represented` or by `by_overlap` of
        `telic.specialty.discovery.evidence`.
    n_topics : int or "measured", optional
        LDA's K; chosen by held-out perplexity if not given (the dissertation's choice was 30).
        "measured": as many practices as "residuals" looks for, and at least 2.
    document : {"patient", "encounter", "user"}
        LDA's documents. "user" is the dissertation's negative control.
    view : {"fine", "general"}, optional
        PathSelClus: diagnoses tied to the access, or all diagnoses of the patients. The
        fine-grained one if the log has it.
    paths : sequence of {"U-P-D", "U-P", "U-P-U", "U-P-D-P-U"}
        PathSelClus: half-paths, or the dissertation's full paths, whose memory grows with the
        square of the number of users. The dissertation also uses U-P. It is left out here because
        it needs users who share patients: where they hardly do, as in the simulated hospital, it
        says nothing and swamps U-P-D, which `details["path_contrast"]` shows (near 1).
    free : int
        PathSelClus: δ, clusters without seeds.
    seeds : {"representative", "all"}
        PathSelClus: the half of a code's users nearest to its mean profile, or all of them, as the
        dissertation has it.
    assign : {"concentrated", "argmax"}
        LDA and PathSelClus: users with a concentrated practice alone, or everybody to the largest
        share, as the dissertation has it.
    restarts : int
        Runs from other random numbers; the best is used ("residuals": the first), the others give
        the stability. With 1 no stability but that over months is measured.
    seed, threads : int
    shards, executor, work
        LDA: as in `GibbsLDA`, of which the number of shards changes the topics a little, and an
        executor nothing.
    progress : callable
        Called with the name of each step when it is done, for a progress bar.

    Returns
    -------
    Discovery

    Notes
    -----
    [Zhang2017] assigns every user to the cluster of largest share. Users with a flat profile then
    fall into whichever is a hair larger, so we also ask for a concentrated practice: for LDA a
    share at least `by_topics.CONCENTRATION` robust standard deviations above the median user's, for
    PathSelClus one of at least `by_seeds.MIN_THETA`. Others belong to no cluster.
    """
    expect_one_of(METHODS, method=method)
    expect_one_of(NAMINGS, naming=naming)
    if method != "pathselclus" and view is not None:
        raise InputError(f"view is {view!r}, but method {method!r} has the general view only.")
    if method != "lda" and n_topics is not None:
        raise InputError(f"n_topics is {n_topics}, but only method 'lda' has topics.")
    if method != "lda" and document != "patient":
        raise InputError(f"document is {document!r}, but only method 'lda' has documents.")
    if method != "lda" and (shards != 1 or executor is not None):
        raise InputError(
            f"method {method!r} runs on one machine in memory; only 'lda' has shards or takes an "
            "executor (--memory, --cluster)."
        )
    expect_one_of(SEEDS, seeds=seeds)
    expect_one_of(ASSIGNMENTS, assign=assign)
    if method != "pathselclus" and (tuple(paths), free, seeds) != (PATHS, FREE, SEEDS[0]):
        raise InputError(
            f"paths, free and seeds are of method 'pathselclus' alone; method {method!r} has none."
        )
    if len(set(paths)) < len(paths):
        raise InputError(f"paths are {list(paths)}, expected each once: a second one would count.")
    if method == "residuals" and assign != ASSIGNMENTS[0]:
        raise InputError(f"assign is {assign!r}, but method 'residuals' finds no shares to assign.")
    expect_whole(1, restarts=restarts, threads=threads)
    if isinstance(n_topics, str) and n_topics != MEASURED:
        raise InputError(f"n_topics is {n_topics!r}, expected a number or {MEASURED!r}.")
    runs: dict[str, Any] = {
        "restarts": restarts,
        "seed": seed,
        "threads": threads,
        "progress": progress,
    }
    # Each method comes with what it needs of scikit-learn, which takes seconds.
    if method == "residuals":
        from telic.specialty.discovery.by_residuals import group_by_residuals

        grouping = group_by_residuals(log, **runs)
    elif method == "lda":
        from telic.specialty.discovery.by_topics import group_by_topics

        grouping = group_by_topics(
            log,
            n_topics=n_topics,
            document=document,
            assign=assign,
            shards=shards,
            executor=executor,
            work=work,
            **runs,
        )
    else:
        from telic.specialty.discovery.by_seeds import group_by_seeds

        grouping = group_by_seeds(
            log, paths=paths, view=view, free=free, seeds=seeds, assign=assign, **runs
        )
    found = _describe(log, grouping, naming=naming, seed=seed, large=method == "residuals")
    return _ordered(method, found, grouping)


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
    grouping: Grouping,
    *,
    naming: str = "tested",
    seed: int = 0,
    large: bool = False,
) -> dict[int, Specialty]:
    """Describe clusters; `large` says that one may do half of the hospital's work.

    Everybody's work is then mostly its own, and no lift reaches `MIN_LIFT` beside that.
    """
    if (grouping.cluster < 0).all():
        return {}
    cluster = grouping.cluster
    months = _months(log, grouping.by_month)
    share, by_chance = shares_shown(
        units_of(log), cluster, grouping.n_clusters, np.random.default_rng(seed)
    )
    counts = log.user_diagnosis()
    overall = counts.sum(axis=0)
    found = {}
    for k in range(grouping.n_clusters):
        users = np.flatnonzero(cluster == k)
        if len(users) < MIN_USERS:
            continue
        own = counts[users].sum(axis=0)
        diagnoses = lifts(own, overall, log.diagnosed_patients(users))[:10]
        if not diagnoses:
            continue
        lift, work = diagnoses[0][1], own.sum() / overall.sum()
        if (_beside_others(lift, work) if large else lift) < MIN_LIFT:
            continue
        named = [(str(log.codes[d]), lift) for d, lift in diagnoses]
        nearest, names = NAMINGS[naming](log.taxonomy, cluster, k, grouping.in_view)
        listed = nearest if names else None
        kept = [
            (best[np.isin(active, users)] == k).mean()
            for active, best in months
            if np.isin(active, users).any()
        ]
        found[k] = Specialty(
            name=" / ".join(log.label(code) for code, _ in named[:3]),
            listed_code=listed,
            nearest_code=nearest,
            users=users,
            diagnoses=named,
            stability=_mean_overlap(users, grouping.restarts),
            stability_sizes=_mean_overlap(users, grouping.sizes),
            stability_months=float(np.mean(kept)),
            evidence=evidence_of(log.taxonomy, users, listed, float(share[k]), by_chance[:, k]),
        )
    return found


def _beside_others(lift: float, share: float) -> float:
    """Turn a lift into how many times as often as the others a group accesses a diagnosis.

    `share` is the group's share of all accesses.

    Examples
    --------
    >>> _beside_others(1.5, 0.5)
    3.0
    """
    others = 1 - share * lift
    return lift * (1 - share) / others if others > 0 else np.inf


def _mean_overlap(users: np.ndarray, others: list[np.ndarray]) -> float | None:
    """Jaccard overlap with the nearest cluster of each other run, on average."""
    if not others:
        return None
    best = []
    for other in others:
        inside = np.bincount(other[users] + 1, minlength=2)[1:]
        sizes = np.bincount(other + 1, minlength=len(inside) + 1)[1 : len(inside) + 1]
        best.append((inside / (sizes + len(users) - inside)).max(initial=0.0))
    return float(np.mean(best))


def _ordered(method: str, found: Mapping[int, Specialty], grouping: Grouping) -> Discovery:
    cluster = grouping.cluster
    order = sorted(found, key=lambda k: (found[k].listed_code is not None, -len(found[k].users)))
    place = np.full(max(cluster.max(), 0) + 2, -1)
    place[order] = np.arange(len(order))
    renumbered = np.where(cluster >= 0, place[cluster], -1)
    group = cluster if grouping.before_checks is None else grouping.before_checks
    other = (group >= 0) & ~np.isin(group, order)
    others = np.full(len(group), -1)
    others[other] = np.unique(group[other], return_inverse=True)[1]
    return Discovery(method, [found[k] for k in order], renumbered, grouping.details, others)
