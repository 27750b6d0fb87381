"""Settings: one table, from options before variables before a file, with wrong ones named."""

import runpy
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from telic.errors import InputError
from telic.serve import Settings
from telic.serve.operation import settings_sources
from telic.serve.operation.settings_sources import (
    option_of,
    read_settings,
    settings_page,
    settings_table,
    split_options,
)

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_settings_is_the_table(capsys):
    expected = (DOCS / "reference" / "service-settings.md").read_text(encoding="utf-8")
    assert settings_page() == expected, "make it: python -m telic.serve.operation.settings_sources"
    runpy.run_path(settings_sources.__file__, run_name="__main__")
    assert capsys.readouterr().out == expected


def test_an_option_goes_before_a_variable_and_that_before_the_file(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text('max_query = 1\nmax_id = 1\nmax_body = 1\nnames = ["a", "b"]\nrate = 1\n')
    environment = {"TELIC_SERVE_MAX_QUERY": "2", "TELIC_SERVE_MAX_ID": "2", "HOME": "/"}
    given = read_settings(tmp_path / "box", ["--max-query=3"], environment, file)
    settings = given.settings
    assert (settings.max_query, settings.max_id, settings.max_body) == (3, 2, 1)
    assert (settings.names, settings.rate) == (("a", "b"), 1.0)
    assert settings.database == f"sqlite:///{tmp_path}/box.sqlite"
    sources = {name: source for name, _, source in settings_table(given)}
    assert sources["max_query"] == "--max-query"
    assert sources["max_id"] == "TELIC_SERVE_MAX_ID"
    assert sources["max_body"] == str(file)
    assert sources["port"] == "default"


@pytest.mark.parametrize("each", fields(Settings), ids=lambda each: each.name)
def test_every_setting_can_be_given_in_every_way(tmp_path, each):
    kinds = {bool: "true", int: "7", float: "7.5", str: "sqlite:///x", tuple: "one"}
    text = kinds[type(each.default)]
    quoted = {str: f'"{text}"', tuple: f'["{text}"]'}.get(type(each.default), text)
    (tmp_path / "s.toml").write_text(f"{each.name} = {quoted}\n")
    variable = {f"TELIC_SERVE_{each.name.upper()}": text}
    found = [
        read_settings("box", [f"{option_of(each.name)}={text}"]),
        read_settings("box", (), variable),
        read_settings("box", (), {}, tmp_path / "s.toml"),
    ]
    values = [getattr(given.settings, each.name) for given in found]
    assert values[0] == values[1] == values[2] != each.default
    assert {type(value) for value in values} == {type(each.default)}


@pytest.mark.parametrize(
    ("options", "environment", "text", "said"),
    [
        (["--max-qurey", "1"], {}, "", "--max-qurey: there is no setting.*Is max_query meant"),
        (["--max-query"], {}, "", "--max-query needs a value"),
        (["--max-query", "many"], {}, "", "--max-query is 'many', expected a whole number"),
        (["--max-query", "0"], {}, "", "--max-query is '0', expected at least 1"),
        (["--pad-replies", str(2**20 + 1)], {}, "", "expected at most 1,048,576"),
        (["--port", "65536"], {}, "", "expected at most 65,535"),
        (["--rate", "nan"], {}, "", "--rate is 'nan', expected a number"),
        (["--log-json=yes"], {}, "", "--log-json is 'yes', expected true or false"),
        ([], {"TELIC_SERVE_X": "1"}, "", "TELIC_SERVE_X: there is no setting"),
        ([], {}, "port = 1.5", "port is 1.5, expected a whole number"),
        ([], {}, "port = true", "port is True, expected a whole number"),
        ([], {}, "max_open = inf", "max_open is inf, expected a whole number"),
        ([], {}, f"rate = 1{'0' * 400}", "0, expected a number"),
        ([], {}, "names = 'a'", "names is 'a', expected a list of texts"),
        ([], {}, "host = 1", "host is 1, expected a text"),
        ([], {}, "port =", "is no TOML"),
    ],
)
def test_what_cannot_be_a_setting_is_named(tmp_path, options, environment, text, said):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        read_settings("box", options, environment, tmp_path / "s.toml")


def test_options_and_files_come_in_any_order():
    assert split_options(["a", "--names", "b", "c", "--log-json", "d"]) == (
        ["a", "c", "d"],
        ["--names", "b", "--log-json"],
    )
    with pytest.raises(InputError, match="--log-json false: write --log-json=false"):
        split_options(["--log-json", "false", "box"])
    given = read_settings("box", ["--names", "a", "--names=b"])
    assert given.settings.names == ("a", "b")


@pytest.mark.parametrize("url", ["nonsense", "postgresql+psycopg://host:port/x"])
def test_show_settings_says_what_is_no_database(url):
    given = read_settings("box", ["--database", url], {})
    with pytest.raises(InputError, match="the database is no SQLAlchemy URL"):
        settings_table(given)


def test_show_settings_prints_them_without_passwords():
    url = "postgresql+psycopg://bob:hunter2@host/x"
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from telic.cli import main; main()", "completion", "serve"),
            *("--port", "7", "box", "--show-settings", "--database", url),
        ],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["port", "7", "--port"] in lines
    assert ["host", "127.0.0.1", "default"] in lines
    assert "hunter2" not in done.stdout
    assert len(lines) == 1 + len(fields(Settings))


WITHOUT = {
    "port", "rate", "key_rate", "compact_after", "fresh_seconds", "stop_seconds", "propensity",
    "control", "pad_replies", "max_submissions", "max_states", "max_batches", "interleave",
}  # fmt: skip
"""Settings that are numbers and may be 0."""
FROM_1 = {"max_boost", "record_megabytes"}
"""Settings that are numbers, of any kind, and at least 1."""


@pytest.mark.parametrize(
    "each", [each for each in fields(Settings) if type(each.default) in (int, float)],
    ids=lambda each: each.name,
)  # fmt: skip
def test_numbers_have_a_least_value(each):
    option, whole = option_of(each.name), isinstance(each.default, int)
    least = "0" if each.name in WITHOUT else "1" if whole or each.name in FROM_1 else "0.001"
    below = {"0": "-1", "1": "0", "0.001": "0.0009"}[least]
    assert getattr(read_settings("box", [option, least]).settings, each.name) == float(least)
    with pytest.raises(InputError, match=f"{option} is '{below}', expected at least {least}"):
        read_settings("box", [option, below])


def test_a_setting_that_is_on_or_off_needs_no_value(tmp_path):
    assert read_settings("box", ["--log-json", "--port", "7"]).settings.log_json
    with pytest.raises(InputError, match=r"none\.toml: cannot be read"):
        read_settings("box", file=tmp_path / "none.toml")
