"""Paper 001: test AUC of SPAM, SPDAM and their rivals, four tables, run again."""

from typing import Any

from telic.report import Report
from telic.study.auc_published import study_of
from telic.study.paper001.published import TABLES
from telic.study.steps import Steps


def study(steps: Steps, **settings: Any) -> Report:
    """Run the paper's tables again; the settings are those of `study_of`."""
    return study_of("001", TABLES, steps, **settings)
