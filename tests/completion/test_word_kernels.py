"""The steps of the search by words, each against what it says that it does."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion.engine import word_kernels as kernels
from telic.completion.engine.array_kernels import sift_down, sift_up
from telic.completion.engine.packed_numbers import pack_numbers
from telic.completion.engine.prefix_index import block_maxima
from telic.completion.engine.prefix_kernels import BLOCK, heaviest

edges = st.builds(
    lambda block, beside: max(0, block * BLOCK + beside), st.integers(0, 9), st.integers(-2, 2)
)


def disjoint(cuts, costs):
    """Sorted ranges of words, each with a cost, of which every second one is left out."""
    places = np.unique(cuts)
    pairs = list(pairwise(places))[::2]
    return np.array([(lo, hi, costs[i % len(costs)]) for i, (lo, hi) in enumerate(pairs)], np.int64)


many_ranges = st.builds(
    disjoint,
    st.lists(st.integers(0, 60), min_size=2, max_size=12, unique=True),
    st.lists(st.integers(0, 4), min_size=1, max_size=4),
)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 99), most=st.integers(1, 3), lo=edges, hi=edges)
def test_the_heaviest_word_is_the_first_of_the_heaviest(seed, most, lo, hi):
    heads = np.random.default_rng(seed).integers(0, most, 9 * BLOCK + 5).astype(np.int32)
    lo, hi = sorted((lo, min(hi, len(heads))))
    heads[[lo - 1, hi % len(heads)]] = most  # the heaviest lie just outside
    if lo < hi:
        found = heaviest(heads, block_maxima(heads), lo, hi)
        assert found == lo + np.argmax(heads[lo:hi])


@settings(max_examples=100, deadline=None)
@given(many_ranges)
def test_the_cost_of_a_word_is_that_of_its_range(ranges):
    expected = np.full(64, -1)
    for lo, hi, cost in ranges:
        expected[lo:hi] = cost
    assert [kernels._cost_of(ranges, word) for word in range(64)] == expected.tolist()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=30),
    st.integers(1, 5),
)
def test_the_best_are_kept_each_once_and_ties_go_to_the_smaller_id(entries, k):
    scores = dict(entries)  # a phrase has one score, however often it is met
    ids, kept, found = np.zeros(k, np.int64), np.zeros(k), 0
    for phrase, _ in entries:
        found = kernels._insert(ids, kept, found, phrase, float(scores[phrase]))
    best = sorted(scores, key=lambda phrase: (-scores[phrase], phrase))[:k]
    assert ids[:found].tolist() == best
    assert kept[:found].tolist() == [scores[phrase] for phrase in best]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_a_heap_gives_the_least_key_first(numbers):
    keys, heap = np.array(numbers, float), np.arange(len(numbers))[::-1].copy()
    for i in range(len(heap)):
        sift_up(heap, keys, i)
    came = []
    for size in range(len(heap), 0, -1):
        came.append(keys[heap[0]])
        heap[0] = heap[size - 1]
        sift_down(heap, keys, size - 1)
    assert came == sorted(numbers)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8))
@settings(deadline=None)
def test_the_second_is_the_least_of_the_others(numbers):
    totals = np.array(numbers, np.int64)
    driver = int(np.argmin(totals))
    others = [t for t in range(len(totals)) if t != driver]
    expected = min(others, key=lambda t: (totals[t], t), default=driver)
    assert kernels._second(totals, driver) == expected


@pytest.mark.parametrize("size", [50, kernels.MARKS, kernels.MARKS + 1, 5 * kernels.MARKS])
def test_a_mark_is_where_a_token_has_a_word_among_the_neighbours(size):
    rng = np.random.default_rng(size)
    cuts = np.sort(rng.choice(size + 1, 12, replace=False)).reshape(6, 2)
    ranges = np.column_stack([cuts, np.zeros(6, np.int64)])
    starts = np.array([0, 2, 3, 6])
    marks, shift = kernels._marks((ranges, starts), size)
    assert len(marks) == (size >> shift) + 1
    assert size >> shift <= kernels.MARKS
    assert shift == 0 or size >> (shift - 1) > kernels.MARKS
    for t in range(3):
        own = np.zeros(len(marks), bool)
        for lo, hi, _ in ranges[starts[t] : starts[t + 1]]:
            own[np.arange(lo, hi) >> shift] = True
        np.testing.assert_array_equal(marks >> t & 1, own)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 59), max_size=4), min_size=1, max_size=5),
    st.lists(many_ranges, min_size=1, max_size=3),
)
def test_a_phrase_costs_what_its_cheapest_words_do(phrases, tokens):
    starts = np.cumsum([0, *map(len, tokens)])
    wanted = np.concatenate(tokens), starts
    lists = (
        pack_numbers(np.concatenate(phrases).astype(np.int64)),
        pack_numbers(np.cumsum([0, *map(len, phrases)])),
    )
    marked = kernels._marks(wanted, 60)
    for number, words in enumerate(phrases):
        total = 0
        for ranges in tokens:
            costs = [c for lo, hi, c in ranges for word in words if lo <= word < hi]
            total = -1 if total < 0 or not costs else total + min(costs)
        assert kernels._cost_of_phrase(number, lists, wanted, marked) == total


def test_the_phrases_of_words_are_marked_modulo_the_bits():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 900, 9)  # more than are read at a time, over several words
    postings = rng.integers(0, 64 * kernels.PHRASES * 2, lengths.sum())
    start = np.cumsum([0, *lengths])
    ranges = np.array([[1, 4, 0], [6, 9, 2]], np.int64)
    bits = kernels._phrases_of(ranges, (pack_numbers(postings), pack_numbers(start)))
    wanted = np.concatenate([postings[start[1] : start[4]], postings[start[6] : start[9]]])
    expected = np.zeros(64 * kernels.PHRASES, bool)
    expected[wanted % (64 * kernels.PHRASES)] = True
    found = np.unpackbits(bits.view(np.uint8), bitorder="little").astype(bool)
    np.testing.assert_array_equal(found, expected)
    assert not len(kernels._phrases_of(ranges[:0], (pack_numbers(postings), pack_numbers(start))))
