"""Write docs/reference/dependencies.md, or a bill of materials: what telic needs, with licences.

Names and versions come from requirements.lock, licences from the installed packages' metadata.
"""

import argparse
import json
import re
import tomllib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "dependencies.md"
ELSEWHERE = {
    "colorama": "BSD-3-Clause",
    "importlib-metadata": "Apache-2.0",
    "lazy-importer": "Apache-2.0",
    "tzdata": "Apache-2.0",
    "zipp": "MIT",
}
"""Licences of what is installed on other platforms, or by Python 3.11, alone."""
TEXT = """\
# Dependencies and their licences

*Written by `scripts/dependencies.py`; do not edit.*

This page lists what [telic](../how-to/install.md) and its extras bring, in the versions with which
telic is tested (`requirements.lock`; where there are two, the Python or the platform decides).
Licences are quoted from each package's metadata. telic contains none of these packages: pip
installs them beside it. The extras `demo`, `telemetry` and `postgresql` also bring what `serve`
brings.

The core's licences are permissive. Two extras bring packages with a weak copyleft, which binds
those who change such a package itself: psycopg (LGPL, extra `postgresql`) and certifi (MPL, extra
`telemetry`).

`make dist` writes the same list as a bill of materials, CycloneDX JSON, beside the wheel.
"""


@dataclass
class Package:
    """A package that telic needs at run time."""

    name: str
    versions: list[str] = field(default_factory=list)
    parents: set[str] = field(default_factory=set)
    """Packages, other than telic, that need it."""
    extras: set[str] = field(default_factory=set)
    """Extras that bring it; of the core if this is empty."""
    why: str = ""
    """Of a direct dependency, the reason that docs/explain/architecture.md gives."""

    def licence(self) -> str:
        """Return an SPDX expression if the package states one, else its own words."""
        if self.expression():
            return self.expression()
        said = metadata(self.name)
        named = said.get("License") or ""
        if named and "\n" not in named and len(named) < 30:  # it may be a licence's whole text
            return named
        classifiers = [c for c in said.get_all("Classifier") if c.startswith("License ::")]
        return " or ".join(c.rpartition(" :: ")[2] for c in classifiers)

    def expression(self) -> str:
        """Return the SPDX expression that the package states, or ""."""
        try:
            return metadata(self.name).get("License-Expression") or ""
        except PackageNotFoundError:
            return ELSEWHERE[self.name]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked() -> dict[str, Package]:
    """Read every package of the lock."""
    found: dict[str, Package] = {}
    for block in re.split(r"\n(?=\w)", (ROOT / "requirements.lock").read_text()):
        name, version = re.match(r"([\w.-]+)==([\w.]+)", block).groups()
        package = found.setdefault(name, Package(name))
        package.versions.append(version)
        package.parents |= {*re.findall(r"^    #(?: via| +) (\S+)", block, re.M)} - {"telic"}
    return found


def dependencies() -> list[Package]:
    """Return what the core and every extra install, by name."""
    every, given = locked(), project()
    reasons = (ROOT / "docs" / "explain" / "architecture.md").read_text()
    reasons = reasons.partition("## Dependencies")[2].partition("\n## ")[0]

    def named(requirements: list[str]) -> set[str]:
        return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements} - {"telic"}

    def reached(names: set[str]) -> set[str]:
        while more := {p.name for p in every.values() if names & p.parents} - names:
            names = names | more
        return names

    direct = named(given["dependencies"])
    core, extras = reached(direct), {}
    for extra, requirements in given["optional-dependencies"].items():
        direct |= named(requirements)
        extras[extra] = reached(named(requirements)) - core
    for package in every.values():
        package.extras = {extra for extra, names in extras.items() if package.name in names}
        if package.name in direct:
            line = re.search(rf"^\| [^|]*\b{package.name}\b[^|]*\| (.*) \|$", reasons, re.M)
            if line is None:
                raise SystemExit(
                    f"docs/explain/architecture.md gives no reason for {package.name}."
                )
            package.why = line[1]
    return [p for p in every.values() if p.name in core or p.extras]


def page(packages: list[Package]) -> str:
    """Return the page: direct dependencies with their reasons, then what those need."""

    def rows(head: str, chosen: list[Package], said) -> Iterator[str]:
        yield f"| package | version | licence | comes with | {head} |"
        yield "|---|---|---|---|---|"
        for p in chosen:
            extras = ", ".join(sorted(p.extras)) or "core"
            yield f"| {p.name} | {', '.join(p.versions)} | {p.licence()} | {extras} | {said(p)} |"

    direct = [p for p in packages if p.why]
    others = [p for p in packages if not p.why]
    names = {p.name for p in packages}
    return "\n".join(
        [
            TEXT,
            "## What telic uses itself\n",
            *rows("why", direct, lambda p: p.why),
            "\n## What these need\n",
            *rows("needed by", others, lambda p: ", ".join(sorted(p.parents & names))),
            "",
        ]
    )


def bill(packages: list[Package]) -> str:
    """Return a CycloneDX 1.6 bill of materials; it has no time, so that it can be made again."""
    given = project()

    def component(name: str, version: str, licence: dict) -> dict:
        url = f"pkg:pypi/{name}@{version}"
        about = {"type": "library", "bom-ref": url, "purl": url}
        return {**about, "name": name, "version": version, "licenses": [licence]}

    telic = component("telic", given["version"], {"expression": given["license"]})
    parts = {
        p.name: [
            component(
                p.name,
                version,
                {"expression": p.expression()}
                if p.expression()
                else {"license": {"name": p.licence()}},
            )
            for version in p.versions
        ]
        for p in packages
    }
    components = [one for each in parts.values() for one in each]

    def refs(children: list[Package]) -> list[str]:
        return [part["bom-ref"] for p in children for part in parts[p.name]]

    needs = [{"ref": telic["bom-ref"], "dependsOn": refs([p for p in packages if p.why])}]
    for one in components:
        children = [p for p in packages if one["name"] in p.parents]
        needs.append({"ref": one["bom-ref"], "dependsOn": refs(children)})
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": telic},
        "components": components,
        "dependencies": needs,
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content))
    return json.dumps({**content, "serialNumber": f"urn:uuid:{number}"}, indent=1) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bill", type=Path, help="Folder for the bill of materials instead.")
    folder = parser.parse_args().bill
    packages = dependencies()
    if folder is None:
        PAGE.write_text(page(packages), encoding="utf-8")
    else:
        name = f"telic-{project()['version']}.cdx.json"
        (folder / name).write_text(bill(packages), encoding="utf-8")


if __name__ == "__main__":
    main()
