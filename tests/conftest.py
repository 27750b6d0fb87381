import gc
import os
from functools import cache
from pathlib import Path

import hypothesis
import pytest
import typer.main
import typer.testing
from xdist.scheduler import LoadFileScheduling

# A first example may compile or import, and machines are shared: no example has a time of its own.
hypothesis.settings.register_profile("telic", deadline=None)
hypothesis.settings.load_profile("telic")
# Imports leave next to nothing to collect, and looking for it takes a tenth of the collection.
gc.disable()
# This runs before any test module imports numba or scipy.
# scikit-learn's checks of the array API run only with SciPy's own support, which is off by default.
os.environ["SCIPY_ARRAY_API"] = "1"

os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "numba")
)

# The tree of commands is made anew for each command, in a tenth of a second.
typer.main.get_command = typer.testing._get_command = cache(typer.main.get_command)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Modules with examples are those of src: to look for some here would read every test twice."""
    return [found for found in (yield) if type(found) is pytest.Module]


def pytest_collection_finish():
    """What is loaded by now stays: the collector need not look through it after every test."""
    gc.collect()
    gc.freeze()
    gc.enable()


class ByFile(LoadFileScheduling):
    """A file's tests run in one process; those of `tests/scale` too, as they share a cluster."""

    def _split_scope(self, nodeid):
        return "tests/scale" if nodeid.startswith("tests/scale/") else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return ByFile(config, log)


def pytest_collection_modifyitems(items):
    if not os.environ.get("TELIC_SLOW"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: needs TELIC_SLOW=1"))
