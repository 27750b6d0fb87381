"""`telic specialty`: a file for each few commands, here in the order of the help."""

# isort: off
from telic.cli.specialty import options, logs, discover, explain, report, review  # noqa: F401

app = options.app
app.add_typer(review.app, name="review")
