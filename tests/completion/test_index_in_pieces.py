"""An index that is built in pieces is the index, to the byte."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import PrefixIndex, index_in_pieces
from telic.completion.engine.shown_spelling import BLOCK
from telic.errors import InputError

# Texts that come again and again, fold alike, share beginnings, and are spelled by rule or not.
TEXTS = st.text("aAbé ß9\x00", min_size=1, max_size=4).filter(str.strip)
ENTRIES = st.lists(st.tuples(TEXTS, st.sampled_from([0.0, 0.1, 0.2, 0.7, 1e-17])), max_size=300)


def assert_same_bytes(found, expected):
    for name, array in expected.arrays().items():
        assert found.arrays()[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found.arrays()[name], array, err_msg=name)


def in_batches(entries, size):
    for begin in range(0, len(entries), size):
        phrases, weights = zip(*entries[begin : begin + size], strict=True)
        yield list(phrases), list(weights)


@settings(max_examples=15, deadline=None)
@given(entries=ENTRIES, size=st.integers(1, 100), rows=st.integers(1, 100))
def test_pieces_give_the_index_of_the_whole(entries, size, rows, tmp_path_factory):
    work = tmp_path_factory.mktemp("work")
    options = {"hot_top": 3, "hot_range": 5}
    found = index_in_pieces(in_batches(entries, size), work, rows=rows, **options)
    whole = PrefixIndex.build([p for p, _ in entries], [w for _, w in entries], **options)
    assert_same_bytes(found, whole)
    assert list(work.iterdir()) == []


@pytest.fixture(scope="module")
def thousands():
    """More distinct weights than 16 bits number, long texts, and one phrase that comes often."""
    rng = np.random.default_rng(0)
    phrases = ["".join(rng.choice(list("abcdÉ"), rng.integers(1, 9))) for _ in range(70_000)]
    phrases[::7] = ["Often " + "long" * 30] * len(phrases[::7])
    return list(zip(phrases, rng.random(len(phrases)), strict=True))


def test_many_blocks_give_the_index_of_the_whole(thousands, tmp_path):
    distinct = [(f"{p} {i}", w) for i, (p, w) in enumerate(thousands)]
    for entries in (thousands, distinct):
        whole = PrefixIndex.build([p for p, _ in entries], [w for _, w in entries])
        found = index_in_pieces(in_batches(entries, 9_000), tmp_path, rows=1000)
        assert len(whole.hot_ranges) > 5
        assert_same_bytes(found, whole)


def test_a_phrase_that_comes_again_after_a_full_block_is_one(tmp_path):
    phrases = [f"{i:02}" for i in range(BLOCK)] + [f"{BLOCK - 1:02}"]
    found = index_in_pieces([(phrases, np.ones(BLOCK + 1))], tmp_path, rows=BLOCK)
    assert found.weights_of().tolist() == [1.0] * (BLOCK - 1) + [2.0]


def test_an_index_in_pieces_is_saved_and_loaded(tmp_path):
    index = index_in_pieces([(pa.array(["Tea", "Tée"]), [1, 2]), (["tea"], [3])], tmp_path)
    index.save(tmp_path / "index")
    again = PrefixIndex.load(tmp_path / "index")
    assert again.phrases(again.top("te")) == ["tea", "Tée", "Tea"]


@pytest.mark.parametrize(
    ("phrases", "weights", "message"),
    [
        (["b", ""], [1, 1], r"phrases\[2\] is ''"),
        (["b", None], [1, 1], r"phrases\[2\] is None"),
        (["b", "c"], [1, -1], r"weights\[2\] is -1"),
        (["b", "c"], [1], "2 phrases but 1 weights"),
        (["a", "c"], [1.7e308, 1], "phrase 'a' sum to infinity"),
    ],
)
def test_what_cannot_be_indexed_is_named_by_its_place_in_all_batches(
    phrases, weights, message, tmp_path
):
    with pytest.raises(InputError, match=message):
        index_in_pieces([(["a"], [1.7e308]), (phrases, weights)], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_at_least_one_id_is_precomputed(tmp_path):
    with pytest.raises(InputError, match="hot_top is 0"):
        index_in_pieces([], tmp_path, hot_top=0)
