import mmap
import sys
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.completion import PrefixIndex, fold
from telic.completion.engine.encoded_phrases import encoded_phrases
from telic.completion.engine.prefix_index import block_maxima, number_kind
from telic.data import save_model
from telic.errors import InputError, ModelError

# Few letters, so that prefixes are shared and phrases come twice; among them letters of one to
# four bytes, pairs that fold alike, and letters whose folded form is longer.
LETTERS = [
    "a",
    "A",
    "b",
    " ",
    "é",
    "e\u0301",
    "ß",
    "ſ",
    "각",
    "가",
    "が",
    "か",
    "क्षि",
    "😀",
    "😁",
    "👩‍👩‍👧",
    "\x00",
]
texts = st.lists(st.sampled_from(LETTERS), max_size=5).map("".join)
entries = st.lists(st.tuples(texts.filter(fold), st.sampled_from([0.0, 1.0, 1.0, 2.5, 7.0])))


class BruteForce:
    """The index by its definition."""

    def __init__(self, entries):
        total = {}
        for phrase, weight in entries:
            total[phrase] = total.get(phrase, 0.0) + weight
        self.phrases = sorted(total, key=lambda phrase: (fold(phrase).encode(), phrase.encode()))
        self.weights = [total[phrase] for phrase in self.phrases]

    def matching(self, prefix):
        return [i for i, p in enumerate(self.phrases) if fold(p).startswith(fold(prefix))]

    def top(self, prefix, k):
        return sorted(self.matching(prefix), key=lambda i: (-self.weights[i], i))[:k]


def build(entries, **options):
    return PrefixIndex.build([p for p, _ in entries], [w for _, w in entries], **options)


@given(
    entries,
    st.lists(texts | st.just("\ud800") | st.text(), max_size=5),
    st.integers(1, 60),
    st.integers(1, 5),
    st.integers(1, 5),
)
def test_the_index_equals_brute_force(entries, prefixes, k, hot_top, hot_range):
    brute = BruteForce(entries)
    index = build(entries, hot_top=hot_top, hot_range=hot_range)
    assert len(index) == len(brute.phrases)
    assert index.phrases(range(len(index))) == brute.phrases
    assert index.weights_of().tolist() == brute.weights
    assert [index.find(phrase) for phrase in brute.phrases] == list(range(len(index)))
    for prefix in ["", *prefixes, *(phrase[:2] for phrase, _ in entries)]:
        lo, hi = index.range(prefix)
        assert list(range(lo, hi)) == brute.matching(prefix)
        assert index.top(prefix, k).tolist() == brute.top(prefix, k)
        assert index.top_phrases(prefix, k) == [brute.phrases[i] for i in brute.top(prefix, k)]
        if prefix not in brute.phrases:
            assert index.find(prefix) == -1
    lo, hi = index.ranges(prefixes)
    assert list(zip(lo.tolist(), hi.tolist(), strict=True)) == [index.range(p) for p in prefixes]


@pytest.fixture(scope="module")
def thousands():
    """Several thousand phrases with many equal weights: several blocks, several hot ranges."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 10, 6000)
    phrases = ["".join(rng.choice(list("aabcdé"), length)) for length in lengths]
    return list(zip(phrases, rng.integers(0, 40, len(phrases)).astype(float), strict=True))


def test_large_ranges_equal_brute_force(thousands):
    brute = BruteForce(thousands)
    index = build(thousands, hot_range=100)
    assert len(index.hot_ranges) > 10
    cold = build(thousands, hot_range=len(thousands) + 1)
    assert len(cold.hot_ranges) == 0
    for prefix in ["", "a", "aa", "e", "ea", "bad", "abcabc", "z"]:
        for k in [1, 10, 50, 51, 500, 10_000]:
            expected = brute.top(prefix, k)
            assert index.top(prefix, k).tolist() == expected
            assert cold.top(prefix, k).tolist() == expected


def test_any_range_of_ids_can_be_asked(thousands):
    # Few heavy phrases among many light ones: equal maxima in blocks far apart.
    rng = np.random.default_rng(6)
    phrases = sorted({phrase for phrase, _ in thousands})
    index = PrefixIndex.build(phrases, rng.random(len(phrases)) < 0.01)
    for lo, hi in [*np.sort(rng.integers(0, len(index) + 1, (200, 2))), *index.hot_ranges]:
        expected = lo + np.lexsort((np.arange(lo, hi), -index.weights_of(slice(lo, hi))))[:7]
        np.testing.assert_array_equal(index.top_in_range(lo, hi, 7), expected)


def test_every_large_range_is_precomputed_once(thousands):
    index = build(thousands, hot_range=64, hot_top=5)
    folded = {fold(phrase) for phrase, _ in thousands}
    ranges = {index.range(text[:n]) for text in folded for n in range(len(text) + 1)}
    large = sorted((lo, hi) for lo, hi in ranges if hi - lo >= 64)
    assert [tuple(row) for row in index.hot_ranges.tolist()] == large


def test_the_folded_texts_are_in_the_arrays():
    index = PrefixIndex.build(["São", "Rome", "sao"], [1, 2, 3])
    assert [index.folded(id) for id in range(3)] == [b"rome", b"sao", b"sao"]
    text, offsets = index.all_folded()
    assert (text.tobytes(), offsets.tolist()) == (b"romesaosao", [0, 4, 7, 10])
    assert index.phrases([0, 1, 2]) == ["Rome", "São", "sao"]


def test_the_caller_cannot_change_the_index():
    index = PrefixIndex.build(["a", "b"], [1, 2], hot_range=1, hot_top=1)
    index.top("", 1)[0] = 0
    assert index.top("", 1).tolist() == [1]
    with pytest.raises(ValueError, match="read-only"):
        index.weight_numbers[0] = 9


@pytest.mark.parametrize("phrases", [["São Paulo", "sao paulo", "서울", "New York"], ["a"], []])
def test_a_saved_index_comes_back_mapped(phrases, tmp_path):
    index = PrefixIndex.build(phrases, range(len(phrases)), hot_range=2, hot_top=2)
    index.save(tmp_path / "index")
    again = PrefixIndex.load(tmp_path / "index")
    owner = again.front_coded
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert isinstance(owner, mmap.mmap)
    assert again.phrases(range(len(again))) == index.phrases(range(len(index)))
    for prefix in ["", "s", "SAO", "서", "x"]:
        np.testing.assert_array_equal(again.top(prefix), index.top(prefix))


def test_a_damaged_index_is_named(tmp_path):
    PrefixIndex.build(["a"], [1]).save(tmp_path / "index")
    (tmp_path / "index" / "index.weight_values.npy").write_bytes(b"")
    with pytest.raises(ModelError, match=r"index\.weight_values\.npy: .*does not match the hash"):
        PrefixIndex.load(tmp_path / "index")


@pytest.mark.parametrize("pack", [pa.array, lambda phrases: pa.chunked_array([phrases]), np.array])
def test_phrases_may_come_as_arrays(pack):
    index = PrefixIndex.build(pack(["b", "a", "b"]), pa.array([1, 2, 3]))
    assert index.phrases(index.top("")) == ["b", "a"]
    assert index.weights_of().tolist() == [2, 4]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_slice_of_an_array_is_what_it_holds(kind, chunked):
    phrases = pa.array(["zero", "one", "Two", "thr\u00e9e", "four five"], kind)
    part = (pa.chunked_array([phrases]) if chunked else phrases)[2:]
    index = PrefixIndex.build(part, [1, 2, 3])
    assert index.phrases(range(3)) == ["four five", "thr\u00e9e", "Two"]
    assert [index.folded(id) for id in range(3)] == [b"four five", b"three", b"two"]


@pytest.mark.parametrize(
    ("phrases", "weights", "message"),
    [
        (["a", "b"], [1.0, np.nan], r"weights\[1\] is nan"),
        (["a", "b"], [1.0, -2.0], r"weights\[1\] is -2\.0"),
        (["a", "b"], [np.inf, 1.0], r"weights\[0\] is inf"),
        (["a", "a"], [1e308, 1e308], "phrase 'a' sum to infinity"),
        (["a"], ["heavy"], "weights are not numbers"),
        (["a"], [[1.0]], r"weights have shape \(1, 1\)"),
        (["a", "b"], [1.0], "2 phrases but 1 weights"),
        (["a", ""], [1, 1], r"phrases\[1\] is '': expected something to match"),
        (["a", " \u0301"], [1, 1], r"phrases\[1\] is .*: expected something to match"),
        (["a", "b" * 1001], [1, 1], r"phrases\[1\] is 'bbb.*\.\.\.: of 1001 characters"),
        (["a", None], [1, 1], r"phrases\[1\] is None: expected a str"),
        (["a", b"b"], [1, 1], r"phrases\[1\] is b'b': expected a str"),
        (["a", "b\ud800"], [1, 1], r"phrases\[1\] is .*: expected valid Unicode"),
        (pa.array(["a", None]), [1, 1], r"phrases\[1\] is None"),
        (pa.array([b"a", b"b"]), [1, 1], r"phrases\[0\] is b'a': expected a str"),
        (pa.array([1, 2]), [1, 1], r"phrases\[0\] is 1: expected a str"),
        ("ab", [1, 1], "phrases is the str 'ab'"),
    ],
)
def test_bad_input_is_named(phrases, weights, message):
    with pytest.raises(InputError, match=message):
        PrefixIndex.build(phrases, weights)


def test_bad_questions_are_named():
    index = PrefixIndex.build(["a"], [1])
    with pytest.raises(InputError, match="k is 0"):
        index.top("a", 0)
    with pytest.raises(InputError, match="hot_top is 0"):
        PrefixIndex.build(["a"], [1], hot_top=0)
    with pytest.raises(InputError, match=r"\[0, 2\) is not within"):
        index.top_in_range(0, 2)
    with pytest.raises(InputError, match="prefix is None"):
        index.ranges(["a", None])
    for id in [-1, 1]:
        with pytest.raises(IndexError, match=f"no phrase has id {id}"):
            index.phrase(id)
        for look_up in (index.phrases, index.folded_texts):
            with pytest.raises(IndexError, match="no phrase has such an id"):
                look_up([0, id])


def test_the_longest_phrase_is_found_and_a_longer_prefix_finds_nothing():
    index = PrefixIndex.build(["x" * 1000], [1])
    assert index.top("x" * 1000).tolist() == [0]
    assert index.top("x" * 10_000_000).tolist() == []
    assert index.find("x" * 1001) == -1


@given(
    phrases=st.lists(st.text("aAbB ́é\U0001f600", min_size=1, max_size=4), min_size=1, max_size=20),
    other=st.text("aAbB ́é\U0001f600", max_size=4),
)
def test_a_phrase_stands_where_its_folded_form_and_spelling_put_it(phrases, other):
    phrases = [phrase for phrase in phrases if fold(phrase)]
    index = PrefixIndex.build(phrases, np.ones(len(phrases)))
    ordered = sorted(set(phrases), key=lambda phrase: (fold(phrase), phrase))
    assert index.phrases(range(len(index))) == ordered
    for phrase in [*phrases, other]:
        before = [p for p in ordered if (fold(p), p) < (fold(phrase), phrase)]
        place = (len(before), phrase in ordered, fold(phrase).encode(), index.alike(phrase))
        assert index.place(phrase) == place
        assert index.find(phrase) == (len(before) if phrase in ordered else -1)
    assert [index.folded(i).decode() for i in range(len(index))] == [fold(p) for p in ordered]


CHARACTERS = (
    st.characters(max_codepoint=127)
    | st.characters(codec="utf-8")
    | st.sampled_from("  \t\u00a0\u0301¨ﷺΣ")
)


@given(st.lists(st.text(CHARACTERS, min_size=1, max_size=6).filter(fold), min_size=1, max_size=4))
def test_many_phrases_are_folded_as_each_is_by_definition(phrases):
    index = PrefixIndex.build(phrases, np.ones(len(phrases)))
    for text in phrases:
        assert index.folded(index.find(text)).decode() == fold(text)


def test_every_character_is_folded_as_by_definition():
    codes = [code for code in range(1, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    # Every character there is, and some of those that nobody has given a meaning.
    codes = [c for c in codes if unicodedata.category(chr(c)) not in ("Cn", "Co") or c % 64 < 2]
    phrases = [f"x{chr(code)}y {chr(code)}" for code in codes]
    spellings, folded = encoded_phrases(phrases)
    assert spellings.to_pylist() == [phrase.encode() for phrase in phrases]
    assert folded.to_pylist() == [fold(phrase).encode() for phrase in phrases]


def test_phrases_are_encoded_in_parts(monkeypatch):
    monkeypatch.setattr("telic.completion.engine.encoded_phrases.JOINED", 2)
    phrases = ["a", "é", "\0b", "c", "d\0", "\0\0e", "f"]
    for n in range(len(phrases) + 1):
        assert encoded_phrases(phrases[:n])[0].to_pylist() == [p.encode() for p in phrases[:n]]
    with pytest.raises(InputError, match=r"phrases\[11\] is None"):
        encoded_phrases([*phrases[:4], None], begin=7)


def test_numbers_take_as_few_bytes_as_they_may():
    """Millions of phrases are held."""
    for n in (1, 63, 100, 5000):
        assert block_maxima(np.ones(n)).dtype == np.int32
    assert [number_kind(np.empty(n)) for n in (1, 300, 65_536, 65_537)] == [
        np.uint16, np.uint16, np.uint16, np.uint32
    ]  # fmt: skip


def test_more_weights_than_sixteen_bits_number_keep_their_order():
    weights = np.random.default_rng(0).permutation(70_000).astype(float)
    index = PrefixIndex.build([f"{i:05}" for i in range(70_000)], weights)
    np.testing.assert_array_equal(index.weights_of(), weights)
    assert index.top("", 5).tolist() == np.argsort(-weights)[:5].tolist()


def test_an_older_versions_index_is_refused_by_name(tmp_path):
    save_model(tmp_path / "old", kind="prefix-index", meta={}, arrays={"weights": np.ones(2)})
    with pytest.raises(ModelError, match=r"old: its index is an older version's\. Fit it again"):
        PrefixIndex.load(tmp_path / "old")


@pytest.mark.parametrize(("count", "kept"), [(15, 0), (16, 1)])
def test_a_range_of_all_phrases_is_kept_from_the_least_size_on(count, kept):
    index = PrefixIndex.build(
        [f"tea {i:02}" for i in range(count)], np.ones(count), hot_range=16, hot_top=5
    )
    assert len(index.hot_ranges) == kept
