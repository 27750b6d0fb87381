"""The classifiers of section 6.4.4, each with several preparations, and how one is chosen.

[Zhang2017] names the classifiers and takes Weka's default parameters. How weights are scaled
decides much (columns stretched to [0, 1] let rare diagnoses drown the others), so every classifier
comes with several pipelines, and the one to use is chosen by cross-validation among training users
alone.
"""

from itertools import product

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from telic.errors import InputError
from telic.specialty.recognition.tfidf import AccessTfidf, TopConditions

CHOSEN, PRINTED = "chosen", "printed"
"""Instead of a pipeline's name: choose among all; take the one nearest to the dissertation."""
INNER_FOLDS = 3
"""Folds of the training users in which pipelines are compared; two where a class has only two."""
COMPONENTS = 50
"""Principal components; fewer where there are fewer users or diagnoses."""

CLASSIFIERS = ("Naive", "Decision Trees", "Random Forests", "PCA-KNN", "SVM")
"""The naive classifier of section 6.2 and the four of section 6.4.4."""

_PLAIN, _ROWS, _COLUMNS = "weights as they are", "rows of length 1", "columns in [0, 1]"
_SCALERS = {_PLAIN: (), _ROWS: (Normalizer,), _COLUMNS: (MinMaxScaler,)}


class Kernel(TransformerMixin, BaseEstimator):
    """Linear or Gaussian kernel with the users it was fitted on, for a support vector machine.

    One matrix product; libsvm would compute every entry by itself, once for each pair of classes.

    Parameters
    ----------
    gamma : float or "scale", optional
        Of the Gaussian kernel exp(−γ d²); "scale" is 1 / (p · variance). None: linear.

    Examples
    --------
    >>> Kernel().fit(np.array([[1.0, 2.0]])).transform(np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[11.0], [2.0]]
    """

    def __init__(self, gamma: float | str | None = None) -> None:
        self.gamma = gamma

    def fit(self, X: np.ndarray, y: np.ndarray | None = None) -> "Kernel":
        """Keep the users, shape (n_users, p)."""
        self.users_ = X
        gamma = 1.0 / (X.shape[1] * (X.var() or 1.0)) if self.gamma == "scale" else self.gamma
        self.gamma_ = None if gamma is None else float(gamma)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the kernel, shape (n_others, n_users)."""
        check_is_fitted(self)
        if self.gamma_ is None:
            return X @ self.users_.T
        return np.exp(-self.gamma_ * euclidean_distances(X, self.users_, squared=True))


def pipelines(classifier: str, *, seed: int = 0) -> dict[str, Pipeline]:
    """Return a classifier's pipelines by name, from access counts to classes.

    The first is nearest to the dissertation. Weights, scaling and components are fitted on whatever
    the pipeline is fitted on. The decision tree splits by entropy with at least two users per leaf
    (J48's defaults, without its pruning); the forest has 100 trees with m = √p; neither sees the
    scale of a column. Where γ is not named it is 1/(p · variance). The dissertation's SVM has
    Weka's defaults for a Gaussian kernel: it names the kernel and no constants.

    Examples
    --------
    >>> list(pipelines("PCA-KNN"))[0]
    'weights as they are, 50 components, 9 neighbours'
    """
    found: dict[str, Pipeline] = {}

    def add(scaling: str, components: int | None, *steps: BaseEstimator, setting: str = "") -> None:
        reduced = [PCA(components, random_state=seed)] if components else []
        parts = (scaling, f"{components} components" if components else "", setting)
        scaler = [one() for one in _SCALERS[scaling]]
        name = ", ".join(filter(None, parts))
        found[name] = make_pipeline(AccessTfidf(), *scaler, *reduced, *steps)

    if classifier == "Naive":
        found["20 conditions"] = make_pipeline(TopConditions())
    elif classifier == "Decision Trees":
        for scaling, components in product((_PLAIN, _ROWS), (None, COMPONENTS)):
            tree = DecisionTreeClassifier(
                criterion="entropy", min_samples_leaf=2, random_state=seed
            )
            add(scaling, components, tree)
    elif classifier == "Random Forests":
        for scaling, components in product((_PLAIN, _ROWS), (None, COMPONENTS)):
            add(scaling, components, RandomForestClassifier(100, random_state=seed))
    elif classifier == "PCA-KNN":
        for scaling, components, k in product((_PLAIN, _ROWS), (COMPONENTS, 20), (9, 3)):
            add(scaling, components, KNeighborsClassifier(k), setting=f"{k} neighbours")
    elif classifier == "SVM":

        def svm(C: float, gamma: float | str | None) -> list[BaseEstimator]:
            return [Kernel(gamma), SVC(C=C, kernel="precomputed")]

        add(_COLUMNS, None, *svm(1.0, 0.01), setting="Gaussian, C = 1, γ = 0.01")
        for scaling, components in product(_SCALERS, (None, COMPONENTS)):
            add(scaling, components, *svm(10.0, "scale"), setting="Gaussian, C = 10")
        for scaling in (_ROWS, _COLUMNS):  # weights as they are have no scale to set C by
            add(scaling, None, *svm(1.0, None), setting="linear, C = 1")
    else:
        known = ", ".join(CLASSIFIERS)
        raise InputError(f"{classifier!r} is not a classifier; choose from {known}.")
    return found


def pipeline_names(classifier: str, pipeline: str) -> tuple[str, ...]:
    """Return the pipelines that `pipeline` stands for: all for `CHOSEN`, the first for `PRINTED`.

    Examples
    --------
    >>> pipeline_names("PCA-KNN", "printed")
    ('weights as they are, 50 components, 9 neighbours',)
    """
    names = tuple(pipelines(classifier))
    if pipeline == CHOSEN:
        return names
    if pipeline == PRINTED:
        return names[:1]
    if pipeline not in names:
        raise InputError(
            f"{pipeline!r} is not a pipeline of {classifier}; choose {CHOSEN}, {PRINTED} or one "
            f"of: {'; '.join(names)}."
        )
    return (pipeline,)


def fit(classifier: str, pipeline: str, X: np.ndarray, y: np.ndarray, *, seed: int = 0) -> Pipeline:
    """Fit one of `pipelines`, with fewer components or neighbours where users are too few.

    Examples
    --------
    >>> counts = np.array([[9, 1, 0], [8, 2, 1], [0, 3, 9], [1, 2, 8]])
    >>> name = pipeline_names("PCA-KNN", "printed")[0]
    >>> fit("PCA-KNN", name, counts, np.array([0, 0, 1, 1]))["pca"].n_components_
    3
    """
    model = pipelines(classifier, seed=seed)[pipeline]
    for step, parameter, most in (
        ("pca", "n_components", min(X.shape)),
        ("kneighborsclassifier", "n_neighbors", X.shape[0]),
    ):
        if step in model.named_steps:
            fewer = min(getattr(model[step], parameter), most)
            model.set_params(**{f"{step}__{parameter}": fewer})
    return model.fit(X, y)


def choose(
    classifier: str, names: tuple[str, ...], X: np.ndarray, y: np.ndarray, *, seed: int = 0
) -> str:
    """Name the pipeline of highest macro-F1 in cross-validation among these users alone.

    Of equals the first is chosen. Classes have two users or more each. F1 is that of all
    predictions together, because a class may have one user in a fold.

    Examples
    --------
    >>> counts = np.array([[9, 1, 0], [8, 2, 1], [0, 3, 9], [1, 2, 8]])
    >>> choose("Naive", pipeline_names("Naive", "chosen"), counts, np.array([0, 0, 1, 1]))
    '20 conditions'
    """
    if len(names) == 1:
        return names[0]
    n_folds = min(INNER_FOLDS, np.unique(y, return_counts=True)[1].min())
    halves = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    folds = list(halves.split(np.zeros(len(y)), y))

    def score(name: str) -> float:
        predicted = np.empty_like(y)
        for train, test in folds:
            model = fit(classifier, name, X[train], y[train], seed=seed)
            predicted[test] = model.predict(X[test])
        return float(f1_score(y, predicted, average="macro", zero_division=0))

    return max(names, key=score)
