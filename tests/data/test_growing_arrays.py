import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.data.growing_arrays import Growing, GrowingFile, let_go, trim
from telic.errors import JobError
from telic.scale.arrays import store_arrays


def resident(kind):
    """Bytes that this process holds: `RssAnon` or `RssFile`."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{kind}:")[1].split()[0])


@given(st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=40), max_size=30))
def test_what_was_added_is_there_in_memory_and_in_files(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("grown")
    whole = np.array([value for part in parts for value in part], np.int32)
    for grown in (Growing(np.int32), Growing(np.int32, room=0), GrowingFile(folder, np.int32)):
        for part in parts:
            grown.add(np.array(part, np.int32))
        found = grown.values()
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, whole)
        assert not [*folder.iterdir()]


def test_what_is_written_to_a_mapped_array_stays_in_memory(tmp_path):
    grown = GrowingFile(tmp_path, np.float32)
    grown.add(np.arange(3))
    found = grown.values()
    found[0] = 5.0
    assert found.tolist() == [5.0, 1.0, 2.0]
    grown = GrowingFile(tmp_path, np.float32)
    grown.add(np.arange(3))
    with pytest.raises(ValueError, match="read-only"):
        grown.values("r")[0] = 5.0


def test_mapped_memory_is_given_back_and_read_again(tmp_path):
    size = 1 << 25
    grown = GrowingFile(tmp_path, np.int64)
    grown.add(np.arange(size // 8))
    part = grown.values()[:-1][::2]  # a view of a view
    part.sum()
    before = resident("RssFile")
    let_go(part, np.arange(3))
    assert before - resident("RssFile") > 0.9 * size
    np.testing.assert_array_equal(part[:3], [0, 2, 4])


def test_freed_memory_is_given_back():
    held = [bytes(1000) for _ in range(1 << 16)]
    last = bytes(1000)  # above all of them, so that the heap cannot end below it
    before = resident("RssAnon")
    del held
    trim()
    assert before - resident("RssAnon") > 0.9 * 1000 * (1 << 16)
    assert len(last) == 1000


def test_a_full_disk_is_named(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, hard))
    try:
        with pytest.raises(JobError, match=f"the disk is full where {tmp_path} is. Make room"):
            GrowingFile(tmp_path, np.int64).add(np.zeros(1 << 14))
        with pytest.raises(JobError, match=f"the disk is full where {tmp_path} is. Make room"):
            store_arrays(tmp_path, {"x": np.zeros(1 << 14)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not [*tmp_path.iterdir()]
