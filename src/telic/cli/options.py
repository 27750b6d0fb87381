"""What commands of several products ask of the options that they were given."""

import math
from collections.abc import Sequence
from pathlib import Path

import typer

from telic.errors import InputError


def finite(value: float | None) -> float | None:
    """Refuse what is no number or has no end, which no range does; a callback of options."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value}, expected a finite number.")
    return value


def refuse_given(context: typer.Context, names: Sequence[str], why: str) -> None:
    """Refuse options of the command line that would change nothing."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(f"--{name.replace('_', '-')} changes nothing {why}. Leave it out.")


def refuse_ending(option: str, path: Path, kind: str, *endings: str) -> None:
    """Refuse an output's name whose ending promises another kind of file."""
    if path.suffix.lower() not in ("", *endings):
        raise InputError(f"{option} {path}: is written as {kind}. Name a {endings[0]} file.")
