"""What of chapter 6 calibrated the simulated hospital: no result, and said so."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from telic.simulate.hospital import Difficulty
from telic.specialty.access import AccessLog
from telic.specialty.pipelines import CHOSEN, PRINTED
from telic.specialty.recognise import MIN_CLASS, large_classes, recognise
from telic.study.chapter6_truth import Table, simulated


def summary(log: AccessLog) -> Table:
    """Tables 6.1 and 6.2: counts."""
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


KNOB = "columns in [0, 1], Gaussian, C = 10"
"""The SVM's pipeline beside which the simulator's knobs were set."""


SAID = {CHOSEN: "chosen in training halves", PRINTED: "as printed"}


def naive_contrast(
    log: AccessLog, seed: int, *, svm: tuple[str, ...] = (PRINTED, KNOB, CHOSEN)
) -> Table:
    """Section 6.2: a specialty that is easy to recognise and one that is hard.

    `svm` are pipelines of the SVM.
    """
    labels, dropped = large_classes(log.taxonomy)
    counts = log.user_diagnosis()
    published = {"Naive": (70.35, 11.30), "SVM": (97.44, 48.98)}
    rows = []
    for method, pipeline in [("Naive", CHOSEN), *(("SVM", one) for one in svm)]:
        found = recognise(counts, labels, method=method, pipeline=pipeline, every=False, seed=seed)
        shown = method if method == "Naive" else f"{method}, {SAID.get(pipeline, pipeline)}"
        rows += [
            [shown, name, f"{100 * found.of(name)[2]:.2f}", known]
            for name, known in zip(("Urology", "Anesthesiology"), published[method], strict=True)
        ]
    return Table(
        f"Section 6.2 (calibration); {len(dropped)} classes under {MIN_CLASS} users dropped",
        ["classifier", "class", "F1 simulated", "F1 published"],
        rows,
    )


def tilts(
    *,
    settings: tuple[tuple[float, float], ...] = ((0.3, 1.6), (1.0, 1.6), (1.0, 2.0), (1.0, 2.4)),
    on_step: Callable[[str], None] = lambda step: None,
) -> Table:
    """Why the naive classifier misses anesthesiology by more than the text's does.

    `settings` are scales and `Difficulty.surgical_tilt`. The last column is the reason: where
    nearly every user has opened nearly every diagnosis, tf-idf leaves only the rarest a weight, and
    those are nobody's most accessed ones.
    """
    rows = []
    for scale, tilt in settings:
        with TemporaryDirectory() as folder:
            log, _ = simulated(
                Path(folder) / "log",
                scale=scale,
                seed=0,
                difficulty=Difficulty(surgical_tilt=tilt),
            )
        contrast = [row[2] for row in naive_contrast(log, 0, svm=(KNOB,)).rows]
        opened = log.user_diagnosis()
        share = opened.nnz / (opened.shape[0] * opened.shape[1])
        rows.append([f"{scale:g}", f"{tilt:g}", *contrast, f"{share:.0%}"])
        on_step(f"scale {scale:g}, tilt {tilt:g}")
    return Table(
        "Section 6.2 by the simulator's knob (seed 0; F1)",
        [
            "scale",
            "surgical tilt",
            "Naive, Urology",
            "Naive, Anesthesiology",
            "SVM, Urology",
            "SVM, Anesthesiology",
            "diagnoses a user has opened, of all",
        ],
        rows,
    )
