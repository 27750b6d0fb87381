"""Linear rankers that maximise AUC: exact, by the pass, and from a stream."""

from telic.auc.estimators.by_name import AUCClassifier
from telic.auc.estimators.deterministic import ConjugateGradientAUC, ExactAUC, PairwiseAUC
from telic.auc.estimators.online import OAM, OPAUC, SOLAM, RegSOLAM, UniExp
from telic.auc.estimators.stochastic import SPAM, SPDAM, VRSPAM

__all__ = [
    "OAM",
    "OPAUC",
    "SOLAM",
    "SPAM",
    "SPDAM",
    "VRSPAM",
    "AUCClassifier",
    "ConjugateGradientAUC",
    "ExactAUC",
    "PairwiseAUC",
    "RegSOLAM",
    "UniExp",
]
