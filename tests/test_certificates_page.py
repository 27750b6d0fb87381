"""The page of certificates names everything that calls itself one."""

import ast
import re
from pathlib import Path

from tests.sources import sources

ROOT = Path(__file__).parent.parent
WORDS = ("gap", "bound", "certif")


def names_of(nodes) -> set[str]:
    """Public functions, classes, fields and attributes of a module, at any depth of classes."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            fields = [f.target for f in node.body if isinstance(f, ast.AnnAssign)]
            found |= {node.name, *(f.id for f in fields if isinstance(f, ast.Name))}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return {name for name in found if not name.startswith("_")}


def test_names_are_found_wherever_they_are_public():
    source = """
class ABound:
    gap: float
    def certify(self): self.gap_ = 1; self._gap = 2; local_gap = 3
"""
    assert names_of(ast.walk(ast.parse(source))) == {"ABound", "gap", "certify", "gap_"}


def test_every_gap_bound_and_certificate_is_on_the_page():
    page = (ROOT / "docs/reference/certificates.md").read_text(encoding="utf-8")
    missing = {
        (name, path.name)
        for path, _, _, nodes in sources()
        for name in names_of(nodes)
        if any(word in name.lower() for word in WORDS) and not re.search(rf"(?<!\w){name}`", page)
    }
    assert not missing, f"say on docs/reference/certificates.md what these are: {sorted(missing)}"


def named_tests(page: str) -> set[tuple[str, str]]:
    """Files and functions named as `tests/room/test_file.py::test_name`."""
    return set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page))


def test_every_test_that_the_page_names_exists():
    page = (ROOT / "docs/reference/certificates.md").read_text(encoding="utf-8")
    named = named_tests(page)
    assert len(named) == len(set(re.findall(r"`(tests/[^`]*)`", page))) > 50
    missing = {
        (file, name)
        for file, name in named
        if not (ROOT / file).is_file()
        or not re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.M)
    }
    assert not missing, (
        f"docs/reference/certificates.md names tests that are not there: {sorted(missing)}"
    )
