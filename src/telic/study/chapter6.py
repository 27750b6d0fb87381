"""Chapter 6: the tables and the figure on a simulated hospital, and a real held-out discovery.

The original access logs are private. What is simulated says so; published figures stand beside
ours. Class sizes, the counts of Table 6.1 and two figures of recognition calibrated the simulator
and are marked as calibration: they are not reproduced.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from scipy import sparse

from telic.report import Report
from telic.simulate.hospital import simulate_hospital
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.access import AccessLog, read_log
from telic.specialty.discover import discover
from telic.specialty.discovery import Discovery, Specialty, lifts
from telic.specialty.explain import effect, judge
from telic.specialty.lda import GibbsLDA
from telic.specialty.pathselclus import fit_pathselclus
from telic.specialty.recognise import (
    CLASSIFIERS,
    MIN_CLASS,
    large_classes,
    present_core,
    recognise,
    with_specialty,
)

PUBLISHED_SVM_F1 = {"Table 6.7": 92.80, "Table 6.8": 94.74, "Table 6.9": 93.43}
PUBLISHED_CORE_F1 = {"Table 6.7": 87.99, "Table 6.8": 89.88, "Table 6.9": 89.70}
AREAS = ("databases", "data mining", "machine learning", "information retrieval")


class Table(NamedTuple):
    """One table of the study."""

    title: str
    columns: list[str]
    rows: list[list[Any]]


def chapter6(
    *,
    scale: float = 0.05,
    seed: int = 0,
    threads: int = 1,
    data: Path | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> tuple[Report, list[Table]]:
    """Regenerate chapter 6.

    Parameters
    ----------
    scale : float
        Size of the simulated hospital, in (0, 1]; 1 is the published size.
    seed, threads : int
    data : path, optional
        Folder with ``hin/dblp4area_*.parquet`` for the held-out discovery on real data.
    on_step : callable
        Called with the name of each step when it is done.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        simulate_hospital(path, scale=scale, seed=seed)
        log = read_log(path)
        practice = np.array(pq.read_table(path / "truth_users.parquet")["practice"].to_pylist())
        snooping = pq.read_table(path / "truth_accesses.parquet")["row"].to_numpy()
        topic = pq.read_table(path / "truth_encounters.parquet")["practice"].to_pylist()
    on_step("simulation")
    report = Report(
        "Chapter 6: de facto diagnosis specialties",
        lead=f"A simulated hospital at {scale:g} of the published size, seed {seed}.",
    )
    report.note(
        "Simulated. Table 6.1, class sizes and the recognition of section 6.2 calibrated the "
        "simulator; the other figures were not looked at when it was fixed."
    )
    tables = [_summary(log), _naive_contrast(log, seed)]
    by_topic = discover(log, seed=seed, threads=threads)
    on_step("LDA")
    tables.append(_approaches(log, by_topic.details["n_topics"], seed, threads))
    fine = discover(log, method="pathselclus", view="fine", seed=seed, threads=threads)
    on_step("PathSelClus, fine-grained view")
    general = discover(log, method="pathselclus", view="general", seed=seed, threads=threads)
    on_step("PathSelClus, general view")
    tables.append(_unlisted(log, general, "Table 6.4: PathSelClus, general view"))
    tables.append(_unlisted(log, fine, "Table 6.5: PathSelClus, fine-grained view"))
    tables.append(_unlisted(log, by_topic, "Table 6.6: LDA"))
    tables.append(_truth(practice, {"LDA": by_topic, "fine": fine, "general": general}))
    targets = [
        ("Table 6.7", _nearest(fine, practice, "Breast Cancer")),
        ("Table 6.8", _nearest(by_topic, practice, "Breast Cancer")),
        ("Table 6.9", _nearest(by_topic, practice, "Obesity")),
    ]
    for name, one in targets:
        if one is not None:
            tables.extend(_recognition(log, name, one, seed))
            on_step(name)
    tables.append(_shuffled(log, by_topic.details["n_topics"], seed, threads))
    tables.append(_alarms(log, by_topic, snooping, np.array(topic)))
    if data is not None and (data / "hin" / "dblp4area_author_label.parquet").is_file():
        tables.append(dblp_held_out(data / "hin", seed=seed, threads=threads))
        on_step("DBLP")
    for table in tables:
        report.section(table.title)
        report.table(table.columns, table.rows)
    report.section("Figure 6.1")
    report.figure(_class_sizes(log), "Users per taxonomy code, the 100 most frequent (simulated).")
    return report, tables


def dblp_held_out(folder: Path, *, seed: int = 0, threads: int = 1) -> Table:
    """Leave one research area without seeds and ask whether it is found: real data, known truth.

    Author = user, paper = patient, term = diagnosis, area = specialty. A tenth of the labelled
    authors of three areas are seeds; one cluster is free. Its F1 against the area left out stands
    beside LDA on papers (as many topics as areas, no seeds).

    Parameters
    ----------
    folder : path
        Holds ``dblp4area_author_label``, ``_paper_author`` and ``_paper_term``.
    seed, threads : int
    """

    def read(name: str) -> list[np.ndarray]:
        table = pq.read_table(folder / f"dblp4area_{name}.parquet")
        return [column.to_numpy() for column in table.columns]

    author, area = read("author_label")
    paper, writer = read("paper_author")
    termed, term = read("paper_term")
    papers, terms = np.unique(np.concatenate([paper, termed])), np.unique(term)
    order = np.argsort(author)
    author, area = author[order], area[order]
    known = np.isin(writer, author)
    opened = _links(
        np.searchsorted(author, writer[known]),
        np.searchsorted(papers, paper[known]),
        (len(author), len(papers)),
    )
    documents = _links(
        np.searchsorted(papers, termed), np.searchsorted(terms, term), (len(papers), len(terms))
    )
    paths = {"A-P-T": opened @ documents, "A-P": opened}
    model = GibbsLDA(n_topics=len(AREAS), seed=seed, threads=threads).fit(documents)
    topic = (opened @ model.transform(documents)).argmax(axis=1)
    rng = np.random.default_rng(seed)
    rows = []
    for held_out, name in enumerate(AREAS):
        others = [a for a in range(len(AREAS)) if a != held_out]
        seeds = np.full(len(author), -1)
        for k, a in enumerate(others):
            members = np.flatnonzero(area == a)
            seeds[rng.choice(members, len(members) // 10, replace=False)] = k
        fitted = fit_pathselclus(paths, seeds, n_clusters=len(AREAS), seed=seed, threads=threads)
        truth = set(np.flatnonzero(area == held_out))
        free = _f1(truth, set(np.flatnonzero(fitted.labels == len(others))))
        unseeded = max(_f1(truth, set(np.flatnonzero(topic == k))) for k in range(len(AREAS)))
        share = fitted.quality["A-P-T"] / sum(fitted.quality.values())
        rows.append([name, len(truth), f"{free:.3f}", f"{unseeded:.3f}", f"{share:.2f}"])
    return Table(
        "Held-out discovery on DBLP four-area (real data)",
        ["area left unseeded", "authors", "PathSelClus F1", "LDA F1", "share of A–P–T in Σα"],
        rows,
    )


def _summary(log: AccessLog) -> Table:
    published = [4_829_376, 291_562, 3_269, 890_812, 165, 603]
    ours = [
        len(log.access_user),
        len(log.patients),
        len(log.users),
        len(log.encounters),
        len(log.class_sizes()),
        len(log.codes),
    ]
    names = ["accesses", "patients", "providers", "encounters", "taxonomy codes", "CCS codes"]
    return Table(
        "Tables 6.1 and 6.2 (calibration)",
        ["", "simulated", "published"],
        [[n, f"{a:,}", f"{b:,}"] for n, a, b in zip(names, ours, published, strict=True)],
    )


def _naive_contrast(log: AccessLog, seed: int) -> Table:
    labels, dropped = large_classes(log.taxonomy)
    counts = log.user_diagnosis()
    published = {"Naive": (70.35, 11.30), "SVM": (97.44, 48.98)}
    rows = []
    for method, (urology, anesthesiology) in published.items():
        found = recognise(counts, labels, method=method, seed=seed)
        rows += [
            [method, name, f"{100 * found.of(name)[2]:.2f}", known]
            for name, known in (("Urology", urology), ("Anesthesiology", anesthesiology))
        ]
    return Table(
        f"Section 6.2 (calibration); {len(dropped)} classes under {MIN_CLASS} users dropped",
        ["classifier", "class", "F1 simulated", "F1 published"],
        rows,
    )


def _approaches(log: AccessLog, n_topics: int, seed: int, threads: int) -> Table:
    """Table 6.3: the topic nearest to the urologists, with either kind of document."""
    columns = {}
    urologists = log.taxonomy == "Urology"
    for name, documents in (
        ("user", log.user_diagnosis()),
        ("patient", log.patient_diagnosis()),
    ):
        model = GibbsLDA(n_topics=n_topics, seed=seed, threads=threads).fit(documents)
        topics = model.transform(documents)
        share = topics if name == "user" else log.user_patient() @ topics
        share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-12)
        excess = share[urologists].mean(axis=0) - share.mean(axis=0)
        top = np.argsort(-model.components_[int(excess.argmax())])[:10]
        columns[name] = [log.label(str(log.codes[d])) for d in top]
    return Table(
        "Table 6.3: the topic nearest to the urologists",
        ["user documents", "patient documents"],
        [list(row) for row in zip(columns["user"], columns["patient"], strict=True)],
    )


def _unlisted(log: AccessLog, found: Discovery, title: str) -> Table:
    counts = log.user_diagnosis()
    overall = np.asarray(counts.sum(axis=0)).ravel()
    rows = []
    for one in found.specialties:
        if one.listed_code is None:
            own = np.asarray(counts[one.users].sum(axis=0)).ravel()
            top = [log.label(str(log.codes[d])) for d, _ in lifts(own, overall)[:10]]
            rows.append([len(one.users), "; ".join(top), f"{one.stability:.2f}"])
    return Table(f"{title}: clusters without a listed code", ["users", "top 10", "stability"], rows)


def _truth(practice: np.ndarray, found: dict[str, Discovery]) -> Table:
    rows = []
    for name, discovery in found.items():
        for hidden in HIDDEN_SIZES:
            one = _nearest(discovery, practice, hidden)
            truth = set(np.flatnonzero(practice == hidden))
            score = _f1(truth, set(one.users)) if one else 0.0
            listed = (one.listed_code or "none") if one else "not found"
            rows.append([name, hidden, f"{score:.3f}", listed])
    return Table(
        "Hidden specialties against the simulator's truth (all users)",
        ["discovery", "hidden specialty", "F1", "listed code of the cluster"],
        rows,
    )


def _nearest(found: Discovery, practice: np.ndarray, hidden: str) -> Specialty | None:
    truth = set(np.flatnonzero(practice == hidden))
    return max(found.specialties, key=lambda one: _f1(truth, set(one.users)), default=None)


def _f1(truth: set, found: set) -> float:
    return 2 * len(truth & found) / max(len(truth) + len(found), 1)


def _recognition(log: AccessLog, name: str, one: Specialty, seed: int) -> Iterator[Table]:
    labels = with_specialty(log.taxonomy, one.users, "de facto")
    core = present_core(labels)
    labels = np.where(np.isin(labels, [*core, "de facto"]), labels, "")
    counts = log.user_diagnosis()
    results = {c: recognise(counts, labels, method=c, seed=seed) for c in CLASSIFIERS[1:]}
    rows = []
    for label in ["de facto", "mean of core classes", *core]:
        row: list[Any] = [label]
        for found in results.values():
            mean = label.startswith("mean")
            row += [f"{100 * v:.2f}" for v in (found.mean_of(core) if mean else found.of(label))]
        rows.append(row)
    columns = ["class", *(f"{c} {m}" for c in results for m in ("P", "R", "F1"))]
    yield Table(f"{name}: recognition of “{one.name}” ({len(one.users)} users)", columns, rows)
    rows = []
    for c, found in results.items():
        tests = found.compare("de facto", core)
        rows.append(
            [c, f"{100 * found.macro_f1(core):.2f}", *(f"{t.p_value:.4f}" for t in tests.values())]
        )
    published = f"published SVM F1 {PUBLISHED_SVM_F1[name]}, core {PUBLISHED_CORE_F1[name]}"
    yield Table(
        f"{name}: core macro-F1 and p-values of the difference ({published})",
        ["classifier", "core macro-F1", *tests],
        rows,
    )


def _shuffled(log: AccessLog, n_topics: int, seed: int, threads: int) -> Table:
    """How well clusters found in shuffled data are recognised: the circular part of the scores."""
    rng = np.random.default_rng(seed)
    mixed = replace(log, access_encounter=rng.permutation(log.access_encounter))
    topics = GibbsLDA(n_topics=n_topics, seed=seed, threads=threads).fit_transform(
        mixed.patient_diagnosis()
    )
    cluster = (mixed.user_patient() @ topics).argmax(axis=1)
    concentrated = discover(mixed, n_topics=n_topics, restarts=1, seed=seed, threads=threads)
    counts = mixed.user_diagnosis()
    rows = []
    for k in np.argsort(-np.bincount(cluster))[:3]:
        users = np.flatnonzero(cluster == k)
        labels = with_specialty(mixed.taxonomy, users, "cluster")
        f1 = 100 * recognise(counts, labels, seed=seed).of("cluster")[2]
        rows.append([f"largest share only, {len(users)} users", f"{f1:.2f}"])
    rows.append(
        [
            "users in clusters of concentrated practice",
            f"{sum(len(one.users) for one in concentrated.specialties)} users",
        ]
    )
    return Table(
        "Control: clusters found in shuffled data (every access moved to a random encounter)",
        ["cluster", "SVM F1"],
        rows,
    )


def _alarms(log: AccessLog, found: Discovery, snooping: np.ndarray, topic: np.ndarray) -> Table:
    alerts = judge(log, found)
    counted = effect(log, found, alerts, snooping)
    # Encounters are numbered in sorted order, which the simulator's ids keep.
    planted = np.isin(topic[log.access_encounter], list(HIDDEN_SIZES))
    unlisted = [k for k, one in enumerate(found.specialties) if one.listed_code is None]
    own = planted & np.isin(alerts.specialty, unlisted) & ~np.isin(log.access_row, snooping)
    before, after = int((alerts.raised & own).sum()), int((alerts.explained & own).sum())
    recall = [(counted.caught_without or 0), (counted.caught_with or 0)]
    total = max(counted.snooping or 0, 1)
    by_user = counted.unlisted_explained / max(counted.unlisted_alerts, 1)
    return Table(
        "Alarms with and without de facto specialties",
        ["", "value"],
        [
            ["alarms", f"{counted.alerts:,}"],
            ["explained", f"{counted.explained:,}"],
            ["alarms of users of unlisted specialties", f"{counted.unlisted_alerts:,}"],
            ["of these explained", f"{by_user:.1%}"],
            ["alarms of those users on the hidden practices' encounters", f"{before:,}"],
            ["of these explained", f"{after / max(before, 1):.1%}"],
            ["planted snooping", f"{counted.snooping:,}"],
            ["snooping in the queue of equal length, without", f"{recall[0] / total:.1%}"],
            ["snooping in the queue of equal length, with", f"{recall[1] / total:.1%}"],
        ],
    )


def _class_sizes(log: AccessLog) -> Figure:
    sizes = list(log.class_sizes().values())[:100]
    figure = Figure(figsize=(7, 3))
    axes = figure.subplots()
    axes.bar(np.arange(1, len(sizes) + 1), sizes, color="#2456c5")
    axes.set_yscale("log")
    axes.set_xlabel("rank of the taxonomy code")
    axes.set_ylabel("users")
    return figure


def _links(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    matrix = sparse.coo_array((np.ones(len(row)), (row, column)), shape=shape).tocsr()
    matrix.data[:] = 1
    return matrix
