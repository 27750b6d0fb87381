"""Which code and settings made a result: finished results are used again only by what made them."""

import ast
import hashlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any


def fingerprint(*sources: Any, settings: Any = None, package: str | None = None) -> str:
    """Return 16 hexadecimal digits that change with the code or the settings of a result.

    Comments, docstrings and layout do not count.

    Parameters
    ----------
    sources : modules, classes or functions
        What computes the result. A function counts by its own text; a module, or the module that
        a class is in, by its text and that of every module of the same package that it imports,
        and so on.
    package : str, optional
        Count imports from this package, such as "telic", instead of from the module's own.
    settings : JSON-able, optional
        Parameters, seeds, a hash of the data: whatever else the result depends on.

    Examples
    --------
    >>> one = fingerprint(settings={"seed": 1})
    >>> one == fingerprint(settings={"seed": 1}), one == fingerprint(settings={"seed": 2})
    (True, False)
    """
    texts: dict[str, str] = {}
    for source in sources:
        if inspect.isfunction(source):
            name = f"{source.__module__}.{source.__qualname__}"
            texts[name] = _code(ast.parse(textwrap.dedent(inspect.getsource(source))))
        else:
            module = source.__name__ if isinstance(source, ModuleType) else source.__module__
            texts |= _modules(module, package or module.rpartition(".")[0])
    whole = json.dumps([sorted(texts.items()), settings], sort_keys=True, default=repr)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


@cache
def _modules(first: str, package: str) -> dict[str, str]:
    """Text of a module and of those of a package that it leads to, by name."""
    found: dict[str, str] = {}
    waiting = [first]
    while waiting:
        name = waiting.pop()
        file = None if name in found else _file(name)
        if file is None:
            continue
        found[name], imports = _parsed(file)
        waiting += [other for other in imports if other.startswith(f"{package}.")]
    return found


def _file(name: str) -> str | None:
    """Where a module is written; a script that runs is loaded, and cannot be found by its name."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__file__", None)
    spec = find_spec(name)
    return None if spec is None else spec.origin


@cache
def _parsed(file: str) -> tuple[str, tuple[str, ...]]:
    """A module's syntax tree and what it imports: many results rest on the same modules."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    imports = tuple(_imports(tree))
    return _code(tree), imports


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            spec = find_spec(node.module)
            if spec is not None and spec.submodule_search_locations:  # "from package import module"
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _code(tree: ast.AST) -> str:
    """A syntax tree as text, docstrings left out of it."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                part
                for part in body
                if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            ]
    return ast.dump(tree)
