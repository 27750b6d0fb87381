"""`telic auc`: a file for each few commands, here in the order of the help."""

# isort: off
from telic.cli.auc import options, fit, compare  # noqa: F401

app = options.app
