"""How an estimator learns from a stream: `partial_fit` on blocks, `learn_one` on single rows."""

from collections.abc import Mapping
from numbers import Real
from reprlib import repr as shortened
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from telic.auc.drawn_rows import Draws, Matrix
from telic.auc.estimators.base import LinearAUC, dense_blocks, generator
from telic.auc.objective import Callback, Solution
from telic.auc.thresholds import between_means
from telic.errors import InputError, expect_above, expect_at_least
from telic.optim.design import LARGEST

State = dict[str, Any]
"""Arrays by name; a reservoir of sparse rows is a CSR matrix."""


def common_state(d: int) -> State:
    """What every stream keeps, before the first row: weights, class counts and means."""
    return {"w": np.zeros(d), "counts": np.zeros(2), "means": np.zeros((2, d))}


class OnlineAUC(LinearAUC):
    """Base of the online estimators: a subclass gives `_start(d)` and `_read(state, X, …)`.

    The class prior and means are running ones, so nothing need be known of the stream; with
    `forgetting` < 1 rows count 1, f, f², … with age, and steps stop shrinking at
    1/(1 − f) rows, so that drift is followed. `fit` makes `max_iter` passes in random order and
    chooses the threshold by rule; it stops by no rule, so `converged_` is None, and `gap_` bounds
    what the passes left of the gap where the objective allows a bound. A stream has no list of
    scores, so `partial_fit` and `learn_one` put the threshold halfway between the mean scores of
    the two classes.
    """

    _reads_sparse = False
    """Whether `_read` takes sparse rows as they are; otherwise they come as dense blocks."""

    def _start(self, d: int) -> State:
        """Return the state before the first row; "w" holds weights, "counts" and "means" too."""
        raise NotImplementedError

    def _look_ahead(self, state: State, X: Matrix) -> None:
        """Put into a state what `fit`, unlike a stream, knows of all rows before the first."""

    def _read(
        self, state: State, X: Matrix, positive: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Learn from rows in order, changing the state."""
        raise NotImplementedError

    def _read_all(
        self, state: State, X: Matrix, positive: np.ndarray, rng: np.random.Generator
    ) -> None:
        if self._reads_sparse and sparse.issparse(X):
            self._read(state, X, positive, rng)
            return
        for start, block in dense_blocks(X):
            self._read(state, block, positive[start : start + len(block)], rng)

    def _weights(self, state: State) -> np.ndarray:
        return state["w"]

    def _check(self) -> None:
        expect_at_least(0, beta=getattr(self, "beta", 0.0))
        expect_above(0, step_size=self.step_size)
        given: Any = self.forgetting
        if not (isinstance(given, Real) and 0 < float(given) <= 1):
            raise InputError(f"forgetting: {given!r}, expected a factor in (0, 1].")

    def _solve(
        self,
        X: Matrix,
        positive: np.ndarray,
        weight: np.ndarray | None,
        callback: Callback | None,
    ) -> Solution:
        self._check()
        self.__dict__.pop("feature_index_", None)  # names of a stream of dictionaries
        rng = generator(self.random_state)
        state = self._start(X.shape[1])
        self._look_ahead(state, X)
        draws, done, stopped = Draws(X, weight), 0, False
        while done < self.max_iter and not stopped:
            order = draws.shuffled(rng)
            self._read_all(state, X[order], positive[order], rng)
            done += 1
            stopped = callback is not None and bool(callback(done, self._weights(state)))
        self._state, self._rng = state, rng
        gap, value = self._bound(X, positive, weight, self._weights(state))
        return Solution(self._weights(state), done, None, gap, value, stopped)

    def _bound(
        self, X: Matrix, positive: np.ndarray, weight: np.ndarray | None, w: np.ndarray
    ) -> tuple[float, float]:
        """Bound the gap after `fit`, and the objective it belongs to; NaN where there is none."""
        return np.nan, np.nan

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from the next rows of a stream, in order.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
            May hold one class only, however long; until both were seen nothing can be ranked
            and all scores are 0.
        classes : array of two labels
            Required at the first call: the negative label, then the positive one, unless
            `pos_label` says otherwise. `classes_` keeps that order.

        Returns
        -------
        self
        """
        if hasattr(self, "feature_index_"):
            raise InputError("partial_fit: this estimator already learns from dictionaries.")
        first = not hasattr(self, "_state")
        X, y = self._checked(X, y, reset=first)
        if first:
            if classes is None:
                raise InputError("classes: required at the first call of partial_fit.")
            self._set_classes(np.asarray(classes))
        elif classes is not None and not self._began_with(classes):
            raise InputError(
                f"classes: {classes!r}, but the stream began with {self.classes_.tolist()} "
                "(negative, positive). Leave classes out after the first call."
            )
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise InputError(
                f"y: label {unknown.tolist()[0]!r} is none of the classes {self.classes_}."
            )
        if first:
            self._begin(X.shape[1])
        positive = y == self.classes_[1]
        self._read_all(self._state, X, positive, self._rng)
        self._publish()
        return self

    def _set_classes(self, classes: np.ndarray) -> None:
        self._classes(classes)
        if self.pos_label is None:
            _, first = np.unique(classes, return_index=True)
            self.classes_ = classes[np.sort(first)]

    def _began_with(self, classes: Any) -> bool:
        given = np.asarray(classes)
        if self.pos_label is not None:  # it says which one is positive, whatever the order
            return np.array_equal(np.unique(given), np.unique(self.classes_))
        return np.array_equal(given, self.classes_)

    def _begin(self, d: int) -> None:
        self._check()
        self._state, self._rng = self._start(d), generator(self.random_state)
        self.n_iter_, self.converged_, self.gap_ = 1, None, np.nan

    def _publish(self) -> None:
        """Set coef_ and intercept_ from the state."""
        w = self._weights(self._state)
        self._set(w, between_means(w, self._state["means"]))

    def learn_one(self, x: dict[str, float], y: Any) -> None:
        """Learn from one row given as a dictionary, as river's estimators do.

        A name not met before adds a column; a name left out counts as 0. Use either this or
        `partial_fit` on one estimator.

        Parameters
        ----------
        x : dict of str to number
        y : bool, 0 or 1, −1 or 1
        """
        numbers = _numbers("learn_one", x)
        if y not in (-1, 0, 1):
            raise InputError(f"learn_one: label {y!r}, expected True or False, 0 or 1, −1 or 1.")
        if not hasattr(self, "feature_index_"):
            if hasattr(self, "_state"):
                raise InputError("learn_one: this estimator already learns from arrays.")
            self.feature_index_: dict[str, int] = {}
            self.classes_ = np.array([False, True])
            self._begin(8)
        for name in numbers:
            self.feature_index_.setdefault(name, len(self.feature_index_))
        if len(self.feature_index_) > self._state["w"].size:
            self._widen(2 * len(self.feature_index_))
        row = np.zeros((1, self._state["w"].size))
        for name, number in numbers.items():
            row[0, self.feature_index_[name]] = number
        self._read(self._state, row, np.array([y == 1]), self._rng)

    def score_one(self, x: dict[str, float]) -> float:
        """Score one row; unknown names and an unstarted stream count as 0."""
        numbers = _numbers("score_one", x)
        if not hasattr(self, "feature_index_"):
            return 0.0
        w, index = self._weights(self._state), self.feature_index_
        known = ((w[index[name]], value) for name, value in numbers.items() if name in index)
        return float(sum(a * b for a, b in known) - between_means(w, self._state["means"]))

    def predict_one(self, x: dict[str, float]) -> bool:
        """Return whether one row is positive: its score exceeds 0."""
        return self.score_one(x) > 0

    @property
    def _supervised(self) -> bool:
        """Tells a river pipeline that `learn_one` takes the label."""
        return True

    def _widen(self, d: int) -> None:
        """Give the state d columns; what is new is as at the start."""
        wide = self._start(d)
        for name, old in self._state.items():
            wide[name][tuple(slice(length) for length in old.shape)] = old
        self._state = wide

    def drift(self) -> np.ndarray:
        """Return the running share of positives as the stream knows it now, with both counts."""
        check_is_fitted(self)
        counts = self._state["counts"]
        return np.array([counts[1] / counts.sum(), *counts])


def _numbers(where: str, x: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a row; raise InputError at what is none."""
    if not hasattr(x, "items"):
        raise InputError(
            f"{where}: the row is of type {type(x).__name__}, expected a dictionary of names and "
            "numbers."
        )
    numbers = {}
    for name, value in x.items():
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"{where}: {name!r} is {shortened(value)}, expected a number."
            ) from None
        if not abs(numbers[name]) <= LARGEST:  # NaN too
            raise InputError(
                f"{where}: {name!r} is {shortened(value)}, expected a number of at most "
                f"{LARGEST:g} in size."
            )
    return numbers
