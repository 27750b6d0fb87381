"""Public names, each imported when it is first asked for, so that a product starts at once."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package that imports its names on demand.

    The names and where they come from stand once, as plain imports under ``if TYPE_CHECKING`` in
    the package's own file, where type checkers, editors and import-linter read them.

    Parameters
    ----------
    package : str
        The ``__name__`` of the package that calls.

    Returns
    -------
    getattr, dir : callables
        As PEP 562 has them. A name that there is not raises AttributeError.

    Notes
    -----
    No name may be that of a module beside it: Python puts a module into its package once imported,
    where it would hide the name.

    Examples
    --------
    >>> import telic.report
    >>> "Table" in dir(telic.report), telic.report.Table.__module__
    (True, 'telic.report.table')
    """
    module = sys.modules[package]
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    (block,) = (part for part in ast.parse(source).body if isinstance(part, ast.If))
    imports = [statement for statement in block.body if isinstance(statement, ast.ImportFrom)]
    homes = {alias.name: str(each.module) for each in imports for alias in each.names}

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(module, name, value)  # so that this is not called for it again
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(module), *homes})

    return __getattr__, __dir__
