import atexit
import gc
import importlib
import multiprocessing
import os
import pkgutil
import sys
import time
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher

import telic
from telic import kernels


def double(x):
    return x + x


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def test_two_processes_that_save_at_once_do_not_mix_their_code(folder):
    one, other, later = (kernels._cache_of(double)._cache_file for _ in range(3))
    write = one._save_data
    other._load_index = dict  # both looked when nothing was kept yet

    def after_the_other(name, data):
        other.save("of integers", b"integers")
        write(name, data)

    one._save_data = after_the_other
    one.save("of floats", b"floats")
    assert later.load("of floats") == b"floats"
    assert later.load("of integers") in (None, b"integers")


def test_one_code_serves_all_numbers_that_callers_write(folder):
    callee = kernels.kernel(double)
    caller = kernels.kernel(lambda x: callee(0) + callee(x=1) + callee(x))
    assert caller(5) == 12
    assert len(list(folder.glob("*/*double*inner*.nbc"))) == 1


def test_what_a_kernel_calls_is_compiled_without_what_python_needs(folder, monkeypatch):
    made, create = [], CPUContext.create_cpython_wrapper

    def counted(self, library, fndesc, *given, **how):
        made.append(fndesc.qualname)
        return create(self, library, fndesc, *given, **how)

    monkeypatch.setattr(CPUContext, "create_cpython_wrapper", counted)
    callee = kernels.kernel(double)
    kernels.kernel(lambda x: callee(x))(5)
    assert len(made) == 1
    assert "lambda" in made[0]


def test_what_kernels_call_is_kept_apart_from_what_python_calls(folder):
    """Python would follow no address if it found what was compiled for a kernel."""
    callee = kernels.kernel(double)
    caller = kernels.kernel(lambda x: callee(x))
    assert caller(5) == 10
    assert callee.signatures == []
    assert callee(5) == 10
    later = kernels.kernel(double)
    assert later(5) == 10
    assert sum(later.stats.cache_hits.values()) == 1
    assert kernels.kernel(lambda x: later(x))(5) == 10


WARM = """
import telic.kernels
from numba.core.registry import cpu_target
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
"""
"""A module that loads all that compiles, in half of the second that a small kernel takes."""


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Processes that begin with what compiles, where the system can fork one; it is read once."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield multiprocessing.get_context("spawn")
        return
    folder = tmp_path_factory.mktemp("warm")
    (folder / "warm_kernels.py").write_text(WARM)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["warm_kernels"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *sys.path]))
        forkserver.ensure_running()
    yield context
    forkserver._forkserver._stop()


CALL = """
from pack.caller import f
told.send((f(1), sum(f.stats.cache_misses.values())))
"""
BEGIN = """
import os, sys
import numba
os.chdir(folder)
os.environ["NUMBA_CACHE_DIR"] = kept
numba.config.reload_config()
sys.path.insert(0, folder)
sys.dont_write_bytecode = True
"""


@pytest.fixture
def start(processes, tmp_path):
    """Start another process that calls the kernel of a package, as in `run`."""
    started = []

    def start_it(first="", kept="kept", way=processes):
        hears, told = way.Pipe(duplex=False)
        kept = str(tmp_path / kept) if kept else ""
        names = {"told": told, "folder": str(tmp_path), "kept": kept}
        process = way.Process(target=exec, args=(BEGIN + first + CALL, names))
        process.start()
        told.close()
        started.append((process, hears))
        return process, hears

    yield start_it
    for process, hears in started:
        process.kill()
        process.join()
        hears.close()


def told_by(process, hears):
    assert hears.poll(120)
    told = hears.recv()
    process.join(120)
    assert process.exitcode == 0
    return told


@pytest.fixture
def run(start):
    """Call the kernel of a package in another process: its value, and whether it was compiled.

    Code is kept in the folder `kept`, and beside the source if that is "".
    """
    return lambda *given, **how: told_by(*start(*given, **how))


def test_code_is_kept_until_something_that_it_calls_changes(run, tmp_path):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "limits.py").write_text("LIMIT = 1\n")
    (package / "callee.py").write_text(
        "from telic.kernels import kernel\nfrom pack import (\n    limits,\n)\nK = limits.LIMIT\n"
        "@kernel\ndef g(x):\n    return x + K\n"
    )
    (package / "caller.py").write_text(
        "from telic.kernels import kernel\nfrom pack.callee import g\n"
        "@kernel\ndef f(x):\n    return g(x)\n"
    )
    assert run() == (2, 1)
    assert run() == (2, 0)
    (package / "limits.py").write_text("LIMIT = 41\n")
    assert run() == (42, 1)


def test_code_that_is_kept_is_loaded_without_what_compiles(run, tmp_path):
    """numba registers that on 200 ms; a new type of argument is compiled all the same."""
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").touch()
    (tmp_path / "pack" / "caller.py").write_text(
        "import numpy as np\nfrom telic.kernels import kernel\n"
        "@kernel\ndef g(x):\n    out = np.empty(3)\n    out[:] = x + 1\n    return out\n"
        "import sys\ndef f(x):\n    total = float(g(x).sum())\n"
        "    return total, 'numba.np.linalg' in sys.modules\nf.stats = g.stats\n"
    )
    fresh = multiprocessing.get_context("spawn")
    assert run(way=fresh) == ((6.0, True), 1)
    assert run(way=fresh) == ((6.0, False), 0)
    another = "from pack.caller import f; f(1); assert f(1.5)[1]"
    assert run(another, way=fresh) == ((6.0, True), 1)


@pytest.fixture
def limits(tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").touch()
    (tmp_path / "pack" / "caller.py").write_text(
        "from telic.kernels import kernel\nfrom pack.limits import K\n"
        "@kernel\ndef f(x):\n    return x + K\n"
    )
    file = tmp_path / "pack" / "limits.py"
    file.write_text("K = 1\n")
    return file


WHEN_BOTH_ARE_THERE = """
import os, time
from pack.caller import f
open("{0}", "w").close()
while not (os.path.exists("one") and os.path.exists("other")):
    time.sleep(0.001)
"""


def test_of_processes_that_need_the_same_code_at_once_one_compiles_it(start, limits):
    both = [start(WHEN_BOTH_ARE_THERE.format(name)) for name in ("one", "other")]
    assert sorted(told_by(*each) for each in both) == [(2, 0), (2, 1)]


def test_a_thread_may_compile_before_it_takes_a_turn(folder, monkeypatch):
    """Else a thread that waits for numba's lock holds what another process waits for."""
    seen, turn = [], kernels._turn

    def watched(*of):
        seen.append(global_compiler_lock.is_locked())
        return turn(*of)

    monkeypatch.setattr(kernels, "_turn", watched)
    assert kernels.kernel(double)(1) == 2
    assert seen == [True]


HOLDER = """
import time
from pack.caller import f
from telic import kernels
name = f._cache._made._cache_file._index_name
with kernels._turn(f._cache.cache_path, name):
    open("held", "w").close()
    while True:
        time.sleep(1)
"""
IMPATIENT = """
import time
from telic import kernels
kernels.PATIENCE, nap = 1.0, time.sleep
time.sleep = lambda seconds: (open("waited", "w").close(), nap(seconds))
"""


def test_who_waited_for_code_too_long_compiles_it(run, start, tmp_path, limits):
    holder, _ = start(HOLDER)
    while not (tmp_path / "held").exists():
        assert holder.is_alive()
        time.sleep(0.01)
    assert run(IMPATIENT) == (2, 1)
    assert (tmp_path / "waited").exists()


def test_code_depends_on_what_files_hold_and_not_on_their_times(run, limits):
    assert run() == (2, 1)
    os.utime(limits, (0, 0))
    assert run() == (2, 0)
    limits.write_text("K = 2\n")
    os.utime(limits, (0, 0))
    assert run() == (3, 1)


def test_code_beside_the_source_serves_those_who_keep_theirs_elsewhere(run, tmp_path, limits):
    assert run(kept="") == (2, 1)
    assert list((tmp_path / "pack" / "__pycache__").glob("*.nbc"))
    assert run() == (2, 0)
    limits.write_text("K = 2\n")
    assert run() == (3, 1)
    assert run() == (3, 0)


def test_code_whose_types_are_of_a_module_that_is_gone_is_made_anew(run, tmp_path):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in ("old", "new"):
        (package / f"{name}.py").write_text(
            "from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: int\n    b: int\n"
        )
        (package / "caller.py").write_text(
            f"from telic.kernels import kernel\nfrom pack.{name} import Pair\n"
            "@kernel\ndef g(pair):\n    return pair.a + pair.b\n"
            "def f(x):\n    return g(Pair(x, x))\nf.stats = g.stats\n"
        )
        assert run() == (2, 1)
        (package / f"{name}.py").unlink()


def test_code_is_kept_somewhere_where_no_folder_can_be_written(monkeypatch):
    at_exit = []
    monkeypatch.setattr(atexit, "register", lambda *call, **how: at_exit.append((call, how)))

    class NeedsAFolder(kernels.FunctionCache):
        def __init__(self, function):
            if not numba.config.CACHE_DIR:
                raise RuntimeError("cannot cache function: no locator available for file")
            super().__init__(function)

    monkeypatch.setattr(kernels, "FunctionCache", NeedsAFolder)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr(kernels, "_to_tell", False)
    compiled = kernels.kernel(double)
    with pytest.warns(UserWarning, match="Set NUMBA_CACHE_DIR"):
        compiled(1)
    compiled(1.5)  # of which nobody is told again
    assert os.environ["NUMBA_CACHE_DIR"] == numba.config.CACHE_DIR
    assert Path(numba.config.CACHE_DIR).is_dir()
    (((remove, folder), how),) = at_exit
    remove(folder, **how)
    assert not Path(numba.config.CACHE_DIR).exists()


def test_imports_within_functions_do_not_count(run, tmp_path):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "words.py").write_text("WORDS = 1\n")
    (package / "caller.py").write_text(
        "from telic.kernels import kernel\n@kernel\ndef f(x):\n    return x\n"
        "def words():\n    from pack.words import WORDS\n    return WORDS\n"
    )
    assert run() == (1, 1)
    assert run("import pack.words") == (1, 0)


def test_every_kernel_that_a_kernel_calls_counts_for_its_code():
    """As names of a room would not, which are imported when they are asked for."""
    missing = []
    for found in pkgutil.walk_packages(telic.__path__, "telic."):
        if found.name == "telic.__main__":
            continue
        module = importlib.import_module(found.name)
        for kept in [v for v in vars(module).values() if isinstance(v, Dispatcher)]:
            own = kept.py_func
            counted = {name for name, *_ in kernels._stamps(own.__module__)}
            for name in own.__code__.co_names:
                called = own.__globals__.get(name)
                if isinstance(called, Dispatcher) and called.py_func.__module__ not in counted:
                    missing.append(f"{own.__module__}.{own.__name__}: {name}")
    assert not missing


@pytest.mark.parametrize("collecting", [True, False])
def test_no_garbage_is_collected_while_a_kernel_is_compiled(collecting, folder, monkeypatch):
    seen = []
    monkeypatch.setattr(gc, "isenabled", lambda: collecting)
    monkeypatch.setattr(gc, "disable", lambda: seen.append("off"))
    monkeypatch.setattr(gc, "enable", lambda: seen.append("on"))

    def refused(signature):
        seen.append("compiled")
        raise ValueError("refused")

    cache = SimpleNamespace(
        cache_path=str(folder), _made=SimpleNamespace(_cache_file=SimpleNamespace(_index_name="f"))
    )
    with pytest.raises(ValueError, match="refused"):
        kernels._compile_once(refused, cache, ())
    assert seen == ["off", "compiled", *["on"] * collecting]
