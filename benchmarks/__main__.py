"""`python -m benchmarks PAGE`: measure, print a page of docs and, with --write, write it.

One thread, which is set before NumPy is loaded.
"""

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from rich.console import Console  # noqa: E402
from rich.markdown import Markdown  # noqa: E402

from benchmarks.form import OPTIONS, Run  # noqa: E402

DOCS = Path(__file__).parents[1] / "docs" / "measured"
PAGES = {
    "optim": "optim.page",
    "optim-auto": "optim.auto",
    "optim-paths": "optim.paths",
    "optim-multinomial": "optim.multinomial",
    "admm": "admm.page",
    "auc": "auc.page",
    "completion": "completion.page",
    "completion-engine": "completion.engine",
    "completion-index": "completion.index",
    "amazonqac-memory": "completion.amazonqac_memory",
    "service": "completion.service",
    "soak": "completion.soak",
    "specialty": "specialty.full_size",
    "specialty-memory": "specialty.memory",
    "specialty-discovery": "specialty.discovery",
    "specialty-reasons": "specialty.reasons",
    "privacy": "privacy.page",
    "privacy-fakes": "privacy.fakes",
    "scale": "scale.page",
    "start": "start.page",
    "earlier": "earlier.page",
}
"""The module of each page; `benchmarks.form` says what it holds."""


def main(words: list[str]) -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("page", choices=PAGES, metavar="PAGE", help=", ".join(PAGES))
    chosen = parser.parse_args(words[:1]).page
    module = import_module(f"benchmarks.{PAGES[chosen]}")
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {chosen}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, (default, meaning) in (OPTIONS | getattr(module, "OPTIONS", {})).items():
        shown = f"{meaning} [default: {default}]" if default else meaning
        parser.add_argument(f"--{name}", default=default, type=type(default), help=shown)
    parser.add_argument("--work", type=Path, help="folder that keeps what is finished")
    parser.add_argument("--write", action="store_true", help=f"write docs/measured/{module.FILE}")
    given = vars(parser.parse_args(words[1:]))
    write = given.pop("write")
    if write and given["only"]:
        parser.error("--write takes a whole page: make its parts with --work, then all of it")
    command = f'make bench ARGS="{chosen} --write"'
    text = f"{module.page(Run(**given)).rstrip()}\n\nWritten by `{command}`; do not edit.\n"
    if write:
        (DOCS / module.FILE).write_text(text, encoding="utf-8")
    Console(width=150).print(Markdown(text))


if __name__ == "__main__":
    main(sys.argv[1:])
