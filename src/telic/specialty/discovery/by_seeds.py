"""Group users by seeded clustering over meta-paths: listed codes as seeds, and free clusters."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from telic.errors import InputError
from telic.specialty.discovery.pathselclus import Clustering, fit_pathselclus, path_contrast
from telic.specialty.discovery.result import Grouping
from telic.specialty.log.access_log import AccessLog

PATHS = ("U-P-D", "U-P", "U-P-U", "U-P-D-P-U")
"""Half-paths, and the full paths of section 6.4.2."""
SEED_CLASS = 10
"""Codes that at least this many users of the hospital declare seed a cluster."""
REPRESENTATIVE = 0.5
"""Share of a code's users who are its seeds: those nearest to the code's mean diagnosis profile."""
MIN_THETA = 0.25
"""Least share of a cluster's users in it."""
SCREENED = 10
"""Short runs that are screened."""


def group_by_seeds(
    log: AccessLog,
    *,
    paths: Sequence[str],
    view: str | None,
    free: int,
    restarts: int,
    seed: int,
    threads: int,
    progress: Callable[[str], None],
    seeds: str = "representative",
    assign: str = "concentrated",
) -> Grouping:
    """Cluster users by PathSelClus; the options are those of `discover`.

    Other sizes, for the stability, are one free cluster fewer and one more.
    """
    if free < 1:
        raise InputError(f"free is {free}, expected at least 1 cluster without seeds.")
    view = view or ("fine" if log.fine is not None else "general")
    patient, diagnosis = links_of(log, view)
    active = np.flatnonzero(diagnosis.sum(axis=1) > 0)
    if not active.size:
        raise InputError(
            f"nobody has a diagnosis in the {view} view, so PathSelClus has nothing to cluster. "
            "Use --view general, or the method lda."
            if view == "fine"
            else "nobody has a diagnosis, so PathSelClus has nothing to cluster."
        )
    codes = sorted(code for code, size in log.class_sizes().items() if size >= SEED_CLASS)
    if not codes:
        raise InputError(
            f"no declared specialty has {SEED_CLASS} users, so PathSelClus has nothing to seed. "
            "Use the method lda, which needs no codes."
        )
    declared = log.taxonomy[active]
    share = REPRESENTATIVE if seeds == "representative" else 1.0
    seeded = representatives(declared, diagnosis[active], codes, share=share)
    least = MIN_THETA if assign == "concentrated" else 0.0
    links = {name: path_of(name, patient[active], diagnosis[active]) for name in paths}

    def fit(free: int, finished: int) -> Clustering:
        return fit_pathselclus(
            links,
            seeded,
            n_clusters=len(codes) + free,
            restarts=max(SCREENED, finished),
            finished=finished,
            seed=seed,
            threads=threads,
            progress=lambda _: progress(f"PathSelClus with {free} free clusters"),
        )

    def members(theta: np.ndarray) -> np.ndarray:
        cluster = np.full(len(log.users), -1)
        cluster[active] = np.where(theta.max(axis=1) >= least, theta.argmax(axis=1), -1)
        return cluster

    model = fit(free, max(2, restarts))
    cluster = members(model.theta)
    # Month by month, a user is compared with the clusters' diagnosis profiles of the whole year.
    counts = log.user_diagnosis()
    profile = np.eye(len(codes) + free + 1)[cluster][:, :-1].T @ counts + 0.5
    log_profile = np.log(profile / profile.sum(axis=1, keepdims=True))
    # Paths of one object say nothing, and have a quality of 0.
    total = sum(model.quality.values()) or 1.0
    sizes = [n for n in (free - 1, free + 1) if n > 0 and restarts > 1]
    return Grouping(
        cluster,
        len(codes) + free,
        restarts=[members(theta) for theta in model.theta_of_restarts[1:]] if restarts > 1 else [],
        sizes=[members(fit(n, 1).theta) for n in sizes],
        by_month=lambda rows: log.user_diagnosis(rows) @ log_profile.T,
        details={
            "view": view,
            "objective": model.objective,
            "seeded_codes": codes,
            "users_in_view": len(active),
            "path_share": {m: q / total for m, q in model.quality.items()},
            "path_contrast": path_contrast(links, model, seed=seed),
        },
        in_view=active,
    )


def representatives(
    taxonomy: np.ndarray,
    counts: sparse.csr_array,
    codes: Sequence[str],
    *,
    share: float = REPRESENTATIVE,
) -> np.ndarray:
    """Choose the seeds: of each code's users the share (half) nearest to the code's mean profile.

    All of them would pin users who declare the code and practise something else, among them those
    of the specialties to be found. Nearness is the Hellinger affinity of diagnosis shares. A seed
    gets the place of its code in `codes`, anybody else −1.

    Examples
    --------
    >>> counts = sparse.csr_array([[9, 1], [8, 2], [1, 9], [0, 5]])
    >>> representatives(np.array(["a", "a", "a", "b"]), counts, ["a", "b"]).tolist()
    [0, 0, -1, 1]
    """
    shares = normalize(sparse.csr_matrix(counts, dtype=float), norm="l1").sqrt()
    seeds = np.full(len(taxonomy), -1)
    for k, code in enumerate(codes):
        users = np.flatnonzero(taxonomy == code)
        affinity = shares[users] @ np.asarray(shares[users].sum(axis=0)).ravel()
        chosen = np.argsort(-affinity, kind="stable")[: int(np.ceil(share * len(users)))]
        seeds[users[chosen]] = k
    return seeds


def links_of(log: AccessLog, view: str) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return U–P and U–P–D of a view, "fine" or "general"."""
    if view == "fine":
        if log.fine is None or log.fine_patient is None:
            raise InputError(
                "the log has no access_diagnoses table, so there is no fine-grained view. "
                "Use the general view."
            )
        return log.fine_patient, log.fine
    if view == "general":
        patient = log.user_patient()
        return patient, patient @ log.patient_diagnosis()
    raise InputError(f"view is {view!r}, expected 'fine' or 'general'.")


def path_of(name: str, patient: sparse.csr_array, diagnosis: sparse.csr_array) -> sparse.csr_array:
    """Return one of `PATHS`, given U–P and U–P–D."""
    if name not in PATHS:
        raise InputError(f"paths names {name!r}, expected some of {', '.join(PATHS)}.")
    half = sparse.csr_array(diagnosis if name.startswith("U-P-D") else patient)
    if not name.endswith("-U"):
        return half
    half = half.astype(np.int64)  # of two users who saw a diagnosis 50,000 times, 32 bits overflow
    return half @ half.T
