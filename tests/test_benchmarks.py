"""Every page of benchmarks has the one form, and says in docs which command writes it."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import form
from benchmarks.__main__ import DOCS, PAGES, main
from benchmarks.form import Run, grid
from benchmarks.scale.page import Took, verdict

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def last_line(name):
    return f'\n\nWritten by `make bench ARGS="{name} --write"`; do not edit.\n'


def test_a_page_ends_with_the_command_that_writes_it(tmp_path, monkeypatch):
    module = import_module("benchmarks.optim.paths")
    monkeypatch.setattr(module, "page", lambda run: "# Paths\n\nFound.\n\n")
    monkeypatch.setattr("benchmarks.__main__.DOCS", tmp_path)
    main(["optim-paths", "--write"])
    written = (tmp_path / module.FILE).read_text(encoding="utf-8")
    assert written == "# Paths\n\nFound." + last_line("optim-paths")


def test_no_measured_page_begins_with_how_it_was_written():
    pages = [page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")]
    said = [re.findall(r"Written by|wrote this", page) for page in pages]
    assert [len(each) for each in said].count(1) == len(pages) - 2  # the index and one card: none
    assert not [page for page in pages if re.search("Written by|wrote", page.split("\n\n")[1])]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_form_and_its_command(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    file = import_module(f"benchmarks.{PAGES[name]}").FILE
    assert f"write docs/measured/{file}" in capsys.readouterr().out
    if (DOCS / file).exists():
        page = (DOCS / file).read_text(encoding="utf-8")
        assert page.endswith(last_line(name))


def test_a_row_says_whether_it_meets_its_targets():
    runs = {
        "count by DuckDB": Took(2.0, 0.0, 0, None),
        "count in pieces": Took(3.2, 0.0, 2**30, None),
        "users' weights, two threads": Took(2.0, 0.0, 0, None),
        "users' weights, one worker process": Took(4.0, 0.0, 0, None),
        "users' weights, two worker processes": Took(2.6, 0.0, 0, None),
        "100 rounds, two worker processes": Took(5.5, 0.0, 0, None),
        "fit all signals": Took(400.0, 310.0, 2**31, 1e-9),
    }
    assert {name: verdict(name, runs, "1GiB") for name in runs} == {
        "count by DuckDB": "",
        "count in pieces": "≤ 1.5 × count by DuckDB: missed (1.6); ≤ 1.15 × memory: met",
        "users' weights, two threads": "",
        "users' weights, one worker process": "",
        "users' weights, two worker processes": "≤ 0.65 × users' weights, one worker process: met; "
        "≤ 1.3 × users' weights, two threads: met",
        "100 rounds, two worker processes": "≤ 5 s: missed (5.5)",
        "fit all signals": "≤ 300 processor s: missed (310); ≤ 3 GiB: met",
    }


def test_every_product_has_a_page():
    folders = {path.parent.name for path in BENCHMARKS.glob("*/__init__.py")}
    assert folders == {module.partition(".")[0] for module in PAGES.values()}


def test_benchmarks_stand_without_the_papers_room():
    assert [p for p in BENCHMARKS.rglob("*.py") if "telic.study" in p.read_text("utf-8")] == []


def test_a_part_is_no_page_to_write(capsys):
    with pytest.raises(SystemExit):
        main(["auc", "--only", "stream", "--write"])
    assert "takes a whole page" in capsys.readouterr().err


def test_a_finished_piece_is_taken_again(tmp_path):
    made = []

    def make():
        made.append(1)
        return [["a", 0.5]]

    for run in (Run(tmp_path / "work", only=""), Run(tmp_path / "work", only="")):
        assert run.kept("piece, 1/2", make) == [["a", 0.5]]
    assert len(made) == 1
    assert Run(None, only="").kept("piece, 1/2", make) == [["a", 0.5]]
    assert len(made) == 2


def test_nothing_is_taken_over_from_other_code_or_options(tmp_path, monkeypatch):
    assert Run(tmp_path, only="", repeat=5).kept("piece", lambda: "old") == "old"
    assert Run(tmp_path, only="p", repeat=5).kept("piece", lambda: "new") == "old"
    assert Run(tmp_path, only="", repeat=1).kept("piece", lambda: "new") == "new"
    monkeypatch.setattr(form, "_code", lambda: "other")
    assert Run(tmp_path, only="", repeat=5).kept("piece", lambda: "newer") == "newer"


def test_a_grid_is_markdown():
    assert grid(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"


def test_rows_are_those_of_the_parts_that_are_asked_for(tmp_path):
    def counted(number):
        yield from ([word, number] for word in "ab")

    parts = {"one part": counted, "another": counted}
    assert Run(tmp_path, only="one").rows(parts, 3) == [["a", 3], ["b", 3]]
    assert Run(None, only="").rows(parts, 3) == [["a", 3], ["b", 3]] * 2
