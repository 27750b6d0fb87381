import numba
import pytest

from telic.privacy.threads import threads_for


@pytest.mark.parametrize(("work", "threads"), [(0, 1), (999_999, 1), (1_000_000, 7), (10**9, 7)])
def test_little_work_has_one_thread_and_what_was_set_comes_back(work, threads, monkeypatch):
    now = [7]
    monkeypatch.setattr(numba, "get_num_threads", lambda: now[-1])
    monkeypatch.setattr(numba, "set_num_threads", now.append)
    with threads_for(work) as given:
        assert given == now[-1] == threads
    assert now[-1] == 7
    with pytest.raises(KeyboardInterrupt), threads_for(work):
        raise KeyboardInterrupt
    assert now[-1] == 7
