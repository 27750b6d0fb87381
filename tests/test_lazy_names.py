"""Public names are imported when they are asked for, and no room loads what it does not use."""

import importlib
import json
import pkgutil
import subprocess
import sys
import types

import pytest

import telic
from telic.completion import fit_files

ROOMS = [
    found.name
    for found in pkgutil.walk_packages(telic.__path__, "telic.")
    if found.ispkg and found.name.split(".")[1] not in {"cli", "study"}
    if hasattr(importlib.import_module(found.name), "__all__")
]
HEAVY = (
    *("sklearn", "scipy.stats", "pandas", "matplotlib", "networkx", "pyarrow.dataset"),
    *("dask", "distributed", "duckdb", "sqlalchemy", "numba.np.arraymath"),  # as a kernel is called
)
LIGHT = {  # names whose users need nothing of HEAVY
    "telic.auc": ["FileDesign"],
    "telic.completion": ["Completer", "PrefixIndex", "fit_files", "evaluate"],
    "telic.optim": ["minimize", "solve_path", "make_problem"],
    "telic.optim.admm": ["minimize_admm", "consensus_admm"],
    "telic.privacy": ["risks", "attack", "apply_steps"],
    "telic.specialty": ["discover", "read_log", "judge", "find_reasons", "carry"],
}


def loaded_by(code):
    """Names of the modules that are there after some code, in a process of its own."""
    return said_by(f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))")


def said_by(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_no_room_loads_anything_before_a_name_is_asked_for():
    loaded = loaded_by("\n".join(f"import {room}" for room in ROOMS))
    assert not {"numpy", "numba", "pyarrow", "scipy", *HEAVY} & set(loaded)


def test_the_command_line_loads_no_numbers_before_a_command_runs():
    assert not {"numpy", "pyarrow", "scipy", *HEAVY} & set(loaded_by("import telic.cli"))


@pytest.fixture(scope="module")
def heavy():
    """What of HEAVY is there after each room's names, one room after another in one process."""
    code = "import json, sys\nfound = {}\n"
    for room, names in LIGHT.items():
        code += f"from {room} import {', '.join(names)}\n"
        code += f"found[{room!r}] = [name for name in {HEAVY} if name in sys.modules]\n"
    return said_by(code + "print(json.dumps(found))")


@pytest.mark.parametrize("room", LIGHT)
def test_a_name_loads_nothing_that_it_does_not_use(heavy, room):
    assert heavy[room] == []


def test_a_keystroke_loads_nothing_that_learns(tmp_path):
    (tmp_path / "titles.txt").write_text("Tea\nTeapot\nSan Francisco\n")
    fit_files(tmp_path / "titles.txt").save(tmp_path / "box")
    loaded = loaded_by(
        f"""from telic.completion import Completer
completer = Completer.load({str(tmp_path / "box")!r})
ann = completer.user("ann")
completer.compose(ann).submit("iced tea")
assert len(completer.compose(ann).suggest("tea", at=0.0)) == 3"""
    )
    # Arrow loads pandas to tell what a list is of, and numba what it compiles with.
    known = {*HEAVY, "scipy.sparse"} - {"numba.np.arraymath"}
    assert not known & set(loaded)
    assert not [name for name in loaded if name.startswith(("telic.optim", "telic.completion.fit"))]


@pytest.mark.parametrize("room", ROOMS)
def test_the_names_are_those_that_are_stated(room):
    package = importlib.import_module(room)
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        # Of a module beside it, Python would put the module in the name's place.
        assert not isinstance(getattr(package, name), types.ModuleType), name
        assert not importlib.util.find_spec(f"{room}.{name}"), name
        assert name in vars(package), "it would be looked for each time"
    with pytest.raises(AttributeError, match="has no attribute 'nothing_of_this_name'"):
        _ = package.nothing_of_this_name
