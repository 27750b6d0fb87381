"""Paper 002: test AUC of VRSPAM and its rivals, Table 1, run again."""

from typing import Any

from telic.report import Report
from telic.study.auc_published import study_of
from telic.study.paper002.published import TABLES
from telic.study.steps import Steps


def study(steps: Steps, **settings: Any) -> Report:
    """Run the paper's tables again; the settings are those of `study_of`."""
    return study_of("002", TABLES, steps, **settings)
