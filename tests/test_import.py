import os
from pathlib import Path

import numba
import pytest

import telic


def test_kernels_are_kept_somewhere_where_nothing_of_ours_can_be_written(monkeypatch):
    def no_locator(**options):
        raise RuntimeError("cannot cache function: no locator available for file")

    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(numba, "njit", no_locator)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    with pytest.warns(UserWarning, match="Set NUMBA_CACHE_DIR"):
        telic._find_room_for_kernels()
    assert os.environ["NUMBA_CACHE_DIR"] == numba.config.CACHE_DIR
    assert Path(numba.config.CACHE_DIR).is_dir()
