"""What document 001 says of SPAM, SPDAM and their rivals, and how it is tried."""

from telic.study.auc_papers.claims import above, auc, near, printed, reachable
from telic.study.auc_papers.paper001 import ANOMALIES, BENCHMARK, METHODS, PRIMAL_DUAL

FIRST, SECOND = "001: batch and online methods", "001: SPDAM and its rivals"
THIRD, FOURTH = "001: benchmark sets", "001: anomaly detection"
CLAIMS = (
    near(FIRST, METHODS),
    reachable(FIRST, METHODS),
    above(FIRST, METHODS, "SPAM-L2", "SOLAM"),
    above(FIRST, METHODS, "SPAM-L2", "OAM-gra"),
    above(FIRST, METHODS, "OPAUC", "SPAM-L2"),
    auc(FIRST, METHODS, "covtype", "SPAM-L2"),
    near(SECOND, PRIMAL_DUAL),
    above(SECOND, PRIMAL_DUAL, "SPDAM", "regSOLAM"),
    above(SECOND, PRIMAL_DUAL, "B-LS-SVM", "SPDAM"),
    near(THIRD, BENCHMARK),
    above(THIRD, BENCHMARK, "SPDAM", "regSOLAM"),
    near(FOURTH, ANOMALIES),
    above(FOURTH, ANOMALIES, "SPDAM", "regSOLAM"),
)
PRINTED = (
    printed(FIRST, METHODS),
    printed(SECOND, PRIMAL_DUAL),
    printed(THIRD, BENCHMARK),
    printed(FOURTH, ANOMALIES),
)
