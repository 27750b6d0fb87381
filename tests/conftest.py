import os
from pathlib import Path

# This runs before any test module imports numba or scipy.
# scikit-learn's checks of the array API run only with SciPy's own support, which is off by default.
os.environ["SCIPY_ARRAY_API"] = "1"

# numba's cache on disk is not safe when several processes write it: each worker has its own.
_worker = os.environ.get("PYTEST_XDIST_WORKER")
if _worker and "NUMBA_CACHE_DIR" not in os.environ:
    _root = Path(__file__).parent.parent / ".pytest_cache" / "numba"
    os.environ["NUMBA_CACHE_DIR"] = str(_root / _worker)
