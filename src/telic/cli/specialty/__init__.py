"""`telic specialty`: a file for each few commands."""

from telic.cli.specialty import discover

app = discover.app
