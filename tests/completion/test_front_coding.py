import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from telic.completion.engine import shown_spelling
from telic.completion.engine.front_coding import (
    BLOCK,
    gather,
    keys_of,
    pack,
    prefix_range,
    unpack,
)
from telic.completion.engine.packed_numbers import pack_numbers
from telic.completion.engine.shown_spelling import AS_FOLDED, GIVEN, fill_kinds, spelled

# Strings that share much or nothing, of lengths around 15 and 143, where an entry grows a byte.
pieces = st.sampled_from(
    [b"", b"a", b"b", b"\0", b"\xff", b"abc", b"a" * 13, b"b" * 15, b"c" * 128]
)
strings = st.lists(st.lists(pieces, max_size=4).map(b"".join), max_size=3 * BLOCK).map(sorted)


def table(strings):
    text = np.frombuffer(b"".join(strings), np.uint8)
    return text, np.cumsum([0, *map(len, strings)])


def coded(strings):
    packed, starts = pack(*table(strings))
    return packed, starts, keys_of(packed, starts)


def parts(text, offsets):
    return [text[a:b].tobytes() for a, b in itertools.pairwise(offsets)]


@given(strings)
def test_what_is_packed_comes_back(kept):
    packed = coded(kept)
    assert parts(*unpack(packed[0], len(kept))) == kept
    ids = np.arange(len(kept))[::-1]
    assert parts(*gather(packed, len(kept), ids)) == kept[::-1]


@given(strings, st.data())
def test_the_range_of_a_prefix_is_that_of_its_definition(kept, data):
    own = st.sampled_from(kept).flatmap(lambda s: st.integers(0, len(s)).map(lambda n: s[:n]))
    prefix = data.draw(own if kept and data.draw(st.booleans()) else st.binary(max_size=2))
    prefix += data.draw(st.sampled_from([b"", b"a", b"b", b"\0", b"\xff"]))
    lo, hi = prefix_range(coded(kept), len(kept), np.frombuffer(prefix, np.uint8))
    assert kept[lo:hi] == [s for s in kept if s.startswith(prefix)]
    assert kept[:lo] == [s for s in kept if s < prefix]


def test_ranges_over_many_blocks_are_found():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 12, 100 * BLOCK)
    long = [b"abbabb" + b"ab" * (n % 4) + b"%03d" % n for n in range(200)]
    made = (bytes(rng.choice(list(b"abc"), length).astype(np.uint8)) for length in lengths)
    kept = sorted([*made, *long])
    packed = coded(kept)
    for prefix in {text[:length] for text in kept for length in range(10)}:
        lo, hi = prefix_range(packed, len(kept), np.frombuffer(prefix, np.uint8))
        assert all(text.startswith(prefix) for text in kept[lo:hi])
        assert hi - lo == sum(text.startswith(prefix) for text in kept)


@given(strings)
def test_keys_order_strings_as_far_as_seven_bytes_tell(kept):
    for begin in (0, 1):
        keys = keys_of(*pack(*table(kept[begin:])))
        firsts = kept[begin::BLOCK]
        for (key, text), (later, other) in itertools.combinations(
            zip(keys.tolist(), firsts, strict=True), 2
        ):
            assert key <= later
            same = text[:7] == other[:7] and min(len(text), 8) == min(len(other), 8)
            assert (key == later) == same


def test_what_neighbours_share_is_kept_once():
    kept = [b"international %03d" % i for i in range(4 * BLOCK)]
    packed, starts = pack(*table(kept))
    # A block holds its first string, of 17 bytes, and of each other string a digit or two.
    assert len(packed) < 4 * (19 + BLOCK * 4)
    assert starts.tolist() == sorted(set(starts.tolist()))
    assert len(starts) == 5


spellings = st.text("aB zé-ß9", max_size=8) | st.sampled_from(
    ["new york", "New York", "New york", "NEW YORK", "O'Brien-Smith", "O'brien-smith", "École"]
)


@given(st.lists(spellings, max_size=2 * shown_spelling.BLOCK))
def test_every_spelling_comes_back(given_spellings):
    kept = sorted((s.lower().encode(), s.encode()) for s in given_spellings)
    folded, shown = table([f for f, _ in kept]), table([s for _, s in kept])
    kinds = np.empty(len(kept), np.uint8)
    fill_kinds(*folded, *shown, kinds)
    before = np.cumsum([0, *(kinds == GIVEN)])[:: shown_spelling.BLOCK]
    text, offsets = table([s for (_, s), kind in zip(kept, kinds, strict=True) if kind == GIVEN])
    given = before, text, pack_numbers(offsets)
    found = spelled(coded([f for f, _ in kept]), kinds, given, np.arange(len(kept)))
    assert parts(*found) == [s for _, s in kept]


def test_capitals_by_rule_need_no_text():
    kept = ["new york", "New york", "New York", "O'Brien-Smith", "NEW YORK", "McDonald"]
    kinds = np.empty(len(kept), np.uint8)
    texts = [s.lower().encode() for s in kept], [s.encode() for s in kept]
    fill_kinds(*table(texts[0]), *table(texts[1]), kinds)
    assert kinds.tolist() == [AS_FOLDED, 1, 2, 3, 4, GIVEN]
