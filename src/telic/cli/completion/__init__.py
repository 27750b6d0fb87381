"""`telic completion`: a file for each few commands, here in the order of the help."""

# isort: off
from telic.cli.completion import options, simulate, evaluate, fit, serve, replay, signals  # noqa: F401

app = options.app
