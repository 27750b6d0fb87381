"""Learn what people intend from the traces they leave, use it well, and do not leak it."""

import atexit
import os
import shutil
import tempfile
import warnings

__version__ = "0.1.0"


def _find_room_for_kernels() -> None:
    """Give numba a folder to keep compiled kernels in, where it would find none and stop.

    It looks beside the source and in the user's home; a service's account may write to neither.
    """
    if os.access(os.path.dirname(__file__), os.W_OK):
        return
    import numba

    try:
        numba.njit(cache=True)(_find_room_for_kernels)
    except RuntimeError:
        folder = tempfile.mkdtemp(prefix="telic-kernels-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["NUMBA_CACHE_DIR"] = folder  # for processes that we start
        numba.config.CACHE_DIR = folder  # type: ignore[attr-defined]
        warnings.warn(
            "there is no folder to keep compiled kernels in, so every start compiles them anew. "
            "Set NUMBA_CACHE_DIR to a folder that can be written.",
            stacklevel=3,
        )


_find_room_for_kernels()
