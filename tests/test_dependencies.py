"""The page of dependencies is that of the lock, and no copyleft is among the core's licences."""

import json
import re
import runpy
from contextlib import suppress
from pathlib import Path

import pytest

with suppress(ImportError):  # for Python 3.11 only; its finders raise where a field is missing
    import importlib_metadata  # noqa: F401

ROOT = Path(__file__).parents[1]
COPYLEFT = re.compile(r"GPL|MPL|EPL|EUPL|CDDL|SSPL|CC-BY-SA|GNU|Mozilla|Affero|Eclipse", re.I)
WEAK = {"psycopg": "LGPL-3.0-only", "psycopg-binary": "LGPL-3.0-only", "certifi": "MPL-2.0"}
"""The only copyleft: weak, of extras, and named on the page."""


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "scripts" / "dependencies.py"), run_name="imported")


@pytest.fixture(scope="module")
def packages(script):
    return script["dependencies"]()


def test_the_page_has_what_the_lock_has(packages):
    """If it fails: python scripts/dependencies.py."""
    page = (ROOT / "docs" / "reference" / "dependencies.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| ([\w-]+) \| (\d[\w., ]*) \|", page, re.M))
    assert shown == {(one.name, ", ".join(one.versions)) for one in packages}
    core = set(re.findall(r"^\| ([\w-]+) \|[^|]*\|[^|]*\| core \|", page, re.M))
    assert core == {one.name for one in packages if not one.extras}


def test_the_cores_licences_are_permissive(packages):
    found = {one.name: one.licence() for one in packages}
    assert all(found.values()), "a package states no licence"
    assert {name: said for name, said in found.items() if COPYLEFT.search(said)} == WEAK
    assert all(one.extras for one in packages if one.name in WEAK)


def test_a_package_comes_with_what_needs_it(packages):
    """Direct ones by name, others by whoever needs them."""
    direct = {one.name for one in packages if one.why}
    assert {"numpy", "typer", "starlette", "psycopg", "duckdb"} <= direct
    assert not direct & {"telic", "pytest", "ruff", "pandas"}
    extras = {one.name: one.extras for one in packages}
    assert extras["anyio"] == {"serve"}
    assert extras["llvmlite"] == set()
    assert extras["dask"] == {"scale"}


def test_the_page_on_installation_has_every_extra(script):
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(\w+)` \|", page, re.M)
    assert set(shown) == set(script["project"]()["optional-dependencies"])


def test_the_bill_of_materials_is_the_same_again_and_names_what_it_refers_to(script, packages):
    bill = json.loads(script["bill"](packages))
    assert script["bill"](packages) == script["bill"](script["dependencies"]())
    refs = {bill["metadata"]["component"]["bom-ref"]}
    refs |= {component["bom-ref"] for component in bill["components"]}
    assert len(refs) == 1 + sum(len(one.versions) for one in packages)
    needs = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    assert needs.keys() == refs
    assert {ref for each in needs.values() for ref in each} <= refs
    (telic,) = (ref for ref in refs if "/telic@" in ref)
    assert {ref.split("/")[1].split("@")[0] for ref in needs[telic]} == {
        one.name for one in packages if one.why
    }
