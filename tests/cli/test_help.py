import pytest
from rich.text import Text
from typer.main import get_command
from typer.testing import CliRunner

from telic.cli import app


def commands(command, name="telic"):
    """Every command that does something, by its whole name."""
    parts = getattr(command, "commands", None)
    if not parts:
        yield name, command
    for part, inner in (parts or {}).items():
        yield from commands(inner, f"{name} {part}")


def test_commands_and_what_they_take_are_explained():
    every = dict(commands(get_command(app)))
    assert len(every) > 40
    assert [name for name, command in every.items() if not command.help] == []
    given = [(name, given) for name, command in every.items() for given in command.params]
    assert [f"{name} {one.name}" for name, one in given if not one.help] == []


def test_help_is_shown_whole():
    """Words in brackets would be taken for a style, and left out."""
    for name, command in commands(get_command(app)):
        for said in (command.help, *(one.help for one in command.params)):
            assert Text.from_markup(said).plain == said, name


def test_no_number_is_nan_or_infinite():
    """NaN passes through many a comparison."""
    looked_at = 0
    for name, command in commands(get_command(app)):
        for one in command.params:
            if one.display_type(None).startswith("<float"):
                for given in ("nan", "inf"):
                    words = [*name.split()[1:], one.opts[0], given]
                    said = CliRunner().invoke(app, words)
                    assert f"Invalid value for '{one.opts[0]}'" in said.stderr, words
                looked_at += 1
    assert looked_at > 20


def test_every_type_has_a_name_and_only_what_is_on_has_an_off_switch():
    """An off switch of what is off is a second column of long names, which leaves no room."""
    for name, command in commands(get_command(app)):
        for one in command.params:
            assert one.metavar or one.display_type(None) != "<Any>", f"{name} {one.name}"
            assert not one.secondary_opts or one.default is not False, f"{name} {one.name}"


def test_no_option_is_cut_at_80_columns(monkeypatch, capsys):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    looked_at = 0
    for name, command in commands(get_command(app)):
        names = [x for one in command.params for x in (*one.opts, *one.secondary_opts)]
        if max(map(len, names), default=0) < 15:
            continue  # drawing a page takes milliseconds, and short names have room
        with pytest.raises(SystemExit):
            command.main(["--help"], prog_name=name)
        shown, looked_at = capsys.readouterr().out, looked_at + 1
        assert max(map(len, shown.splitlines())) == 80
        cut = [x for x in names if x.startswith("--") and x not in shown]
        assert cut == [], f"{name}: {cut}"
    assert looked_at > 5
