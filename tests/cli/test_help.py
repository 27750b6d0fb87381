from typer.main import get_command

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
