"""`telic completion`: a file for each few commands, here in the order of the help."""

# isort: off
from telic.cli.completion import options, simulate, evaluate, fit, serve  # noqa: F401
from telic.cli.completion import forget_and_export, replay, signals  # noqa: F401

app = options.app
