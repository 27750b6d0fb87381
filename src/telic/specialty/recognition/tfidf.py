"""Users as weighted diagnosis vectors, and the classifier an administrator would write down."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else X


class AccessTfidf(TransformerMixin, BaseEstimator):
    """Weigh the diagnoses a user accessed by how few users access them (section 6.4.4).

    ``log(v_d / a + 1) · log((n_users + 1) / r_d)``, where v_d counts the user's accesses with
    diagnosis d, a is their sum and r_d the number of users who accessed d. n_users and r_d come
    from the data given to `fit`. A diagnosis nobody accessed there gets weight 0; so does a user
    without any.

    Attributes
    ----------
    idf_ : ndarray of shape (n_codes,)

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[3, 1], [0, 2]])
    >>> AccessTfidf().fit_transform(counts).round(3)
    array([[0.615, 0.09 ],
           [0.   , 0.281]])
    """

    def fit(self, X: ArrayLike, y: Any = None) -> "AccessTfidf":
        """Learn how many users access each diagnosis.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_users, n_codes)
            Counts, not negative.
        y : ignored
        """
        counts = self._counts(X, reset=True)
        users = np.asarray((counts > 0).sum(axis=0)).ravel()
        self.idf_ = np.where(users > 0, np.log((counts.shape[0] + 1) / np.maximum(users, 1)), 0.0)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the weights as a dense array of shape (n_users, n_codes)."""
        check_is_fitted(self)
        counts = _dense(self._counts(X, reset=False))
        total = counts.sum(axis=1, keepdims=True)
        return np.log1p(counts / np.where(total > 0, total, 1.0)) * self.idf_

    def _counts(self, X: ArrayLike, *, reset: bool) -> Any:
        options = {"accept_sparse": "csr", "ensure_non_negative": True, "dtype": np.float64}
        return validate_data(self, X, reset=reset, **options)


class TopConditions(ClassifierMixin, BaseEstimator):
    """Name the class that shares most of the user's top conditions (section 6.2).

    Every class is the set of the `n_conditions` diagnoses with the largest mean weight
    (`AccessTfidf`) over its users; a user is the set of diagnoses accessed most often. Among
    classes that share equally many, that one wins whose users access the shared diagnoses more; a
    user who shares none with any class goes to the largest class.

    Parameters
    ----------
    n_conditions : int
        [Zhang2017] uses 20.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[5, 1, 1, 0], [4, 2, 0, 0], [1, 6, 2, 1]])
    >>> model = TopConditions(n_conditions=1).fit(X, ["eye", "eye", "skin"])
    >>> model.predict(np.array([[2, 8, 3, 0]])).tolist()
    ['skin']
    """

    def __init__(self, *, n_conditions: int = 20) -> None:
        self.n_conditions = n_conditions

    def fit(self, X: ArrayLike, y: ArrayLike) -> "TopConditions":
        """Find the top conditions of each class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_users, n_codes)
            Counts, not negative.
        y : array of shape (n_users,)
        """
        X, y = validate_data(self, X, y, accept_sparse="csr")
        counts = _dense(X)
        self.classes_, label, size = np.unique(y, return_inverse=True, return_counts=True)
        self.largest_ = int(np.argmax(size))
        member = np.eye(len(self.classes_))[label].T
        weight = member @ AccessTfidf().fit_transform(counts)
        accessed = member @ counts
        share = accessed / np.maximum(accessed.sum(axis=1, keepdims=True), 1)
        self.profile_ = np.where(self._top(weight), share, 0.0)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the class of each user."""
        check_is_fitted(self)
        counts = _dense(validate_data(self, X, accept_sparse="csr", reset=False))
        top = self._top(counts).astype(float)
        shared = top @ (self.profile_ > 0).T
        # The shares of a class sum to at most 1: they only break ties.
        score = shared + 0.99 * top @ self.profile_.T
        best = np.where(shared.any(axis=1), np.argmax(score, axis=1), self.largest_)
        return self.classes_[best]

    def _top(self, X: np.ndarray) -> np.ndarray:
        """True at each row's largest entries, if above 0."""
        n = min(self.n_conditions, X.shape[1])
        chosen = np.zeros(X.shape, dtype=bool)
        np.put_along_axis(chosen, np.argsort(-X, axis=1, kind="stable")[:, :n], True, axis=1)
        return chosen & (X > 0)
