"""How well classifiers recognise a specialty from diagnoses: 5×2 cross-validation (section 6.5)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from telic.errors import InputError
from telic.evaluate.repeated_cv import (
    FoldTest,
    five_by_two_f,
    five_by_two_t,
    nadeau_bengio,
    paired_t,
)
from telic.specialty.tfidf import AccessTfidf, TopConditions

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
COMPONENTS = 50
"""Principal components of PCA-KNN; fewer where the training half has fewer users or diagnoses."""

_MAKE: Mapping[str, Callable[[int], list]] = {
    "Naive": lambda seed: [TopConditions()],
    "Decision Trees": lambda seed: [
        AccessTfidf(),
        DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=seed),
    ],
    "Random Forests": lambda seed: [AccessTfidf(), RandomForestClassifier(100, random_state=seed)],
    "PCA-KNN": lambda seed: [
        AccessTfidf(),
        PCA(COMPONENTS, random_state=seed),
        KNeighborsClassifier(9),
    ],
    "SVM": lambda seed: [AccessTfidf(), MinMaxScaler(), SVC(C=10.0, kernel="rbf", gamma="scale")],
}
CLASSIFIERS = tuple(_MAKE)
"""The naive classifier of section 6.2 and the four of section 6.4.4."""


def classifier(name: str, *, seed: int = 0) -> Pipeline:
    """Return one of `CLASSIFIERS`, from access counts to classes.

    Weights, PCA and scaling are fitted on whatever the pipeline is fitted on, so never on a test
    half. The decision tree splits by entropy with at least two users per leaf (J48's defaults,
    without its pruning); the forest has 100 trees with m = √p; the SVM is Gaussian with C = 10,
    γ = 1/(p · variance) on weights scaled to [0, 1] (the text names the kernel and no constants).

    Examples
    --------
    >>> classifier("PCA-KNN")[-1].n_neighbors
    9
    """
    if name not in _MAKE:
        raise InputError(f"{name!r} is not a classifier; choose from {', '.join(CLASSIFIERS)}.")
    return make_pipeline(*_MAKE[name](seed))


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
    (`telic.specialty.control`); None if not measured."""

    def of(self, name: str) -> np.ndarray:
        """Mean precision, recall and F1 of a class over the ten folds."""
        return self.scores[:, :, self.classes.index(name)].mean(axis=(0, 1))

    def mean_of(self, names: Sequence[str]) -> np.ndarray:
        """Means of several classes weighted by their size; F1 is the harmonic mean of P and R."""
        return self._weighted(names).mean(axis=(0, 1))

    def macro_f1(self, names: Sequence[str]) -> float:
        """Plain mean of the classes' F1."""
        return float(np.mean([self.of(name)[2] for name in names]))

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

    def _weighted(self, names: Sequence[str]) -> np.ndarray:
        where = [self.classes.index(name) for name in names]
        mean = np.average(self.scores[:, :, where, :2], axis=2, weights=self.support[where])
        total = mean.sum(axis=-1)
        f1 = np.divide(2 * mean.prod(axis=-1), total, out=np.zeros_like(total), where=total > 0)
        return np.concatenate([mean, f1[..., None]], axis=-1)


def recognise(
    counts: sparse.csr_array, labels: np.ndarray, *, method: str = "SVM", seed: int = 0
) -> Recognition:
    """Cross-validate a classifier, two stratified halves in five rounds.

    Parameters
    ----------
    counts : sparse array of shape (n_users, n_codes)
        Accesses per diagnosis, such as `AccessLog.user_diagnosis`.
    labels : array of str
        Class of each user; ``""`` leaves a user out.
    method : str
        One of `CLASSIFIERS`.
    seed : int
        Fixes the halves (the same for every method) and the classifier's chance.

    Raises
    ------
    InputError
        If fewer than two classes, or a class with fewer than four users, is given.
    """
    rows = np.flatnonzero(labels != "")
    classes, y, support = np.unique(labels[rows], return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"recognition needs at least two classes, found {len(classes)}.")
    if support.min() < 4:
        small = str(classes[support.argmin()])
        raise InputError(f"class {small!r} has fewer than 4 users, too few to halve. Leave it out.")
    X = sparse.csr_array(counts[rows])
    scores = np.empty((5, 2, len(classes), 3))
    for r in range(5):
        halves = StratifiedKFold(2, shuffle=True, random_state=seed + r)
        for half, (train, test) in enumerate(halves.split(np.zeros(len(y)), y)):
            model = clone(classifier(method, seed=seed))
            if "pca" in model.named_steps:  # a small log has fewer users or diagnoses than that
                model.set_params(pca__n_components=min(COMPONENTS, len(train), X.shape[1]))
            model.fit(X[train], y[train])
            measured = precision_recall_fscore_support(
                y[test], model.predict(X[test]), labels=np.arange(len(classes)), zero_division=0
            )
            scores[r, half] = np.array(measured[:3]).T
    return Recognition(tuple(str(c) for c in classes), support, scores)


def with_specialty(taxonomy: np.ndarray, users: np.ndarray, name: str) -> np.ndarray:
    """Label core users by their code and a discovered specialty's users by `name`.

    A user of the discovered specialty who also declares a core code counts for the discovered one
    only: the question is whether that group can be told apart.

    Examples
    --------
    >>> with_specialty(np.array(["Urology", "Surgery", ""]), np.array([2]), "new").tolist()
    ['Urology', '', 'new']
    """
    labels = np.where(np.isin(taxonomy, CORE_CLASSES), taxonomy, "").astype(object)
    labels[users] = name
    return labels.astype(str)


def present_core(labels: np.ndarray) -> list[str]:
    """Return the core classes that have at least `MIN_CLASS` users, in the tables' order."""
    return [name for name in CORE_CLASSES if (labels == name).sum() >= MIN_CLASS]


def large_classes(
    taxonomy: np.ndarray, *, minimum: int = MIN_CLASS
) -> tuple[np.ndarray, dict[str, int]]:
    """Blank the classes with fewer than `minimum` users.

    Returns
    -------
    labels : array of str
    dropped : dict
        Size of each class that was dropped.

    Examples
    --------
    >>> labels, dropped = large_classes(np.array(["a", "a", "b", ""]), minimum=2)
    >>> labels.tolist(), dropped
    (['a', 'a', '', ''], {'b': 1})
    """
    names, sizes = np.unique(taxonomy[taxonomy != ""], return_counts=True)
    small = {str(n): int(s) for n, s in zip(names, sizes, strict=True) if s < minimum}
    return np.where(np.isin(taxonomy, list(small)), "", taxonomy), small
