"""Recognition of what was found, beside its control: clusters of nothing, from shuffled data.

A found specialty is recognised by the diagnoses it was found in, so some F1 comes from looking for
it. How much is measured where nothing is left to find: every access is moved to a random encounter,
the users of largest share of a topic are recognised alike (whatever the discovery's method).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from telic.data.object_storage import Place, refuse_remote
from telic.scale import Executor
from telic.specialty.discovery.by_topics import SAMPLE, mean_share
from telic.specialty.discovery.gibbs_lda import GibbsLDA
from telic.specialty.discovery.result import Discovery
from telic.specialty.log.access_log import AccessLog
from telic.specialty.recognition.classifiers import CHOSEN
from telic.specialty.recognition.recognise import (
    CORE_CLASSES,
    FEWEST,
    MIN_CLASS,
    Recognition,
    classes_beside,
    in_steps,
    large_classes,
    recognise,
    users_needed,
    with_specialty,
)
from telic.specialty.small_cells import SMALL_CELL, shown

CLUSTERS = 3
"""Clusters of nothing that are recognised for each specialty; their mean F1 is shown."""
N_TOPICS = 30
"""Topics where the discovery does not say how many it used (the dissertation's choice)."""
DE_FACTO = "de facto"
"""Name of the specialty's class in its recognition."""


@dataclass(frozen=True, eq=False)
class Shuffled:
    """A log's users after every access was moved to a random encounter."""

    users: np.ndarray
    """Users with accesses, as indices into `AccessLog.users`."""
    counts: sparse.csr_array
    """Accesses per user of the log and diagnosis."""
    share: np.ndarray
    """Mean topic shares of the patients of each of `users`, shape (len(users), n_topics)."""

    def clusters(self, size: int) -> list[np.ndarray]:
        """Clusters of nothing with `size` users each: those of largest share of a topic.

        The topics are those whose cluster by largest share, as discovery forms it, is nearest in
        size. Filling or cutting it to `size` users makes the F1 comparable, and higher than that
        of the cluster itself: the users of largest share are the easiest to tell apart.
        """
        found = np.bincount(self.share.argmax(axis=1), minlength=self.share.shape[1])
        distance = np.abs(np.log(np.maximum(found, 0.5) / size))
        topics = np.argsort(distance, kind="stable")[:CLUSTERS]
        return [self.users[np.argsort(-self.share[:, k], kind="stable")[:size]] for k in topics]

    def f1(
        self,
        taxonomy: np.ndarray,
        size: int,
        core: list[str],
        *,
        method: str,
        pipeline: str = CHOSEN,
        seed: int = 0,
        executor: Executor | None = None,
        work: Path | None = None,
    ) -> tuple[float | None, list[str]]:
        """Mean F1 of clusters of nothing with `size` users beside the classes `core`.

        A cluster takes users who declare a code from its class. One that leaves fewer than four is
        not told from that class, and a cluster that leaves no class is not recognised.

        Parameters
        ----------
        taxonomy : array of str
            Declared specialty of each user of the log.
        size : int
        core : list of str
            Classes that the specialty was recognised beside. A member who declares one counts for
            the cluster only, as in `with_specialty`.
        method, pipeline : str
            As in `recognise`: a pipeline is chosen here in the same way.
        seed, executor, work
            As in `recognise`.

        Returns
        -------
        f1 : float
            None if no cluster leaves a class.
        beside : list of str
            Classes that every cluster left.
        """
        seen = np.isin(np.arange(len(taxonomy)), self.users)
        scores, beside = [], core
        for number, users in enumerate(self.clusters(size)):
            labels = with_specialty(taxonomy, users, DE_FACTO, core)
            kept = [name for name in core if ((labels == name) & seen).sum() >= 4]
            beside = [name for name in beside if name in kept]
            if not kept:
                continue
            labels = np.where(np.isin(labels, [*kept, DE_FACTO]) & seen, labels, "")
            found = recognise(
                self.counts,
                labels,
                method=method,
                pipeline=pipeline,
                every=False,
                seed=seed,
                executor=executor,
                work=work and work / f"shuffled-{number}",
            )
            scores.append(found.of(DE_FACTO)[2])
        return float(np.mean(scores)) if scores else None, beside


def shuffle(
    log: AccessLog, *, n_topics: int = N_TOPICS, fine: bool = False, seed: int = 0, threads: int = 1
) -> Shuffled:
    """Move every access to a random encounter, and average topics per user again.

    Patients keep their diagnoses, so topics are those of discovery; they are fitted on at most
    `telic.specialty.discovery.by_topics.SAMPLE` patients, which is enough to order users by.

    Parameters
    ----------
    log : AccessLog
    n_topics : int
    fine : bool
        Keep as many accesses of a user as the fine-grained view has, with one diagnosis each.
    seed, threads : int

    Examples
    --------
    >>> import tempfile
    >>> from telic.simulate.hospital import simulate_hospital
    >>> from telic.specialty.log.log_files import read_log
    >>> folder = tempfile.mkdtemp() + "/log"
    >>> simulate_hospital(folder, scale=0.002)
    >>> [len(users) for users in shuffle(read_log(folder), n_topics=5).clusters(20)]
    [20, 20, 20]
    """
    rng = np.random.default_rng(seed)
    documents = log.patient_diagnosis()
    sample = np.sort(rng.permutation(documents.shape[0])[:SAMPLE])
    model = GibbsLDA(n_topics=n_topics, random_state=seed, n_jobs=threads).fit(documents[sample])
    mixed = replace(log, access_encounter=rng.permutation(log.access_encounter))
    if fine and log.fine is not None:
        rows, counts = _thinned(mixed, log.fine.sum(axis=1), rng)
    else:
        rows, counts = np.arange(len(log.access_user)), mixed.user_diagnosis()
    users = np.unique(mixed.access_user[rows])
    opened = mixed.user_patient(rows)[users]
    return Shuffled(users, counts, mean_share(opened, model.transform(documents)))


def _thinned(
    log: AccessLog, number: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, sparse.csr_array]:
    """Up to `number` random accesses of each user, and one random diagnosis of each."""
    order = rng.permutation(len(log.access_user))
    order = order[np.argsort(log.access_user[order], kind="stable")]
    user = log.access_user[order]
    place = np.arange(len(user)) - np.searchsorted(user, user)
    rows = order[place < number[user]]
    start = log.diagnosis.indptr[log.access_encounter[rows]]
    length = np.diff(log.diagnosis.indptr)[log.access_encounter[rows]]
    code = log.diagnosis.indices[start + (rng.random(len(rows)) * length).astype(np.int64)]
    counts = sparse.coo_array(
        (np.ones(len(rows), dtype=np.int32), (log.access_user[rows], code)),
        shape=(len(log.users), len(log.codes)),
    )
    return rows, sparse.csr_array(counts)


def recognition_facts(
    discovery: Discovery, recognitions: Mapping[tuple[int, str], Recognition]
) -> list[dict[str, Any]]:
    """Say how well each specialty was recognised, by classifier, as JSON takes it.

    Parameters
    ----------
    discovery : Discovery
    recognitions : dict
        What `recognise_found` returned.
    """
    facts = []
    for (k, classifier), one in recognitions.items():
        core = [name for name in one.classes if name != DE_FACTO]
        precision, recall, f1 = (float(v) for v in one.shown(DE_FACTO))
        size = int(one.support[one.classes.index(DE_FACTO)])
        facts.append(
            {
                "specialty": discovery.specialties[k].name,
                "users": size if size >= SMALL_CELL else None,
                "classifier": classifier,
                "precision": precision,
                "recall": recall,
                "f1": f1,
                "f1_interval": one.interval(DE_FACTO),
                "users_needed": users_needed(f1),
                "beside": core,
                "shuffled_f1": one.shuffled_f1,
                "core_f1": float(one.mean_of(core)[2]),
                "core_macro_f1": one.macro_f1(core),
                "p_values": {t: test.p_value for t, test in one.compare(DE_FACTO, core).items()},
                "pipelines": [score._asdict() for score in one.pipeline_scores(DE_FACTO, core)],
            }
        )
    return facts


def recognise_found(
    log: AccessLog,
    discovery: Discovery,
    *,
    methods: tuple[str, ...] = ("SVM",),
    pipeline: str = CHOSEN,
    seed: int = 0,
    threads: int = 1,
    executor: Executor | None = None,
    work: str | Place | None = None,
) -> tuple[dict[tuple[int, str], Recognition], list[str]]:
    """Recognise each specialty without a listed code beside the core classes and beside nothing.

    Users who accessed nothing in this log count for no class: nothing could tell them apart.

    Parameters
    ----------
    log : AccessLog
    discovery : Discovery
    methods : tuple of str
        Some of `telic.specialty.recognition.classifiers.CLASSIFIERS`.
    pipeline : str
        As in `recognise`, for the specialty and its control alike.
    seed, threads : int
    executor, work
        As in `recognise`; the folder holds one for each specialty.

    Returns
    -------
    recognitions : dict
        By place in ``discovery.specialties`` and method; the specialty is class `DE_FACTO`, and
        `Recognition.shuffled_f1` its control.
    notes : list of str
        Which core classes and specialties are left out, and why.
    """
    if work is not None:
        refuse_remote(work, "work", "the users' accesses are mapped")
    counts = log.user_diagnosis()
    seen = np.bincount(log.access_user, minlength=len(log.users)) > 0
    taxonomy = np.where(seen, log.taxonomy, "")
    control: Shuffled | None = None
    results = {}
    notes: dict[str, None] = {}  # each once, in order
    for k, one in enumerate(discovery.specialties):
        if one.listed_code is not None:
            continue
        users = one.users[seen[one.users]]
        core = classes_beside(taxonomy, users)
        if len(users) < FEWEST:
            notes[_too_few(one.name)] = None
            continue
        if not core:
            notes[NO_CLASS] = None
            continue
        notes |= dict.fromkeys(_beside_words(taxonomy, core))
        labels = with_specialty(taxonomy, users, DE_FACTO, core)
        if control is None:
            n_topics = discovery.details.get("n_topics", N_TOPICS)
            control = shuffle(log, n_topics=n_topics, seed=seed, threads=threads)
        for method in methods:
            options: dict[str, Any] = {"method": method, "pipeline": pipeline, "seed": seed}
            here = None if work is None else Path(str(work)) / f"specialty-{k}"
            options |= {"executor": executor, "work": here}
            found = recognise(counts, labels, **options)
            nothing, beside = control.f1(taxonomy, len(users), core, **options)
            nothing = None if nothing is None else float(in_steps(np.array(nothing), len(users)))
            results[k, method] = replace(found, shuffled_f1=nothing)
            if len(beside) < len(core):
                notes[_easier(one.name, nothing, beside, core)] = None
    return results, list(notes)


NO_CLASS = (
    "recognition: a specialty is told from users who declare a code, and no code is declared by as "
    f"many as {FEWEST} users outside the specialty. Add declared codes (providers: taxonomy)."
)


def _easier(name: str, nothing: float | None, beside: list[str], core: list[str]) -> str:
    """Say that the control of a specialty had fewer classes to be told from, or none."""
    if nothing is None:
        return (
            f"{name}: no F1 in shuffled data: as many users found there take so many who declare a "
            "code that none is left to tell them from"
        )
    return (
        f"{name}: in shuffled data told from {len(beside)} of the {len(core)} codes at times, as "
        "users found there declare the others: an F1 is easier to reach there"
    )


def _too_few(name: str) -> str:
    return (
        f"{name}: not recognised: {FEWEST} users are needed to measure anything, and about "
        f"{users_needed(0.8)} to know an F1 of .8 within ±.1"
    )


def _beside_words(taxonomy: np.ndarray, classes: list[str]) -> list[str]:
    """Say which classes a specialty is recognised beside, where they are not all core classes."""
    if any(name not in CORE_CLASSES for name in classes):
        return [
            "recognition: fewer than two of the dissertation's core classes have "
            f"{MIN_CLASS} users, so specialties are told from the codes that the log declares most "
            f"often: {', '.join(classes)}"
        ]
    dropped = large_classes(taxonomy)[1]
    small = [f"{c} ({shown(dropped[c])} users)" for c in CORE_CLASSES if c in dropped]
    return [
        f"recognition: {len(small)} core classes have fewer than {MIN_CLASS} users and are "
        f"dropped: {', '.join(small)}"
    ][: len(small)]
