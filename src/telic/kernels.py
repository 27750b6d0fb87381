"""The decorator of every compiled function, and the machine code that is kept between runs."""

import atexit
import gc
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

COMPILED: list[Path] = []
"""Files of the machine code that this process compiled and kept."""
PATIENCE = 60.0
"""Seconds that a process waits at most for code which another one compiles."""

# Those within functions are left out: whether they have been made differs from run to run.
_IMPORTS = re.compile(r"^(?:from|import) (\w[\w.]*)(?: import (\([^)]*\)|.*))?", re.M)


def kernel(function: Callable | None = None, /, **options: Any) -> Any:
    """Compile a function of arrays at its first call, without Python's lock, and keep the code.

    Parameters
    ----------
    function : callable
        Takes arrays, or tuples of arrays, and checks nothing.
    **options
        Of `numba.njit`, such as ``fastmath=`` and ``parallel=``.

    Returns
    -------
    callable
        The compiled function; without `function`, a decorator.

    Notes
    -----
    numba's own ``cache=True`` is not for us. It numbers the files that it keeps, so that processes
    which compile at the same time write different code to one name, and it looks for changes in the
    function's own file alone, so that code from before an upgrade goes on in what calls it. See
    `_Code`. Of processes that need the same code at once, such as the workers of a service, one
    compiles it and the others load it. Code that lies beside the source is used, too, where another
    user compiled it, as ``telic warmup`` does for an image or a shared installation. A kernel may
    call itself, but no two may call each other.

    Examples
    --------
    >>> import numpy as np
    >>> from telic.kernels import kernel
    >>> @kernel
    ... def total(x):
    ...     s = 0.0
    ...     for v in x:
    ...         s += v
    ...     return s
    >>> float(total(np.array([1.0, 2.0])))
    3.0
    """
    if function is None:
        return partial(kernel, **options)
    compiled = _dispatcher(function, **options)
    if compiled is not function:
        # Most kernels are called by kernels alone, and need nothing that lets Python call them.
        inner = cache(lambda: _dispatcher(function, "inner", no_cpython_wrapper=True, **options))
        compiled.get_call_template = partial(_of_any_number, inner)
        compiled.get_overload = lambda types: inner().get_overload(types)
    return compiled


def _dispatcher(function: Callable, suffix: str = "", **options: Any) -> Any:
    """Return numba's object that compiles a function for the types that it meets."""
    # No kernel is called from C, and the wrapper for that takes long to compile.
    options["no_cfunc_wrapper"] = True
    compiled = numba.njit(nogil=True, **options)(function)
    # NUMBA_DISABLE_JIT leaves functions as they are, and what is typed at a prompt has no file.
    if compiled is not function and os.path.isfile(function.__code__.co_filename):
        compiled._cache = _Cache(function, suffix)
        compiled.compile = partial(_compile_once, compiled.compile, compiled._cache)
    return compiled


class _Cache:
    """numba's cache of a function, made when code is asked for: a fit needs few of the kernels."""

    def __init__(self, function: Callable, suffix: str) -> None:
        self._function = function
        self._suffix = suffix

    @cached_property
    def _made(self) -> FunctionCache:
        return _cache_of(self._function, self._suffix)

    def load_overload(self, sig: object, target_context: Any) -> object:
        """Return compiled code of these types, or None.

        numba's own first registers all that it could compile, which takes longer than loading every
        kernel of a fit. What is compiled already needs its runtime alone; compiling registers it.
        """
        rtsys.initialize(target_context)
        with self._made._guard_against_spurious_io_errors():
            return self._made._load_overload(sig, target_context)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def _of_any_number(inner: Callable, args: Any, kws: dict[str, Any]) -> object:
    """Compile what another kernel calls for all numbers; numba would for each that is written."""
    named = {name: numba.types.unliteral(kind) for name, kind in kws.items()}
    return inner().get_call_template(tuple(map(numba.types.unliteral, args)), named)


def _compile_once(compile_: Callable, cache: _Cache, signature: object) -> object:
    """Load code or compile it, in one process at a time.

    In one thread, too, before the turn: one that held a turn and waited for numba's lock could make
    two processes wait for each other.
    """
    name = cache._made._cache_file._index_name
    with global_compiler_lock, _turn(cache.cache_path, name), _no_collection():
        return compile_(signature)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let Python look for no garbage meanwhile: while it compiles there is much to look through."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def _turn(folder: str, name: str) -> Iterator[None]:
    """Wait until no other process holds this name in a folder, and hold it meanwhile.

    A process that waited for long goes on all the same: it then compiles what another one does.
    """
    place, held = zlib.crc32(name.encode()), False
    with suppress(OSError):  # a folder that cannot be written, or a file system without locks
        handle = _locks(folder)
        _hold(handle, place)
        held = True
    try:
        yield
    finally:
        if held:
            fcntl.lockf(handle, fcntl.LOCK_UN, 1, place)


def _hold(handle: int, place: int) -> None:
    given_up = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except BlockingIOError:
            if time.monotonic() > given_up:
                raise
        time.sleep(0.02)


@cache
def _locks(folder: str) -> int:
    """Open the file whose bytes stand for the functions of a folder, for as long as we run.

    The system would give up all locks of a process on a file as soon as it closes it once.
    """
    if fcntl is None:
        raise OSError("this system has no such locks")
    return os.open(Path(folder, "compiling.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


class _Code(IndexDataCacheFile):
    """Compiled code of one function, a file for each of its types, and an index of them."""

    def __init__(self, folder: str, cache: FunctionCache, module: str, suffix: str) -> None:
        stamp = cache._impl.locator.get_source_stamp()
        super().__init__(folder, cache._impl.filename_base + suffix, stamp)
        self._module = module
        self._beside: _Code | None = None
        del self._version

    @cached_property
    def _version(self) -> object:
        """What the code depends on: numba, the function's file, what that imports of its package.

        It stands before the index, whose types may be of modules that are there no longer.
        """
        return numba.__version__, self._source_stamp, _stamps(self._module)

    def load(self, key: object) -> object:
        """Return code of this folder, or what was compiled beside the source; None if neither."""
        found = super().load(key)
        if found is None and self._beside:
            with suppress(OSError):  # a folder that may not be read
                return self._beside.load(key)
        return found

    def save(self, key: object, data: object) -> None:
        """Keep code under a name of its own, and only then name it in the index.

        Of two processes that save at once one may lose its line in the index: it compiles again.
        """
        global _to_tell
        if _to_tell:
            _to_tell = False  # numba's compiling lets Python forget what it has warned of
            warnings.warn(
                "there is no folder to keep compiled kernels in, so every start compiles them "
                "anew. Set NUMBA_CACHE_DIR to a folder that can be written, or let whoever "
                "installed telic run: telic warmup",
                stacklevel=2,
            )
        overloads = self._load_index()
        what = hashlib.sha256(repr((self._version, key)).encode()).hexdigest()[:16]
        name = self._index_name.removesuffix(".nbi") + f".{what}.nbc"
        self._save_data(name, data)
        self._save_index(overloads | {key: name})
        COMPILED.append(Path(self._cache_path, name))


def _cache_of(function: Callable, suffix: str = "") -> FunctionCache:
    try:
        cache = FunctionCache(function)
    except RuntimeError:  # no folder can be written
        _keep_in_a_temporary_folder()
        cache = FunctionCache(function)
    code = _Code(cache.cache_path, cache, function.__module__, suffix)
    beside = str(Path(function.__code__.co_filename).parent / "__pycache__")
    if beside != cache.cache_path:
        code._beside = _Code(beside, cache, function.__module__, suffix)
    cache._cache_file = code
    return cache


@cache
def _stamps(module: str) -> tuple:
    """Return name and hash of every file that a module imports from its own package.

    Not its time, which an image or an archive may cut off to seconds.
    """
    found: dict[str, tuple] = {}
    open_ = [module]
    while open_:
        name = open_.pop()
        if name not in found and (looked := _file_of(name)):
            found[name], imports = looked
            open_ += imports
    return tuple(sorted(found.values()))


@cache
def _file_of(module: str) -> tuple[tuple, list[str]] | None:
    """Return a file's name and hash, and what it imports from its own package."""
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None:
        return None
    content = Path(path).read_bytes()
    imports = []
    for source, names in _IMPORTS.findall(content.decode()):
        if source.split(".")[0] == module.split(".")[0]:
            imports += [source, *(f"{source}.{part}" for part in re.findall(r"\w+", names))]
    return (module, hashlib.sha256(content).hexdigest()), imports


_to_tell = False
"""Whether nobody has been told yet that code is kept for this process alone."""


def _keep_in_a_temporary_folder() -> None:
    """Give numba a folder where it finds none, beside the source or in the user's home."""
    global _to_tell
    folder = tempfile.mkdtemp(prefix="telic-kernels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder  # for processes that we start
    numba.config.CACHE_DIR = folder  # type: ignore[attr-defined]
    _to_tell = True
