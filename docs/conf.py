"""Sphinx: pages in Markdown, commands and API from their own words, the gallery from examples/."""

import re
from pathlib import Path

from docutils.nodes import literal_block
from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation
from typer.main import get_command

import telic
from telic.cli import app as commands

project = "telic"
author = "The telic developers"
copyright = "2026, The telic developers"
release = telic.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
smartquotes = False  # options such as --found are copied from the pages
html_title = "telic"
html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_toc_level": 2}
html_static_path = ["_static"]
html_css_files = ["telic.css"]
html_show_sourcelink = False
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # README-style links to files outside docs/
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "show_signature": False,
}


def leave_out(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to estimators: its texts lead into its own glossary."""
    return skip or (name.startswith("set_") and name.endswith("_request"))


def name_arrays(app, what, name, obj, options, signature, returns):
    """Write ArrayLike by its name, not as the union of ten types that it stands for."""
    if signature:
        return signature.replace(stringify_annotation(ArrayLike, "smart"), "ArrayLike"), returns


def leave_out_aliases(app, what, name, obj, options, lines):
    """Leave out what Python says of a named tuple's field that has no words of its own."""
    if lines and re.fullmatch(r"Alias for field number \d+", lines[0]):
        lines.clear()


def usage(command, name):
    """Return a command with its arguments in order and the options that it must have."""
    words = [name]
    for parameter in command.params:
        if parameter.param_type_name == "option":
            words += [f"{parameter.opts[0]} …"] * parameter.required
            continue
        word = parameter.name.upper() + "…" * (parameter.nargs == -1)
        words.append(word if parameter.required else f"[{word}]")
    return " ".join(words)


WIDE = 110
"""Characters of what commands print that fit beside the site's menus."""


def default_of(option):
    """Return what an option is where it is not given, in words; "" if there is nothing to say."""
    default = option.default
    if option.param_type_name != "option" or callable(default) or default in (None, ()):
        return ""
    if isinstance(default, bool):  # of a flag that has no other side it is plain
        sides = option.opts, option.secondary_opts
        return f" Default: `{sides[not default][0]}`." if all(sides) else ""
    return f" Default: `{default}`."


def command_lines(command, name="telic"):
    """Yield the Markdown of a command, or of all commands below it, from its help."""
    parts = getattr(command, "commands", None)
    if parts:
        if " " in name:
            yield f"{'#' * (1 + name.count(' '))} {name}\n\n{command.help}\n"
        for part in parts.values():
            yield from command_lines(part, f"{name} {part.name}")
        return
    yield f"{'#' * (1 + name.count(' '))} {name}\n\n{(command.help or '').strip()}\n"
    yield f"Usage: `{usage(command, name)}`\n\n| argument or option | meaning |\n|---|---|"
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name == "help":
            continue
        is_option = parameter.param_type_name == "option"
        names = (
            ", ".join((*parameter.opts, *parameter.secondary_opts)) if is_option else parameter.name
        )
        said = (getattr(parameter, "help", None) or "").replace("|", "\\|")
        said = said.replace(
            "docs/reference/data-contracts.md", "[data contracts](data-contracts.md)"
        )
        yield f"| `{names}` | {said}{default_of(parameter)} |"
    yield ""


def write_commands(app):
    """Write the page of all commands, which git ignores."""
    head = (
        "# Command line\n\nThis page shows what `--help` says of every command. Bad input ends a "
        "command with exit code 2.\n"
    )
    page = Path(app.srcdir) / "reference" / "command-line.md"
    page.write_text("\n".join([head, *command_lines(get_command(commands))]), encoding="utf-8")


def mark_wide_tables(app, doctree, name):
    """Give what a command prints the width of its tables; elsewhere its sentences may wrap."""
    for block in doctree.findall(literal_block):
        lines = block.astext().splitlines() if block.get("language") == "console" else []
        widest = max((len(line) for line in lines if line.startswith(("┏", "│"))), default=0)
        if widest:
            block["classes"] += ["tables", "wide"] if widest > WIDE else ["tables"]


def setup(app):
    """Tell Sphinx of the functions above."""
    app.connect("autodoc-skip-member", leave_out)
    app.connect("autodoc-process-signature", name_arrays)
    app.connect("autodoc-process-docstring", leave_out_aliases, priority=400)  # before numpydoc
    app.connect("builder-inited", write_commands)
    app.connect("doctree-resolved", mark_wide_tables)
