"""The streaming estimators as classifiers of river, which must be installed: pip install river."""

from typing import Any

import numpy as np
from river import base
from scipy.special import expit
from sklearn.base import clone

from telic.auc.estimators.online import SOLAM
from telic.auc.estimators.partial_fit import OnlineAUC
from telic.errors import InputError

SLOWEST = 1e-3
"""Weight of the newest row in the spread of scores, at least: weights move, and old scores with
them."""


class RiverAUC(base.Classifier):
    """A streaming AUC maximiser for river: any two labels, probabilities, river's own evaluation.

    The probabilities are those of two normal distributions of the score with one variance, whose
    means, shares and variance run with the stream. They rise with the score, so that an AUC of
    them is that of the ranking; nothing else is promised of them.

    Parameters
    ----------
    model : OnlineAUC, optional
        What learns: `SOLAM()` by default, or another of `telic.auc`'s streaming estimators. It is
        copied and stays as it is; its own `pos_label` is not read.
    pos_label : label, optional
        The positive label. By default True or 1 where that is the first label seen, else the
        second label seen: the rare one, mostly.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from telic.auc import OPAUC
    >>> model = preprocessing.StandardScaler() | RiverAUC(OPAUC())
    >>> found = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC())
    >>> bool(found.get() > 0.9)
    True
    """

    def __init__(self, model: OnlineAUC | None = None, pos_label: Any = None) -> None:
        self.model = model
        self.pos_label = pos_label
        self._learner: OnlineAUC = SOLAM() if model is None else clone(model)
        self._labels: dict[bool, Any] = {} if pos_label is None else {True: pos_label}
        self._rows = 0
        self._variance = 0.0

    def learn_one(self, x: dict[Any, float], y: Any) -> None:
        """Learn from one row.

        Parameters
        ----------
        x : dict of name to number
            A name that was not met before counts as 0 in the rows before it.
        y : label

        Raises
        ------
        InputError
            If a third label comes, or a value is not finite.
        """
        side = self._side(y)
        score = self._learner.score_one(x)
        self._learner.learn_one(x, side)
        self._labels.setdefault(side, y)  # of a row that was refused nothing is kept
        self._rows += 1
        _, distance = self._odds_and_distance()
        miss = score - (distance / 2 if side else -distance / 2)
        self._variance += max(1 / self._rows, SLOWEST) * (miss**2 - self._variance)

    def predict_proba_one(self, x: dict[Any, float], **_: Any) -> dict[Any, float]:
        """Return the probability of each label seen so far; False and True before the first."""
        if not self._rows:
            return {False: 0.5, True: 0.5}
        if len(self._named()) == 1:
            return dict.fromkeys(self._named().values(), 1.0)
        odds, distance = self._odds_and_distance()
        if self._variance > 0:
            odds += distance * self._learner.score_one(x) / self._variance
        chance = float(expit(odds))
        return {self._named()[False]: 1 - chance, self._named()[True]: chance}

    def score_one(self, x: dict[Any, float]) -> float:
        """Return the score that ranks: without bounds, 0 halfway between the classes' means."""
        return self._learner.score_one(x)

    def _side(self, y: Any) -> bool:
        """Say whether a label is the positive one; the first rows decide which that is."""
        for side, label in self._labels.items():
            if label == y:
                return side
        if len(self._labels) == 2:
            known = " and ".join(repr(label) for label in self._labels.values())
            raise InputError(f"learn_one: label {y!r}, but the stream has {known} already.")
        return not next(iter(self._labels)) if self._labels else bool(y in (True, 1))

    def _named(self) -> dict[bool, Any]:
        """Labels by side; of True or False alone the other is known."""
        labels = dict(self._labels)
        for side in (False, True):
            if isinstance(labels.get(not side), bool | np.bool_):
                labels.setdefault(side, side)
        return labels

    def _odds_and_distance(self) -> tuple[float, float]:
        """Log odds of the positive class, and how far apart the means of the scores are."""
        state = self._learner._state
        counts = state["counts"] + 0.5  # never 0
        means = state["means"] @ self._learner._weights(state)
        return float(np.log(counts[1] / counts[0])), float(means[1] - means[0])
