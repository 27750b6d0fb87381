"""Settings read from options, the environment and a file, in this order; and the table of them.

``python -m telic.serve.operation.settings_sources`` prints the table of
docs/reference/service-settings.md.
"""

import difflib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, NamedTuple

from telic.data.databases import shown
from telic.errors import InputError
from telic.serve.operation.settings import Settings, compacted_beside, database_beside

VARIABLE = "TELIC_SERVE_"
"""What a setting's environment variable begins with."""
_SETTINGS = {each.name: each for each in fields(Settings)}


class Given(NamedTuple):
    """Settings, and where each that is no default came from."""

    settings: Settings
    sources: dict[str, str]


def read_settings(
    model: str | Path,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    file: str | Path | None = None,
) -> Given:
    """Return the service's settings for a model.

    Parameters
    ----------
    model : path
        Model folder; the database, and lists with changes, are beside it unless others are named.
    options : sequence of str
        Such as ``["--max-query", "100", "--names=box.example"]``; a list's option may be repeated.
    environment : mapping, optional
        Variables such as TELIC_SERVE_MAX_QUERY; lists by commas.
    file : path, optional
        TOML with the settings' names as they are in Python.

    Raises
    ------
    InputError
        If a setting is unknown or cannot be what it is given as.

    Examples
    --------
    >>> settings, sources = read_settings("box", ["--max-query", "9"], {"TELIC_SERVE_PORT": "80"})
    >>> settings.max_query, settings.port, sources["port"]
    (9, 80, 'TELIC_SERVE_PORT')
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for found in (_from_file(file), _from_environment(environment or {}), _from_options(options)):
        for name, (value, source) in found.items():
            values[name], sources[name] = value, source
    values["database"] = values.get("database") or database_beside(model)
    values["compacted"] = values.get("compacted") or compacted_beside(model)
    return Given(Settings(**values), sources)


def split_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tell what is no option from settings' options with their values, in any order.

    Examples
    --------
    >>> split_options(["--log-json", "box", "--rate", "3"])
    (['box'], ['--log-json', '--rate', '3'])
    """
    plain, options, rest = [], [], list(arguments)
    while rest:
        given = rest.pop(0)
        if not given.startswith("--"):
            plain.append(given)
            continue
        options.append(given)
        name, equals, _ = given.partition("=")
        takes = not isinstance(_known_option(name).default, bool)
        if not takes and not equals and rest and rest[0] in ("true", "false"):
            raise InputError(f"{name} {rest[0]}: write {name}={rest[0]}.")
        if takes and not equals:
            options += rest[:1]
            del rest[:1]
    return plain, options


def settings_table(given: Given) -> list[tuple[str, str, str]]:
    """Return each setting's name, value without passwords, and where that came from."""
    rows = []
    for name in _SETTINGS:
        value = getattr(given.settings, name)
        said = shown(value) if name == "database" else _said(value)
        rows.append((name, said, given.sources.get(name, "default")))
    return rows


def settings_page() -> str:
    """Return the page that says what each setting means."""
    lines = [
        "# Settings of the service",
        "",
        "You can give each setting as an option of `telic completion serve`, as an environment",
        "variable, or in a TOML file that `--settings` names. An option overrides a variable, and",
        "a variable overrides the file. Give a list by repeating the option, by commas in the",
        "variable, or as an array in the file. `--show-settings` prints the settings in force, and",
        "where each comes from.",
        "",
        "| in the file | option | variable | default | meaning |",
        "|---|---|---|---|---|",
    ]
    for name, each in _SETTINGS.items():
        default = _said(each.default)
        about = each.metadata["about"]
        lines.append(
            f"| `{name}` | `{option_of(name)}` | `{VARIABLE}{name.upper()}` | "
            f"{f'`{default}`' if default else ''} | {about} |"
        )
    return "\n".join(lines) + "\n"


def option_of(name: str) -> str:
    """Return the option that sets a setting."""
    return "--" + name.replace("_", "-")


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _from_file(path: str | Path | None) -> dict[str, tuple[Any, str]]:
    if path is None:
        return {}
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no TOML ({error}).") from None
    return {
        name: (_value(_known(name, str(path)), value, f"{path}: {name}"), str(path))
        for name, value in given.items()
    }


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    found = {}
    for variable, text in environment.items():
        if variable.startswith(VARIABLE):
            each = _known(variable.removeprefix(VARIABLE).lower(), variable)
            given: Any = text
            if isinstance(each.default, tuple):
                given = [part.strip() for part in text.split(",") if part.strip()]
            found[each.name] = (_value(each, given, variable), variable)
    return found


def _from_options(options: Sequence[str]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    rest = list(options)
    while rest:
        option, equals, text = rest.pop(0).partition("=")
        each = _known_option(option)
        if not equals:
            if isinstance(each.default, bool):
                text = "true"
            elif not rest:
                raise InputError(f"{option} needs a value.")
            else:
                text = rest.pop(0)
        given: Any = text
        if isinstance(each.default, tuple):
            given = [*(found[each.name][0] if each.name in found else ()), text]
        found[each.name] = (_value(each, given, option), option)
    return found


def _known_option(option: str) -> Field[Any]:
    return _known(option.removeprefix("--").replace("-", "_"), option)


def _known(name: str, where: str) -> Field[Any]:
    if name not in _SETTINGS:
        near = difflib.get_close_matches(name, _SETTINGS, n=1)
        hint = f" Is {near[0]} meant?" if near else ""
        raise InputError(f"{where}: there is no setting {name!r}.{hint} See --show-settings.")
    return _SETTINGS[name]


def _value(each: Field[Any], given: Any, where: str) -> Any:
    """Return a value of the kind that its default is of."""
    kind = type(each.default)
    try:
        value = _of_kind(kind, given)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        expected = {bool: "true or false", int: "a whole number", float: "a number"}
        raise InputError(
            f"{where} is {given!r}, expected {expected.get(kind, 'a list of texts')}."
            if kind is not str
            else f"{where} is {given!r}, expected a text."
        ) from None
    least, most = each.metadata["least"], each.metadata["most"]
    if least is not None and value < least:
        raise InputError(f"{where} is {given!r}, expected at least {least}.")
    if most is not None and value > most:
        raise InputError(f"{where} is {given!r}, expected at most {most:,}.")
    return value


def _of_kind(kind: type, given: Any) -> Any:
    if kind is bool:
        return given if isinstance(given, bool) else {"true": True, "false": False}[given.lower()]
    if isinstance(given, bool):
        raise TypeError
    if kind is tuple:
        if not isinstance(given, list) or not all(isinstance(part, str) for part in given):
            raise TypeError
        return tuple(given)
    if kind is str and not isinstance(given, str):
        raise TypeError
    value = kind(given)
    if kind is int and isinstance(given, float):
        raise TypeError
    if kind is float and not math.isfinite(value):
        raise ValueError
    return value


if __name__ == "__main__":
    print(settings_page(), end="")
