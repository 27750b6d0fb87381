from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from telic.data.compositions import read_compositions
from telic.simulate import dwell_twin, geonames_catalogue, marginals, simulate_typists


@pytest.fixture(scope="module")
def log():
    return simulate_typists(geonames_catalogue(), users=6, compositions=40, setting="readers")


def dwells(table):
    """Every dwell in microseconds, the last list's included, and its user, the slow way."""
    found = []
    for row in table.to_pylist():
        at = [key["at"] for key in row["keystrokes"]] + [row["submitted_at"]]
        found += [(row["user"], b - a) for a, b in pairwise(at)]
    return found


def test_dwells_are_permuted_within_the_user_and_nothing_else_changes(log):
    twin = dwell_twin(log, seed=3)
    assert twin.schema.equals(log.schema, check_metadata=True)
    assert dwells(twin) != dwells(log)
    assert sorted(dwells(twin)) == sorted(dwells(log))
    for name in ("user", "composition", "query", "selected"):
        assert twin[name] == log[name]
    for a, b in zip(log["keystrokes"].to_pylist(), twin["keystrokes"].to_pylist(), strict=True):
        assert a[0]["at"] == b[0]["at"]
        assert [(k["prefix"], k["suggestions"]) for k in a] == [
            (k["prefix"], k["suggestions"]) for k in b
        ]


def test_the_order_of_compositions_stays(log):
    twin = read_compositions(dwell_twin(log, seed=1))
    for u in range(6):
        mine = np.flatnonzero(twin.user == u)
        begin = twin.at[twin.keystroke_start[mine]]
        assert (begin[1:] > twin.submitted_at[mine][:-1]).all()


def test_only_what_depends_on_single_dwells_changes(log):
    before, after = marginals(log), marginals(dwell_twin(log, seed=1))
    for name, value in before.items():
        if name != "inter_key_median":  # a last dwell may have become an inter-key time
            assert after[name] == pytest.approx(value), name


def test_equal_seeds_give_equal_twins(log):
    assert dwell_twin(log, seed=1).equals(dwell_twin(log, seed=1))
    assert not dwell_twin(log, seed=1).equals(dwell_twin(log, seed=2))


def test_slices_chunks_and_further_columns_are_kept(log):
    part = log.slice(10, 50)
    chunked = pa.concat_tables([part.slice(0, 7), part.slice(7)])
    chunked = chunked.append_column("note", pa.array(range(50)))
    twin = dwell_twin(chunked, seed=0)
    assert twin["note"].to_pylist() == list(range(50))
    assert sorted(dwells(twin)) == sorted(dwells(part))
    assert pc.list_value_length(twin["keystrokes"]) == pc.list_value_length(part["keystrokes"])
