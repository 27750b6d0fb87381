"""Arrays are read from several threads without tripping over Python's parser."""

import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from telic.data.numpy_files import load_npy, load_npz
from telic.data.object_storage import state_of
from telic.optim.admm.shard_files import ShardFile

HAND_OVER = 1e-6
"""Seconds after which a thread lets another one run."""


@pytest.fixture
def collecting():
    """Have the collector run, and threads change places, at almost every step of the parser."""

    def give_way(*_):
        time.sleep(0)

    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(HAND_OVER)
    gc.set_threshold(5)
    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


@pytest.mark.parametrize(("kind", "reads"), [("npy", 300), ("npz", 60), ("shard", 100)])
def test_threads_read_at_once(tmp_path, collecting, kind, reads):
    names = [f"a{i}" for i in range(5)]
    np.save(tmp_path / "y.npy", np.arange(3))
    np.savez(tmp_path / "many.npz", **dict.fromkeys(names, np.arange(3)))
    sparse.save_npz(tmp_path / "X.npz", sparse.csr_matrix(np.eye(3)))
    paths = [str(tmp_path / name) for name in ("X.npz", "y.npy")]
    shard = ShardFile(*paths, tuple(state_of(Path(path)) for path in paths), make=None)
    read = {
        "npy": lambda: load_npy(tmp_path / "y.npy"),
        "npz": lambda: load_npz(tmp_path / "many.npz", "a"),
        "shard": shard.read,
    }[kind]

    def many(_):
        for _ in range(reads):
            read()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(many, range(4)))
