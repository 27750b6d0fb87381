"""AppAware, [Zhang2017] (3.3): preference = relevance + what installed and opened apps say."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from telic.kernels import kernel

if TYPE_CHECKING:  # what learns the weights loads what serving them does not need
    from telic.choice import Elastic, Fit
    from telic.completion.learning.adaqac import FeedbackDesign
    from telic.completion.learning.app_features import Signals
    from telic.completion.learning.replayed_log import RankedKeystrokes


class AppTable(NamedTuple):
    """Numbers for pairs of a query and an app, those that are not 0, by query."""

    start: np.ndarray
    """int64 (queries + 1,)."""
    app: np.ndarray
    """int32."""
    value: np.ndarray
    """float32."""

    @classmethod
    def of(cls, query: np.ndarray, app: np.ndarray, value: np.ndarray, queries: int) -> "AppTable":
        """Sort pairs by query."""
        order = np.argsort(query, kind="stable")
        start = np.searchsorted(query[order], np.arange(queries + 1)).astype(np.int64)
        return cls(start, app[order].astype(np.int32), value[order].astype(np.float32))


@dataclass(frozen=True)
class AppAware:
    """A fitted model; `AppAware.scores` and `PhoneRanker` rank with it."""

    weights: AppTable
    """beta_{q,a} over the standard deviation of the installed signal."""
    shares: AppTable
    """y(q, a), of the training part."""
    recency: np.ndarray
    """float64 (48,): beta_k over the standard deviation of y."""
    feedback: np.ndarray
    """float64 (16,): weights of implicit feedback; zeros where it was not learned together."""
    relevance_weight: float
    """1 + the learned weight of the relevance; everything else is divided by it, so that a phone
    without signals has the scores of Standard exactly."""
    penalty: "Elastic"
    fit: "Fit"

    def scores(
        self,
        moments: "RankedKeystrokes",
        signals: "Signals",
        feedback: np.ndarray | None = None,
        design: "FeedbackDesign | None" = None,
    ) -> np.ndarray:
        """Return the preference (3.3.1) of every candidate, over the weight of the relevance.

        Parameters
        ----------
        moments : RankedKeystrokes
        signals : Signals
            Of the log behind the moments.
        feedback : array of shape (T, N, 26), optional
            Implicit feedback, for a model that was fitted with it.
        design : FeedbackDesign, optional
            Scales of the feedback.
        """
        added = np.zeros(moments.candidates.shape)
        # A completer knows no apps of a query that is not in its catalogue.
        known = np.where(moments.known, moments.candidates, -1)
        _score_moments(
            moments.composition,
            known,
            signals.apps,
            (signals.installed_start, signals.installed_app, signals.installed_value),
            (signals.recent_start, signals.recent_app),
            self.weights,
            self.shares,
            self.recency,
            added,
        )
        if feedback is not None and design is not None:
            most = design.bound * self.relevance_weight
            added += np.clip(design.scaled(feedback) @ self.feedback, -most, most)
        return moments.relevance + added / self.relevance_weight


@kernel
def score_candidates(candidates, value, order, weights, shares, recency, out):
    """Add each candidate's app score; value: by app, order: by app, -1 if not recently opened."""
    weight_start, weight_app, weight = weights
    share_start, share_app, share = shares
    for j in range(len(candidates)):
        q = candidates[j]
        if q < 0 or q >= len(weight_start) - 1:
            continue
        total = 0.0
        for e in range(weight_start[q], weight_start[q + 1]):
            total += weight[e] * value[weight_app[e]]
        for e in range(share_start[q], share_start[q + 1]):
            k = order[share_app[e]]
            if k >= 0:
                total += share[e] * recency[k]
        out[j] += total


@kernel
def _score_moments(composition, candidates, apps, installed, recent, weights, shares, recency, out):
    """Score the candidates of every moment; moments of one composition stand together."""
    installed_start, installed_app, installed_value = installed
    recent_start, recent_app = recent
    value, order = np.zeros(apps), np.full(apps, -1)
    now = -1
    for t in range(len(composition)):
        c = composition[t]
        if c != now:
            if now >= 0:
                for e in range(installed_start[now], installed_start[now + 1]):
                    value[installed_app[e]] = 0.0
                for e in range(recent_start[now], recent_start[now + 1]):
                    order[recent_app[e]] = -1
            for e in range(installed_start[c], installed_start[c + 1]):
                value[installed_app[e]] = installed_value[e]
            for e in range(recent_start[c], recent_start[c + 1]):
                order[recent_app[e]] = e - recent_start[c]
            now = c
        score_candidates(candidates[t], value, order, weights, shares, recency, out[t])
