"""The pages' blocks run and print what the pages show; every command on a page exists.

In `docs/learn`, `docs/how-to` and `docs/explain` a block with a caption is a file that the reader
writes, a `console` block holds commands and what they print, and a `python` block is followed by a
`text` block with what it prints; a `py` block is part of a program or needs machines, and is not
run. Other commands are run, too, or `NEEDS` says what they need.
Numbers may differ by a hundredth of their size, and a line `…` stands for any lines.
``TELIC_WRITE=1 pytest tests/test_pages_run.py`` writes what is printed into the pages.
"""

import os
import re
import shlex
import warnings
from contextlib import chdir, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import click
import matplotlib as mpl
import pytest
from matplotlib import pyplot
from typer.main import get_command
from typer.testing import CliRunner

from telic.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    page
    for part in ("learn", "how-to", "explain")
    for page in (ROOT / "docs" / part).glob("*.md")
    if re.search(r"```(console|python)\n", page.read_text(encoding="utf-8"))
)
# Seconds to minutes of processor time:
LONG = {
    "access-log",
    "answer-a-patient",
    "audit-access",
    "measure-signals",
    "rare-events",
    "specialty",
}
EVERY = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.M | re.S)
PSEUDONYM = re.compile(r"user-[0-9a-f]{10}")  # of a new key in each run
NUMBER = re.compile(r"[-+−]?\d[\d,]*\.?\d*")


def said(command):
    """What a command prints, its progress and warnings left out."""
    words = shlex.split(command, comments=True)
    assert words[0] == "telic", command
    done = CliRunner().invoke(app, words[1:], terminal_width=140)
    assert done.exit_code == 0, f"{command}: {done.output} {done.exception!r}"
    return done.stdout


def session(body):
    """Run a block of commands, each with what it prints below."""
    shown = []
    for command in re.findall(r"^\$ (.*(?:\\\n.*)*)", body, re.M):
        shown += [f"$ {command}", *said(command.replace("\\\n", " ")).rstrip().splitlines()]
    return "".join(line.rstrip() + "\n" for line in shown)


def as_long(shown, got):
    """What was printed, shortened by a line `…` where what was shown is."""
    old, new = (re.split(r"(?m)^(?=\$ )", text) for text in (shown, got))
    parts = []
    for before, now in zip(old, new, strict=True):
        head, gap, tail = before.partition("\n…\n")
        lines = now.splitlines(keepends=True)
        if gap:
            end = len(lines) - tail.count("\n")
            lines = [*lines[: head.count("\n") + 1], "…\n", *lines[end:]]
        parts += lines
    return "".join(parts)


def printed(code, names):
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(code, "page", "exec"), names)
    pyplot.close("all")
    return out.getvalue()


def alike(shown, got):
    """Whether what a page shows is what is printed: words as they are, numbers nearly."""
    shown, got = (PSEUDONYM.sub("user-#", text) for text in (shown, got))
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line.strip() == "…" else "(" + re.escape(NUMBER.sub("#", line)) + ")\n"
        for line in shown.splitlines()
    )
    words = NUMBER.sub("#", got)
    found = re.fullmatch(pattern, words)
    if not found:
        return False
    lines = [line for line in shown.splitlines() if line.strip() != "…"]
    printed_lines = got.splitlines()
    beside = [printed_lines[words.count("\n", 0, start)] for start, _ in found.regs[1:]]
    pairs = zip(numbers("\n".join(lines)), numbers("\n".join(beside)), strict=True)
    return all(a == pytest.approx(b, rel=0.01, abs=0.005) for a, b in pairs)


def test_numbers_are_compared_where_lines_are_left_out():
    shown, got = "a 1.00\n…\nexact 0.81 +0.02\n…\n", "a 1\nb 2\nexact {} {}\nc 4\n"
    assert alike(shown, got.format("0.8101", "+0.02"))
    assert not alike(shown, got.format("0.51", "+0.02"))
    assert not alike(shown, got.format("0.81", "-0.02"))
    assert not alike(shown.replace("exact", "hinge"), got.format("0.81", "+0.02"))


def numbers(text):
    return [float(n.replace(",", "").replace("−", "-")) for n in NUMBER.findall(text)]


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow) if p.stem in LONG else p for p in PAGES],
    ids=lambda page: f"{page.parent.name}-{page.stem}",
)
def test_what_a_page_shows_is_what_its_blocks_print(page, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    mpl.use("Agg")
    text = page.read_text(encoding="utf-8")
    names, wrong, anew, end, got = {}, [], [], 0, ""
    with chdir(tmp_path), warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in BLOCK.finditer(text):
            kind, body = block["kind"], block["body"]
            anew.append(text[end : block.start("body")])
            end = block.end("body")
            if caption := re.match(r":caption: (\S+)\n\n?", body):
                Path(caption[1]).write_text(body[caption.end() :], encoding="utf-8")
            elif kind == "console":
                got = session(body)
            elif kind == "python":
                got = printed(body, names)
                following = BLOCK.match(text, block.end() + 2)
                assert following or not got, f"{page.name}: nothing shows what this prints:\n{body}"
            if kind in ("console", "text") and not alike(body, got):
                wrong.append(f"{page.name} shows\n{body}\nbut this is printed:\n{got}")
                body = as_long(body, got)
            anew.append(body)
    if wrong and os.environ.get("TELIC_WRITE"):
        page.write_text("".join([*anew, text[end:]]), encoding="utf-8")
        return
    assert not wrong, "\n".join(wrong)


def commands(page, shown=None):
    """Commands in a page's code; those alone that are shown with what they print, or not so."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    code = re.findall(r"^    .*$", BLOCK.sub("", text), re.M) if not shown else []
    for block in BLOCK.finditer(text):
        if shown is None or shown is (block["kind"] == "console"):
            code.append(block["body"])
    return re.findall(r"^ *(?:\$ )?(telic [a-z].*)$", "\n".join(code), re.M)


NEEDS = {
    "a port, which it keeps open": r"telic completion serve|telic demo",
    "a cluster or object storage": r"cluster|s3://",
    "a log of keystrokes": r"log\.parquet|model/ --prefix par",
    "compiling for minutes; tests/cli/test_warmup.py does": r"telic warmup",
    "what the reader has": r" [A-Z]{2,}\b|4f1c|next-week|today\.csv|may\.csv|queries\.tsv"
    r"|rows\.parquet|CollegeMsg|tables\.json shop|papers",
}
"""What a command needs that a test of pages does not have, and how to tell such a command."""
MADE_BY = {
    "audit-access": "audit-access",
    "change-a-list": "search-box",
    "choose-an-estimator": "rare-events",
    "embed": "search-box",
    "measure-signals": "measure-signals",
}
"""Pages, and the page whose blocks make the files for their commands."""


@cache
def every_shown():
    """The commands of all pages that are shown with what they print."""
    return {line.strip() for each in EVERY for line in commands(each, shown=True)}


def unshown(page):
    """A page's commands that need nothing and are shown nowhere with what they print."""
    shown = every_shown()
    lines = [line.partition(" # ")[0].strip() for line in commands(page, shown=False)]
    needy = re.compile("|".join(NEEDS.values()))
    return [line for line in lines if line not in shown and not needy.search(line)]


def test_every_command_is_run_or_needs_something():
    assert {page.stem for page in EVERY if unshown(page)} == set(MADE_BY)


@pytest.mark.slow
@pytest.mark.parametrize(("stem", "made_by"), MADE_BY.items())
def test_commands_that_are_shown_without_what_they_print_run(stem, made_by, tmp_path):
    pages = {page.stem: page for page in EVERY}
    names = {}
    with chdir(tmp_path):
        for block in BLOCK.finditer(pages[made_by].read_text(encoding="utf-8")):
            if caption := re.match(r":caption: (\S+)\n\n?", block["body"]):
                Path(caption[1]).write_text(block["body"][caption.end() :], encoding="utf-8")
            elif block["kind"] == "python":
                printed(block["body"], names)
            elif stem == made_by and block["kind"] == "console":
                session(block["body"])
        for line in unshown(pages[stem]):
            said(line)


def test_every_command_on_a_page_exists_with_its_options():
    """Names and options are parsed as the command line would; nothing is run."""
    lines = [(page, line) for page in EVERY for line in commands(page)]
    assert len(lines) > 50
    telic, wrong = get_command(app), []
    for page, line in lines:
        command, words = telic, shlex.split(line.replace("…", ""), comments=True)[1:]
        words = words[: words.index(">")] if ">" in words else words
        try:
            while getattr(command, "commands", None) and words and not words[0].startswith("-"):
                command = command.commands[words.pop(0)]
            command.make_context("telic", words, resilient_parsing=True)
            options = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
            unknown = [w for w in words if w.startswith("--") and w.split("=")[0] not in options]
            assert not unknown, unknown
        except (KeyError, click.ClickException, AssertionError) as error:
            wrong.append(f"{page.name}: {line}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("shown", "got", "same"),
    [
        ("a 1.00\n", "a 1.004\n", True),
        ("a 1.00\n", "a 1.5\n", False),
        ("a\n…\nc\n", "a\nb\nb\nc\n", True),
        ("a\n…\nc\n", "a\nb\n", False),
        ("a b\n", "a c\n", False),
    ],
)
def test_numbers_may_differ_a_little_and_words_may_not(shown, got, same):
    assert alike(shown, got) is same
