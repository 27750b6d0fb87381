"""The files of telic, read and parsed once for all tests that look through them."""

import ast
import gc
from functools import cache
from pathlib import Path
from typing import NamedTuple

import telic

SOURCE = Path(telic.__file__).parent


class Source(NamedTuple):
    path: Path
    text: str
    tree: ast.Module
    nodes: list[ast.AST]
    """All nodes of the tree, to be looked through without a walk."""


@cache
def sources() -> list[Source]:
    """Every file of telic, in order."""
    gc.disable()  # it would look again and again at half a million nodes, of which none is garbage
    try:
        found = []
        for path in sorted(SOURCE.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
            found.append(Source(path, text, tree, list(ast.walk(tree))))
        gc.freeze()
    finally:
        gc.enable()
    return found
