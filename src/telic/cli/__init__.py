"""The `telic` command: a folder for each product; bad input gives one line and exit code 2."""

import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from telic.cli import auc, cluster, completion, privacy, specialty, study
from telic.cli.demo import demo
from telic.cli.missing_packages import extra_with
from telic.cli.warmup import warmup
from telic.errors import InputError, TelicError

app = typer.Typer(
    name="telic",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
# Command functions import what they need inside, so that `telic --help` does not wait for numba.
app.command()(demo)
app.add_typer(auc.app, name="auc")
app.add_typer(cluster.app, name="cluster")
app.add_typer(completion.app, name="completion")
app.add_typer(privacy.app, name="privacy")
app.add_typer(specialty.app, name="specialty")
app.add_typer(study.app, name="study")
app.command()(warmup)


def _version(asked: bool) -> None:
    if asked:
        import telic

        typer.echo(f"telic {telic.__version__}")
        raise typer.Exit


@app.callback()
def telic(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Learn what people intend from the traces they leave, use it well, and do not leak it."""


def warn_once(said: set[str]) -> Callable[..., None]:
    """Return what shows the first line of a warning, and each line once.

    Python's own rule of once a place begins anew with each `warnings.catch_warnings`, and other
    libraries' further lines hold numbers that differ from fold to fold.
    """

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        first, *_ = [*str(message).splitlines(), ""]
        line = f"telic: warning: {first}"
        if line not in said:
            said.add(line)
            typer.echo(line, err=True)

    return show


def _refuse_other_encodings(given: list[str]) -> None:
    """Refuse what is not in UTF-8, as names of files may be: Arrow and reports cannot name them."""
    for each in given:
        if not each.isascii() and each != each.encode(errors="replace").decode():
            raise InputError(
                f"{each!a}: is not in UTF-8. Write it so; if it is a file's name, rename the file."
            )


def main() -> None:
    """Run the command line: exit 0 when done, 2 for an error in what was given."""
    warnings.showwarning = warn_once(set())
    try:
        _refuse_other_encodings(sys.argv)
        app()
    except TelicError as error:
        said = str(error)
    except ModuleNotFoundError as error:
        extra = extra_with(error.name or "")
        if extra is None:
            raise
        said = f"this needs {error.name}. Install it with: pip install 'telic[{extra}]'"
    except SystemError as error:  # raised by a signal that came while a compiled function ran
        if isinstance(error.__cause__, SystemExit):
            raise error.__cause__ from None
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        sys.exit(130)
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        said = (
            f"there is not enough memory{why}. Give less at once, or look for --memory in the "
            "command's --help."
        )
    except OSError as error:  # a full disk, a file without permission
        what = f"{error.filename}: " if error.filename else ""
        said = f"{what}{error.strerror or error}."
    else:
        return
    typer.echo(f"telic: {said}", err=True)
    sys.exit(2)
