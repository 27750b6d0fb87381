"""Which extra brings a package that is not installed: for the line that says what to install."""

import re
from collections import defaultdict


def extra_with(module: str) -> str | None:
    """Return the smallest extra that brings a module, if its package is named alike; else None."""
    from importlib.metadata import requires

    def bare(name: str) -> str:
        return re.sub(r"[-_.]", "", name).lower()

    extras = defaultdict(set)
    for requirement in requires("telic") or ():
        if named := re.match(r"([\w.-]+).*extra == ['\"](\w+)", requirement):
            extras[named[2]].add(bare(named[1]))
    wanted = bare(module.partition(".")[0])
    found = [extra for extra, packages in extras.items() if wanted in packages]
    return min(found, key=lambda extra: len(extras[extra]), default=None)
