"""How well classifiers recognise a specialty from diagnoses: 5×2 cross-validation (section 6.5)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.metrics import precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from telic.errors import InputError
from telic.evaluate.repeated_cv import (
    FoldTest,
    five_by_two_f,
    five_by_two_t,
    nadeau_bengio,
    paired_t,
)
from telic.evaluate.wilson import wilson_interval
from telic.scale import Executor
from telic.scale.arrays import Arrays, load_arrays, map_array, save_arrays, store_arrays
from telic.scale.job_folder import identity, mapped_folder
from telic.specialty.recognition.classifiers import CHOSEN, choose, fit, pipeline_names
from telic.specialty.small_cells import SMALL_CELL

CORE_CLASSES = (
    "Urology",
    "Neurology",
    "Pulmonary Disease",
    "Orthopaedic Surgery",
    "Neonatal-Perinatal Medicine",
    "Gastroenterology",
    "Obstetrics & Gynecology",
    "Neurological Surgery",
    "Ophthalmology",
    "Cardiovascular Disease",
    "Infectious Disease",
    "Dermatology",
)
"""The 12 core classes, in the order of Tables 6.7 to 6.9."""

MIN_CLASS = 20
"""Classes with fewer users are dropped (section 6.3)."""
FEWEST = 5
"""Users that recognition takes at least: halves of two and three, and a fold each within them."""
STEPS = 20
"""Steps from 0 to 1 to the nearest of which scores of few users are shown."""
MOST_BESIDE = 12
"""Codes of a log's own that a specialty is recognised beside, at most."""
WITHIN = 0.1
"""How closely an F1 should be known, either way, before much is concluded from it."""


class PipelineScore(NamedTuple):
    """How well one pipeline recognises a class, and where it was chosen."""

    pipeline: str
    f1: float
    """Of the class."""
    core_f1: float
    """Weighted mean of the other classes."""
    core_macro_f1: float
    """Plain mean of the other classes."""
    chosen_in: tuple[str, ...]
    """Training halves that chose it: round and half, such as "3.2"."""


@dataclass(frozen=True, eq=False)
class Recognition:
    """Scores of one classifier over the ten folds of 5×2 cross-validation."""

    classes: tuple[str, ...]
    support: np.ndarray
    """Users of each class."""
    scores: np.ndarray
    """Shape (5, 2, n_classes, 3): precision, recall and F1 per round, half and class."""
    shuffled_f1: float | None = None
    """Mean F1 of clusters of as many users found in shuffled data, recognised alike
    (`telic.specialty.recognition.shuffled_control`); None if not measured, or where none can be."""
    chosen: tuple[tuple[str, str], ...] = ()
    """Pipeline chosen in either training half of each round."""
    of_pipelines: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Every pipeline's own `scores`."""

    def of(self, name: str) -> np.ndarray:
        """Mean precision, recall and F1 of a class over the ten folds."""
        return self.scores[:, :, self.classes.index(name)].mean(axis=(0, 1))

    def shown(self, name: str) -> np.ndarray:
        """Return what `of` does, as reports show it: for few users rounded as `in_steps` says."""
        return in_steps(self.of(name), int(self.support[self.classes.index(name)]))

    def interval(self, name: str) -> tuple[float, float]:
        """Cautious 95 % interval of a class's F1: Wilson's, as of a share of the class's users.

        F1 is no share, so no theory promises the level. In simulated classes of 10 to 30 users the
        interval holds their mean F1 at least that often, and is wider than it need be (a slow test
        repeats this); in those of 5 it does in about 93 % of cases. It is that of `shown`, and
        classes of fewer than `SMALL_CELL` users count as `FEWEST`, so that it tells nobody how many
        they are.
        """
        users = int(self.support[self.classes.index(name)])
        f1 = float(self.shown(name)[2])
        return wilson_interval(f1, users if users >= SMALL_CELL else FEWEST)

    def mean_of(self, names: Sequence[str]) -> np.ndarray:
        """Means of several classes weighted by their size; F1 is the harmonic mean of P and R.

        Rounded as `in_steps` says if one of them is small: the weights would tell its size.
        """
        return in_steps(self._weighted(names).mean(axis=(0, 1)), self._fewest(names))

    def macro_f1(self, names: Sequence[str]) -> float:
        """Plain mean of the classes' F1, rounded as `mean_of`."""
        mean = np.mean([self.of(name)[2] for name in names])
        return float(in_steps(np.asarray(mean), self._fewest(names)))

    def _fewest(self, names: Sequence[str]) -> int:
        return int(min(self.support[self.classes.index(name)] for name in names))

    def compare(self, name: str, others: Sequence[str]) -> dict[str, FoldTest]:
        """Test F1 of a class against the weighted mean of `others`, fold by fold.

        The paired t-test is the printed one and invalid here: folds share their users.
        """
        own = self.scores[:, :, self.classes.index(name), 2]
        differences = own - self._weighted(others)[..., 2]
        return {
            "5×2cv t": five_by_two_t(differences),
            "5×2cv F": five_by_two_f(differences),
            "Nadeau–Bengio": nadeau_bengio(differences),
            "paired t (invalid)": paired_t(differences),
        }

    def pipeline_scores(self, name: str, others: Sequence[str]) -> list[PipelineScore]:
        """Score a class, as `shown`, and the means of `others` by pipeline, whatever was chosen."""
        rows = []
        for pipeline, scores in self.of_pipelines.items():
            one = replace(self, scores=scores)
            chosen_in = tuple(
                f"{r}.{half}"
                for r, halves in enumerate(self.chosen, start=1)
                for half, chosen in enumerate(halves, start=1)
                if chosen == pipeline
            )
            f1, core = float(one.shown(name)[2]), float(one.mean_of(others)[2])
            rows.append(PipelineScore(pipeline, f1, core, one.macro_f1(others), chosen_in))
        return rows

    def _weighted(self, names: Sequence[str]) -> np.ndarray:
        where = [self.classes.index(name) for name in names]
        mean = np.average(self.scores[:, :, where, :2], axis=2, weights=self.support[where])
        total = mean.sum(axis=-1)
        f1 = np.divide(2 * mean.prod(axis=-1), total, out=np.zeros_like(total), where=total > 0)
        return np.concatenate([mean, f1[..., None]], axis=-1)


def in_steps(scores: np.ndarray, users: int) -> np.ndarray:
    """Round scores of a class of fewer than `SMALL_CELL` users to the nearest of `STEPS`.

    A recall of few users is one of few fractions, which can tell how many they are; each multiple
    of the step is near some fraction of every number of users.
    """
    return scores if users >= SMALL_CELL else np.round(scores * STEPS) / STEPS


def users_needed(f1: float) -> int:
    """How many users a class must have for its F1 to be known within `WITHIN`, if it stays so.

    Examples
    --------
    >>> users_needed(0.5), users_needed(0.95)
    (93, 25)
    """
    return next(users for users in count(1) if np.ptp(wilson_interval(f1, users)) <= 2 * WITHIN)


@threadpool_limits.wrap(limits=1)  # the matrices are small: threads cost more than they save
def recognise(
    counts: sparse.csr_array,
    labels: np.ndarray,
    *,
    method: str = "SVM",
    pipeline: str = CHOSEN,
    every: bool = True,
    seed: int = 0,
    executor: Executor | None = None,
    work: str | Path | None = None,
) -> Recognition:
    """Cross-validate a classifier, two stratified halves in five rounds.

    Parameters
    ----------
    counts : sparse array of shape (n_users, n_codes)
        Accesses per diagnosis, such as `AccessLog.user_diagnosis`.
    labels : array of str
        Class of each user; ``""`` leaves a user out.
    method : str
        One of `telic.specialty.recognition.classifiers.CLASSIFIERS`.
    pipeline : str
        "chosen": in each training half the one that cross-validation within that half favours, so
        that the test half has no say. "printed": the one nearest to the dissertation. Or one by
        its name.
    every : bool
        Also score the pipelines that were not chosen, for `Recognition.pipeline_scores`; without
        them it is faster.
    seed : int
        Fixes the halves (the same for every method) and the classifier's chance.
    executor : telic.scale.Executor, optional
        Trains the ten halves side by side; the scores are the same.
    work : path, optional
        Needed with an executor: a folder for these users, which every worker reaches. The same
        call goes on there if it was interrupted.

    Raises
    ------
    InputError
        If there is no such classifier or pipeline, if fewer than two classes, or a class with
        fewer than four users, is given.
    """
    names = pipeline_names(method, pipeline)
    rows = np.flatnonzero(labels != "")
    classes, y, support = np.unique(labels[rows], return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"recognition needs at least two classes, found {len(classes)}.")
    if support.min() < 4:
        small = str(classes[support.argmin()])
        raise InputError(f"class {small!r} has fewer than 4 users, too few to halve. Leave it out.")
    ways = Ways(method, names, every, seed)
    folds = [Fold(r, half) for r in range(5) for half in range(2)]
    if executor is None:
        X = counts[rows].toarray()  # weights are dense anyway
        found = [_measured(X, y, ways, fold) for fold in folds]
    else:
        found = _on_engine(counts[rows], y, ways, folds, executor, work)
    scores = np.empty((5, 2, len(classes), 3))
    of_pipelines = {name: np.empty_like(scores) for name in names} if every else {}
    chosen: list[list[str]] = [[] for _ in range(5)]
    for fold, one in zip(folds, found, strict=True):
        best = names[int(one["chosen"])]
        chosen[fold.round].append(best)
        scores[fold] = one["scores"]
        for name, measured in zip(of_pipelines, one.get("of_pipelines", ()), strict=True):
            of_pipelines[name][fold] = measured
    return Recognition(
        tuple(str(c) for c in classes),
        support,
        scores,
        chosen=tuple((first, second) for first, second in chosen),
        of_pipelines=of_pipelines,
    )


class Ways(NamedTuple):
    """How users are classified: the arguments of `recognise`."""

    method: str
    names: tuple[str, ...]
    every: bool
    seed: int


class Fold(NamedTuple):
    """A training half of a round, both from 0."""

    round: int
    half: int

    def __str__(self) -> str:
        return f"half {self.half + 1} of round {self.round + 1}"


def _measured(X: np.ndarray, y: np.ndarray, ways: Ways, fold: Fold) -> Arrays:
    """Choose a pipeline in one half and measure it, or every one, in the other."""
    method, names, every, seed = ways
    halves = StratifiedKFold(2, shuffle=True, random_state=seed + fold.round)
    train, test = list(halves.split(np.zeros(len(y)), y))[fold.half]
    best = names.index(choose(method, names, X[train], y[train], seed=seed))
    classes, measured = np.arange(y.max() + 1), {}
    for name in names if every else (names[best],):
        model = fit(method, name, X[train], y[train], seed=seed)
        found = precision_recall_fscore_support(
            y[test], model.predict(X[test]), labels=classes, zero_division=0
        )
        measured[name] = np.array(found[:3]).T
    told = {"chosen": np.array(best), "scores": measured[names[best]]}
    return told | ({"of_pipelines": np.stack(list(measured.values()))} if every else {})


def _on_engine(
    counts: sparse.csr_array,
    y: np.ndarray,
    ways: Ways,
    folds: list[Fold],
    executor: Executor,
    work: str | Path | None,
) -> list[Arrays]:
    """Measure folds on an engine, whose tasks map the users' accesses."""
    folder = mapped_folder(work, "the users' accesses")
    parts = {name: getattr(counts, name) for name in ("data", "indices", "indptr")}
    store_arrays(folder, {**parts, "classes": y})
    task = partial(save_arrays, partial(_measured_from_files, folder, counts.shape[1], ways))
    out = folder / f"folds-{identity(task, folds)}"
    paths = executor.map(task, folds, out=out, ending=".npz").values
    return [load_arrays(path) for path in paths]


def _measured_from_files(folder: Path, codes: int, ways: Ways, fold: Fold) -> Arrays:
    data, indices, indptr, y = (
        map_array(folder, name) for name in ("data", "indices", "indptr", "classes")
    )
    counts = sparse.csr_array((data, indices, indptr), shape=(len(y), codes))
    with threadpool_limits(limits=1):  # as in `recognise`, wherever it runs
        return _measured(counts.toarray(), y, ways, fold)


def with_specialty(
    taxonomy: np.ndarray, users: np.ndarray, name: str, classes: Sequence[str] = CORE_CLASSES
) -> np.ndarray:
    """Label users of some classes by their code and a discovered specialty's users by `name`.

    A user of the discovered specialty who also declares a core code counts for the discovered one
    only: the question is whether that group can be told apart.

    Examples
    --------
    >>> with_specialty(np.array(["Urology", "Surgery", ""]), np.array([2]), "new").tolist()
    ['Urology', '', 'new']
    """
    labels = np.where(np.isin(taxonomy, classes), taxonomy, "").astype(object)
    labels[users] = name
    return labels.astype(str)


def classes_beside(taxonomy: np.ndarray, users: np.ndarray) -> list[str]:
    """Return the classes to recognise a discovered specialty beside.

    These are the core classes of at least `MIN_CLASS` users, those of the specialty left out. Where
    fewer than two are so large, they are the codes that the log itself declares most often, of
    `MIN_CLASS` users, or if fewer than two have that many, of `FEWEST`.

    Examples
    --------
    >>> taxonomy = np.repeat(["Urology", "eyes", "skin"], [7, 9, 6])
    >>> classes_beside(taxonomy, np.array([0, 1, 2]))
    ['eyes', 'skin']
    """
    others = np.delete(taxonomy, users)
    core = present_core(others)
    if len(core) > 1:
        return core
    sizes = Counter(others[others != ""].tolist())
    for fewest in (MIN_CLASS, FEWEST):
        large = sorted((-n, code) for code, n in sizes.items() if n >= fewest)
        if len(large) > 1:
            break
    return [code for _, code in large[:MOST_BESIDE]]


def present_core(labels: np.ndarray) -> list[str]:
    """Return the core classes that have at least `MIN_CLASS` users, in the tables' order."""
    return [name for name in CORE_CLASSES if (labels == name).sum() >= MIN_CLASS]


def large_classes(
    taxonomy: np.ndarray, *, minimum: int = MIN_CLASS
) -> tuple[np.ndarray, dict[str, int]]:
    """Blank the classes with fewer than `minimum` users; say how large those were.

    Examples
    --------
    >>> labels, dropped = large_classes(np.array(["a", "a", "b", ""]), minimum=2)
    >>> labels.tolist(), dropped
    (['a', 'a', '', ''], {'b': 1})
    """
    names, sizes = np.unique(taxonomy[taxonomy != ""], return_counts=True)
    small = {str(n): int(s) for n, s in zip(names, sizes, strict=True) if s < minimum}
    return np.where(np.isin(taxonomy, list(small)), "", taxonomy), small
