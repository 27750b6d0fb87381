"""The file of tenants: whose keys are known, and on whose pages their search boxes stand."""

import os
import re
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import tomlkit

from telic.data.own_outputs import alone_in, refuse_unwritable
from telic.errors import InputError
from telic.serve.callers.tokens import digest_of, new_key

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_FLAGS = ("visitors", "admin", "editor")
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{1,5}))?/*"
)
_OWN_PORTS = {"http": 80, "https": 443}
MAX_PORT = 65535
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Tenant:
    """Somebody with keys, whose users are apart from everybody else's."""

    name: str
    """Lower-case letters, digits and hyphens."""
    keys: tuple[str, ...] = ()
    """SHA-256 of each key, in hex digits; two while one replaces the other."""
    origins: tuple[str, ...] = ()
    """Whose pages may ask, such as https://shop.example."""
    visitors: bool = False
    """Whether these pages may make anybody who comes a user, of a random id."""
    admin: bool = False
    """Whether the keys also open the figures of all tenants."""
    editor: bool = False
    """Whether the keys also change what is suggested, to all tenants."""


def read_tenants(path: str | Path) -> dict[str, Tenant]:
    """Return the tenants of a TOML file, a table for each, by name.

    Raises
    ------
    InputError
        If the file cannot be read, can be read by others, or says what is not understood.
    """
    path = Path(path)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise InputError(f"{path}: others may read it, and sign tokens. Run: chmod 600 {path}")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no TOML ({error}).") from None
    tenants = {name: _tenant(path, name, table) for name, table in given.items()}
    whose: dict[str, str] = {}
    for name, tenant in tenants.items():
        for digest in tenant.keys:
            if whose.setdefault(digest, name) != name:
                raise InputError(
                    f"{path}: [{name}]: the key {digest[:8]}… is [{whose[digest]}]'s, too. Leave "
                    "it in one of them."
                )
    return tenants


def add_key(
    path: str | Path,
    name: str,
    *,
    origins: Iterable[str] = (),
    visitors: bool = False,
    admin: bool = False,
    editor: bool = False,
) -> str:
    """Add a key to a tenant, made if it is new, and return it: the file holds its digest alone.

    Everything else in the file stays as it is written, comments too; a link stays a link.
    """
    path = Path(os.path.realpath(path))
    refuse_unwritable(path)
    with alone_in(path.parent):
        document = tomlkit.document()
        if path.exists():
            read_tenants(path)
            document = tomlkit.parse(path.read_text(encoding="utf-8"))
        table, key = document.setdefault(name, {}), new_key()
        # On a line of its own: tomlkit's `append` after a comment writes what is no TOML.
        table.setdefault("keys", []).add_line(digest_of(key))
        for given in origins:
            origin = checked_origin(given, f"{path}: [{name}]")
            if origin not in table.setdefault("origins", []):
                table["origins"].add_line(origin)
        for flag, wanted in zip(_FLAGS, (visitors, admin, editor), strict=True):
            if wanted:
                table[flag] = True
        text = tomlkit.dumps(document)
        _tenant(path, name, tomllib.loads(text)[name])
        # A temporary folder and its files are their owner's alone.
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            file = Path(folder, path.name)
            file.touch(mode=0o600)
            file.write_text(text, encoding="utf-8")
            os.replace(file, path)
    return key


def checked_origin(origin: str, where: str) -> str:
    """Return an origin as browsers write it; raise InputError if it is none.

    They leave out the port that is their scheme's own, and write names in ASCII.
    """
    found = _ORIGIN.fullmatch(origin.lower())
    port = int(found["port"] or 0) if found else 0
    if not found or port > MAX_PORT:
        raise InputError(
            f"{where}: {origin!r} is no origin, expected https://NAME or http://NAME, with the "
            "port if it has one. Write a name that is not in ASCII as browsers send it, xn--…"
        )
    usual = f"{found['scheme']}://{found['name']}"
    return usual if port in (0, _OWN_PORTS[found["scheme"]]) else f"{usual}:{port}"


def _tenant(path: Path, name: str, table: Any) -> Tenant:
    where = f"{path}: [{name}]"
    if not _NAME.fullmatch(name) or not isinstance(table, dict):
        raise InputError(
            f"{where}: expected a table named by at most 32 lower-case letters, digits, hyphens."
        )
    known = {field.name for field in fields(Tenant)} - {"name"}
    for key, value in table.items():
        if key not in known:
            raise InputError(f"{where}: {key!r} is unknown, expected {', '.join(sorted(known))}.")
        if key in _FLAGS:
            right = isinstance(value, bool)
        else:
            right = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if not right:
            expected = "true or false" if key in _FLAGS else "a list of texts"
            raise InputError(f"{where}: {key!r} is {value!r}, expected {expected}.")
    for digest in table.get("keys", ()):
        if not _DIGEST.fullmatch(digest):
            raise InputError(
                f"{where}: 'keys' holds what is no SHA-256. Add keys by: telic completion key"
            )
    given: dict[str, Any] = {
        key: value if isinstance(value, bool) else tuple(value) for key, value in table.items()
    }
    tenant = Tenant(name, **given)
    return replace(tenant, origins=tuple(checked_origin(each, where) for each in tenant.origins))
