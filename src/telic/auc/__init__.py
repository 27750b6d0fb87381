"""Linear rankers that maximise AUC: exact, batch, stochastic, and from a stream."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.auc.compare import compare_rankers
    from telic.auc.estimators.by_name import AUCClassifier
    from telic.auc.estimators.deterministic import ConjugateGradientAUC, ExactAUC, PairwiseAUC
    from telic.auc.estimators.online import OAM, OPAUC, SOLAM, RegSOLAM, UniExp
    from telic.auc.estimators.stochastic import SPAM, SPDAM, VRSPAM
    from telic.auc.file_design import FileDesign
    from telic.auc.partitioned import auc_in_pieces, exact_in_pieces, moments_of
    from telic.auc.passes import cg_in_pieces, spam_in_pieces
    from telic.auc.report import diagnosis_page
    from telic.auc.table_ranker import Labelled, Ranker, fit_measured, read_labelled, search_beta
else:
    __getattr__, __dir__ = lazy_names(__name__)

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
    "FileDesign",
    "Labelled",
    "PairwiseAUC",
    "Ranker",
    "RegSOLAM",
    "UniExp",
    "auc_in_pieces",
    "cg_in_pieces",
    "compare_rankers",
    "diagnosis_page",
    "exact_in_pieces",
    "fit_measured",
    "moments_of",
    "read_labelled",
    "search_beta",
    "spam_in_pieces",
]
