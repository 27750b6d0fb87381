"""Chapter 6: the tables and the figure on a simulated hospital, and a real held-out discovery.

The original access logs are private. What is simulated says so; published figures stand beside
ours. Class sizes, the counts of Table 6.1 and two figures of recognition calibrated the simulator
and are marked as calibration: they are not reproduced.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import telic
from telic.data import atomic_path
from telic.errors import InputError
from telic.report import Report
from telic.specialty.access import AccessLog
from telic.specialty.control import DE_FACTO, Shuffled, shuffle
from telic.specialty.discover import discover
from telic.specialty.discovery import Discovery, Specialty, as_share, lifts, read_discovery
from telic.specialty.lda import GibbsLDA
from telic.specialty.pipelines import CHOSEN, CLASSIFIERS, PRINTED
from telic.specialty.recognise import present_core, recognise, with_specialty
from telic.study.chapter6_calibration import naive_contrast, summary
from telic.study.chapter6_dblp import dblp_held_out
from telic.study.chapter6_truth import (
    SNOOPING_COLUMNS,
    Alarms,
    Table,
    Truth,
    against_truth,
    alarms,
    nearest,
    simulated,
    snooping_rows,
)

PUBLISHED = {
    "Table 6.7": (
        [
            (86.67, 57.14, 68.87),
            (89.13, 64.16, 74.61),
            (77.00, 79.09, 78.03),
            (92.50, 93.11, 92.80),
        ],
        [
            (67.37, 58.07, 62.38),
            (72.08, 67.36, 69.64),
            (72.30, 74.02, 73.15),
            (89.30, 86.72, 87.99),
        ],
    ),
    "Table 6.8": (
        [
            (95.12, 57.35, 71.56),
            (91.11, 60.29, 72.57),
            (82.58, 80.88, 81.69),
            (96.92, 92.65, 94.74),
        ],
        [
            (66.42, 53.21, 59.08),
            (71.28, 63.18, 66.99),
            (75.45, 76.21, 75.83),
            (90.84, 88.93, 89.88),
        ],
    ),
    "Table 6.9": (
        [
            (100.0, 40.41, 57.56),
            (83.22, 56.98, 67.64),
            (75.01, 82.12, 78.40),
            (92.85, 94.01, 93.43),
        ],
        [
            (63.18, 45.62, 52.98),
            (75.62, 53.51, 62.68),
            (77.12, 80.36, 78.70),
            (90.23, 89.19, 89.70),
        ],
    ),
}
"""Precision, recall and F1 of the specialty and of the mean of the core classes, by classifier."""


class Kept:
    """Finished steps in a folder, so that a study that was stopped goes on where it was.

    The settings are kept beside them, and a hash of telic's sources: what other settings or other
    code made is refused.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], on_step: Callable[[str], None]):
        self.folder, self._on_step = folder, on_step
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "settings.json"
        settings = {**settings, "code": sources()}
        if file.exists() and json.loads(file.read_text(encoding="utf-8")) != settings:
            raise InputError(
                f"{folder}: holds a study with other settings or made by other code. "
                "Choose another folder."
            )
        _write_json(file, settings)

    def tables(self, name: str, make: Callable[[], list[Table]]) -> list[Table]:
        """Tables of a step, made unless they are there."""
        self._on_step(name)
        file = self.folder / f"{name}.json"
        if not file.exists():
            _write_json(file, [table._asdict() for table in make()])
        return [Table(**one) for one in json.loads(file.read_text(encoding="utf-8"))]

    def discovery(self, name: str, log: AccessLog, **options: Any) -> Discovery:
        """What `discover` finds, looked for unless it is there."""
        self._on_step(name)
        file = self.folder / f"{name}.json"
        if not file.exists():
            _write_json(file, discover(log, **options).as_json(log))
        return read_discovery(file, log)


def sources() -> str:
    """Hash of telic's Python files."""
    digest = hashlib.sha256()
    for file in sorted(Path(telic.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _write_json(file: Path, content: Any) -> None:
    with atomic_path(file) as temporary:
        temporary.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def chapter6(
    *,
    scale: float = 1.0,
    seed: int = 0,
    threads: int = 1,
    data: Path | None = None,
    work: Path | None = None,
    pipeline: str = CHOSEN,
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
    work : path, optional
        Keeps finished steps, so that the same command goes on after an interruption.
    pipeline : {"chosen", "printed"}
        How the classifiers of Tables 6.7 to 6.9 are set, as in
        `telic.specialty.recognise.recognise`.
    on_step : callable
        Called with the name of each step when it begins.

    Raises
    ------
    InputError
        If `pipeline` is neither, or `work` holds a study with other settings or made by other
        code.
    """
    if pipeline not in (CHOSEN, PRINTED):
        raise InputError(f"pipeline is {pipeline!r}, expected {CHOSEN!r} or {PRINTED!r}.")
    with tempfile.TemporaryDirectory() as folder:
        settings = {"scale": scale, "seed": seed, "pipeline": pipeline}
        kept = Kept(work or Path(folder), settings, on_step)
        on_step("simulation")
        log, truth = simulated(kept.folder / "log", scale=scale, seed=seed)
        tables = _tables(kept, log, truth, seed, threads, data, pipeline)
    size = "of the" if scale == 1 else f"at {scale:g} of the"
    report = Report(
        "Chapter 6: de facto diagnosis specialties",
        lead=f"A simulated hospital {size} published size, seed {seed}.",
    )
    report.note(
        "Simulated. Table 6.1, class sizes and the recognition of section 6.2 calibrated the "
        "simulator; the other figures were not looked at when it was fixed."
    )
    for table in tables:
        report.section(table.title)
        report.table(table.columns, table.rows)
    report.section("Figure 6.1: users per taxonomy code (simulated)")
    sizes = list(log.class_sizes().values())[:100]
    report.figure(_class_sizes(sizes), "Users per taxonomy code, the 100 most frequent.")
    shown = [rank for rank in (1, 2, 5, 10, 20, 50, 100) if rank <= len(sizes)]
    report.table(["rank of the taxonomy code", "users"], [[r, sizes[r - 1]] for r in shown])
    return report, tables


def _tables(
    kept: Kept,
    log: AccessLog,
    truth: Truth,
    seed: int,
    threads: int,
    data: Path | None,
    pipeline: str,
) -> list[Table]:
    common = {"seed": seed, "threads": threads}
    tables = kept.tables("section-6.2", lambda: [summary(log), naive_contrast(log, seed)])
    topics = kept.discovery("lda", log, **common)
    n_topics = topics.details["n_topics"]
    tables += kept.tables("table-6.3", lambda: [_approaches(log, n_topics, seed, threads)])
    seeded = {"method": "pathselclus", **common}
    fine = kept.discovery("pathselclus-fine", log, view="fine", **seeded)
    general = kept.discovery("pathselclus-general", log, view="general", **seeded)
    tables += [
        _unlisted(log, general, "Table 6.4: PathSelClus, general view"),
        _unlisted(log, fine, "Table 6.5: PathSelClus, fine-grained view"),
        _unlisted(log, topics, "Table 6.6: LDA"),
    ]
    found = {"LDA": topics, "PathSelClus, fine": fine, "PathSelClus, general": general}
    tables.append(against_truth(log, truth, found))
    tables.append(_paths_table({"fine": fine, "general": general}))
    targets = [
        ("Table 6.7", fine, "Breast Cancer"),
        ("Table 6.8", topics, "Breast Cancer"),
        ("Table 6.9", topics, "Obesity"),
    ]

    @cache
    def mixed(fine: bool) -> Shuffled:
        return shuffle(log, n_topics=n_topics, fine=fine, **common)

    for name, discovery, hidden in targets:
        one, _ = nearest(discovery, truth, hidden)
        # Table 6.7 is on the fine-grained view's users and diagnoses.
        view = discovery is fine
        if one is not None:
            tables += kept.tables(
                name.lower().replace(" ", "-"),
                partial(
                    _recognition,
                    log,
                    partial(mixed, view),
                    name,
                    one,
                    fine=view,
                    pipeline=pipeline,
                    seed=seed,
                ),
            )
    tables += kept.tables(
        "shuffled",
        lambda: [
            _shuffled(
                log, mixed(False), n_topics=n_topics, pipeline=pipeline, seed=seed, threads=threads
            )
        ],
    )
    tables += kept.tables("alarms", lambda: _alarms(alarms(log, topics, truth)))
    if data is not None and (data / "hin" / "dblp4area_author_label.parquet").is_file():
        dblp = partial(dblp_held_out, data / "hin", **common)
        tables += kept.tables("dblp", lambda: [dblp()])
    return tables


def _paths_table(found: dict[str, Discovery]) -> Table:
    rows = [
        [view, one.details["users_in_view"], path, f"{share:.2f}", f"{contrast:.2f}"]
        for view, one in found.items()
        for path, share in one.details["path_share"].items()
        for contrast in [one.details["path_contrast"][path]]
    ]
    return Table(
        "PathSelClus: path quality α, and α against a copy with permuted rows (θ held fixed)",
        ["view", "users in view", "path", "share of Σα", "against permuted"],
        rows,
    )


def _approaches(log: AccessLog, n_topics: int, seed: int, threads: int) -> Table:
    """Table 6.3: the topic nearest to the urologists, with either kind of document."""
    columns = {}
    urologists = log.taxonomy == "Urology"
    for name, documents in (
        ("user", log.user_diagnosis().sign()),
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
            patients = log.diagnosed_patients(one.users)
            top = [log.label(str(log.codes[d])) for d, _ in lifts(own, overall, patients)[:10]]
            stable = [one.stability, one.stability_sizes, one.stability_months]
            rows.append([len(one.users), "; ".join(top), *map(as_share, stable)])
    columns = ["users", "top 10", "stability", "other sizes", "by month"]
    return Table(f"{title}: clusters without a listed code", columns, rows)


def _recognition(
    log: AccessLog,
    mixed: Callable[[], Shuffled],
    name: str,
    one: Specialty,
    *,
    fine: bool,
    pipeline: str,
    seed: int,
) -> list[Table]:
    counts = log.fine if fine and log.fine is not None else log.user_diagnosis()
    labels = with_specialty(log.taxonomy, one.users, DE_FACTO)
    core = present_core(labels)
    seen = np.asarray(counts.sum(axis=1)).ravel() > 0
    labels = np.where(np.isin(labels, [*core, DE_FACTO]) & seen, labels, "")
    # A core class may be small in the fine-grained view, but is kept: the tables have all twelve.
    core = [c for c in core if (labels == c).sum() >= 4]
    options: dict[str, Any] = {"pipeline": pipeline, "seed": seed}
    results = {c: recognise(counts, labels, method=c, **options) for c in CLASSIFIERS[1:]}
    specialty, mean = PUBLISHED[name]
    rows = [
        _scores(DE_FACTO, [100 * found.of(DE_FACTO) for found in results.values()]),
        _scores("– published", specialty),
        _scores("mean of core classes", [100 * found.mean_of(core) for found in results.values()]),
        _scores("– published", mean),
        *(_scores(label, [100 * one.of(label) for one in results.values()]) for label in core),
    ]
    size = int((labels == DE_FACTO).sum())
    shuffled = mixed()
    nothing = [shuffled.f1(log.taxonomy, size, core, method=c, **options) for c in results]
    rows.insert(2, ["as many users in shuffled data, F1", *(f"{100 * f1:.1f}" for f1 in nothing)])
    title = f"{name}: recognition of “{one.name}” ({len(one.users)} users)"
    scores = Table(title, ["precision / recall / F1", *results], rows)
    rows = []
    for c, found in results.items():
        tests = found.compare(DE_FACTO, core)
        rows.append([c, f"{100 * found.macro_f1(core):.2f}", *(t.p_text() for t in tests.values())])
    differences = Table(
        f"{name}: core macro-F1 and p-values of the difference",
        ["classifier", "core macro-F1", *tests],
        rows,
    )
    rows = [
        [
            c,
            score.pipeline,
            *(f"{100 * f1:.1f}" for f1 in (score.f1, score.core_f1, score.core_macro_f1)),
            ", ".join(score.chosen_in) or "–",
        ]
        for c, found in results.items()
        for score in found.pipeline_scores(DE_FACTO, core)
    ]
    columns = ["classifier", "pipeline", "F1 de facto", "F1 core", "core macro-F1", "chosen in"]
    return [scores, differences, Table(f"{name}: F1 by pipeline", columns, rows)]


def _scores(label: str, measured: Iterable[Iterable[float]]) -> list[str]:
    return [label, *(" / ".join(f"{v:.1f}" for v in prf) for prf in measured)]


def _shuffled(
    log: AccessLog, mixed: Shuffled, *, n_topics: int, pipeline: str, seed: int, threads: int
) -> Table:
    """How well clusters by largest share alone are recognised in shuffled data, by their size."""
    rng = np.random.default_rng(seed)
    concentrated = discover(
        replace(log, access_encounter=rng.permutation(log.access_encounter)),
        n_topics=n_topics,
        restarts=1,
        seed=seed,
        threads=threads,
    )
    core = present_core(log.taxonomy)
    rows = []
    for size in (20, 50, 100, 200, 400):
        f1 = mixed.f1(log.taxonomy, size, core, method="SVM", pipeline=pipeline, seed=seed)
        rows.append([f"largest share of a topic, {size} users", f"{100 * f1:.1f}"])
    found = sum(len(one.users) for one in concentrated.specialties)
    rows.append(["users in clusters of concentrated practice", f"{found} users"])
    return Table(
        "Control: clusters found in shuffled data (every access moved to a random encounter)",
        ["cluster", "SVM F1"],
        rows,
    )


def _alarms(counted: Alarms) -> list[Table]:
    by_user = counted.effect.unlisted_explained / max(counted.effect.unlisted_alerts, 1)
    found = Table(
        "Alarms with and without de facto specialties",
        ["", "value"],
        [
            ["alarms", f"{counted.effect.alerts:,}"],
            ["explained", f"{counted.effect.explained:,}"],
            ["alarms of users of unlisted specialties", f"{counted.effect.unlisted_alerts:,}"],
            ["of these explained", f"{by_user:.1%}"],
            [
                "planted: alarms of true hidden users, found or missed, on their encounters",
                f"{counted.planted:,}",
            ],
            ["of these explained", f"{counted.planted_explained / max(counted.planted, 1):.1%}"],
        ],
    )
    title = "Planted snooping in queues of equal length, without and with de facto specialties"
    return [found, Table(title, SNOOPING_COLUMNS, snooping_rows(counted.effect))]


def _class_sizes(sizes: list[int]) -> Figure:
    figure = Figure(figsize=(7, 3))
    axes = figure.subplots()
    axes.bar(np.arange(1, len(sizes) + 1), sizes, color="#2456c5")
    axes.set_yscale("log")
    axes.set_xlabel("rank of the taxonomy code")
    axes.set_ylabel("users")
    return figure
