"""`telic privacy`: a file for each few commands, here in the order of the help."""

# isort: off
from telic.cli.privacy import options, risk, attacks, networks, release  # noqa: F401

app = options.app
