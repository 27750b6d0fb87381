import os
from pathlib import Path

# numba's cache on disk is not safe when several processes write it: each worker has its own.
# This runs before any test module imports numba.
_worker = os.environ.get("PYTEST_XDIST_WORKER")
if _worker and "NUMBA_CACHE_DIR" not in os.environ:
    _root = Path(__file__).parent.parent / ".pytest_cache" / "numba"
    os.environ["NUMBA_CACHE_DIR"] = str(_root / _worker)
