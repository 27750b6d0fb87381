import os
from pathlib import Path

import pytest

# This runs before any test module imports numba or scipy.
# scikit-learn's checks of the array API run only with SciPy's own support, which is off by default.
os.environ["SCIPY_ARRAY_API"] = "1"

# numba's cache on disk is not safe when several processes write it: each worker has its own.
_worker = os.environ.get("PYTEST_XDIST_WORKER")
if _worker:
    _caches = Path(__file__).parent.parent / ".pytest_cache" / "numba"
    os.environ["NUMBA_CACHE_DIR"] = str(Path(os.environ.get("NUMBA_CACHE_DIR", _caches)) / _worker)


def pytest_collection_modifyitems(items):
    if not os.environ.get("TELIC_SLOW"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: needs TELIC_SLOW=1"))
