"""The word index against its definition: every phrase, every word, every edit distance."""

import functools
import itertools
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import PrefixIndex, fold
from telic.completion.engine import word_index
from telic.completion.engine.filters import Contexts, Filter
from telic.completion.engine.keyboards import keys_beside
from telic.completion.engine.packed_numbers import read
from telic.completion.engine.prefix_kernels import BLOCK
from telic.completion.engine.typos import ONE_EDIT, QUARTER_EDIT, TWO_EDITS, make_trie, near
from telic.completion.engine.word_index import WordIndex
from telic.completion.engine.words import SUFFIX, indexed_words, words_of
from telic.errors import ModelError


@functools.cache
def edits_between(a, b, most, beside=frozenset()):
    """Cost of insertions, deletions, substitutions and transpositions of neighbours, or None.

    They are at most so many, and none overlap. Into an ASCII word only ASCII letters are put. An
    edit costs 4; a letter whose key lies beside the right one costs 3.
    """
    d = np.full((most + 1, len(a) + 1, len(b) + 1), 10**6)  # by how many edits there are
    for edits in range(most + 1):
        for i in range(len(a) + 1):
            for j in range(len(b) + 1):
                ways = [0] if i == j == 0 else []
                if i and j and a[i - 1] == b[j - 1]:
                    ways.append(d[edits, i - 1, j - 1])
                if edits:
                    before, puts = d[edits - 1], j and (b[j - 1].isascii() or not a.isascii())
                    if i:
                        ways.append(before[i - 1, j] + 4)
                    if puts:
                        ways.append(before[i, j - 1] + 4)
                    if i and puts:
                        slip = a[i - 1] + b[j - 1] in beside
                        ways.append(before[i - 1, j - 1] + (3 if slip else 4))
                    if i > 1 and j > 1 and (a[i - 1], a[i - 2]) == (b[j - 2], b[j - 1]):
                        ways.append(before[i - 2, j - 2] + 4)
                d[edits, i, j] = min(ways, default=10**6)
    least = d[:, -1, -1].min()
    return int(least) if least < 10**6 else None


def cost_between(token, word, edits, whole, beside=frozenset()):
    """Quarters of an edit from a typed token to a word it may mean, or None."""
    ends = [word] if whole else [word[:n] for n in range(len(word) + 1)]
    ends = [end for end in ends if abs(len(end) - len(token)) <= edits]  # more differ by more
    costs = [edits_between(token, end, edits, beside) for end in ends]
    costs += [2] if whole and word.startswith(token) else []
    return min((cost for cost in costs if cost is not None), default=None)


def pairs(*rows):
    """Keys beside each other, in both orders, by the rows' keys one below the other."""
    there = {a + b for row in rows for a, b in itertools.pairwise(row)}
    for above, below in itertools.pairwise(rows):
        there |= {a + b for i, b in enumerate(below) for a in above[i : i + 2]}
    return frozenset(there | {b + a for a, b in there})


PAIRS = {
    None: frozenset(),
    "qwerty": pairs("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "qwertz": pairs("1234567890", "qwertzuiop", "asdfghjkl", "yxcvbnm"),
    "azerty": pairs("1234567890", "azertyuiop", "qsdfghjklm", "wxcvbn"),
}


# Thai, Lao, Burmese, Khmer, kana and Han are written without spaces.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


def found_by(folded):
    """The words that a phrase is found by."""
    found = set()
    for word in words_of(folded):
        if not UNSPACED.search(word):
            found.add(word)
            continue
        for i in (0, *begins_within(word)):
            if unicodedata.category(word[i])[0] != "M":
                spaced = UNSPACED.split(word[i:])[0]
                found.add(word[i : i + max(SUFFIX, len(spaced))])
    return found


def begins_within(word):
    """Where words are found by begin in a text without spaces, but for its first character."""
    return [
        i
        for i in range(1, len(word))
        if UNSPACED.search(word[i - 1 : i + 1]) and unicodedata.category(word[i])[0] != "M"
    ]


def pieces(word):
    """A typed word in pieces as long as what is kept of a text without spaces."""
    begins, count = begins_within(word), -(-len(word) // SUFFIX)
    if count == 1 or not UNSPACED.search(word):
        return [word]
    cuts = {0, len(word)}
    for i in range(1, count) if begins else ():
        cuts.add(min(begins, key=lambda begin: (abs(begin - i * len(word) / count), begin)))
    return [word[a:b][:SUFFIX] for a, b in itertools.pairwise(sorted(cuts))]


class BruteForce:
    """The best phrases by looking at all of them."""

    def __init__(self, index):
        self.index = index
        self.allowed = np.ones(len(index), bool)
        self.words = [found_by(index.folded(i).decode()) for i in range(len(index))]

    def top(self, typed, k, *, unit=1.0, typos=1, skip=(0, 0), beside=frozenset()):
        words = words_of(fold(typed))[:8]
        finished = bool(words) and not fold(typed).endswith(words[-1])
        tokens = [
            (piece, j == len(parts) - 1 and (finished or i < len(words) - 1))
            for i, parts in enumerate(map(pieces, words))
            for j, piece in enumerate(parts)
        ][:8]
        found = []
        for id, words in enumerate(self.words):
            total = 0
            for token, whole in tokens:
                edits = min(typos, (len(token) >= ONE_EDIT) + (len(token) >= TWO_EDITS))
                costs = [cost_between(token, word, edits, whole, beside) for word in words]
                costs = [cost for cost in costs if cost is not None]
                total = None if not costs or total is None else total + min(costs)
            if tokens and total is not None and self.allowed[id] and not skip[0] <= id < skip[1]:
                found.append((-(self.index.weights_of(id) - unit * QUARTER_EDIT * total), id))
        return [(id, -score) for score, id in sorted(found)[:k]]


LETTERS = st.sampled_from(["a", "b", "s", "A", " ", "-", "é", "ж", "字", "が", "क्षि", "😀"])
PHRASES = st.lists(LETTERS, min_size=1, max_size=14).map("".join).filter(fold)


@settings(max_examples=100)
@given(
    entries=st.lists(st.tuples(PHRASES, st.integers(0, 30).map(float)), min_size=1, max_size=12),
    typed=st.lists(LETTERS, max_size=12).map("".join),
    cut=st.integers(1, 14),
    k=st.integers(1, 5),
    unit=st.sampled_from([0.5, 1.0]),
    typos=st.integers(0, 2),
    skipped=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    keyboard=st.sampled_from([None, "qwerty", "azerty"]),
)
def test_the_word_index_equals_brute_force(entries, typed, cut, k, unit, typos, skipped, keyboard):
    index = PrefixIndex.build([p for p, _ in entries], [w for _, w in entries])
    words, brute = WordIndex.build(index), BruteForce(index)
    for text in [typed, entries[0][0][:cut], entries[0][0][:cut] + typed[:3], typed[:2] + " a"]:
        how = {"unit": unit, "typos": typos, "skip": skipped}
        ids, scores = words.top(index, text, k, keyboard=keyboard, **how)
        expected = brute.top(text, k, beside=PAIRS[keyboard], **how)
        np.testing.assert_allclose(scores, [score for _, score in expected], atol=1e-9)
        # Sums in another order may break a tie in the last bit.
        near = {round(score, 6) for _, score in expected}
        if len(near) == len(expected):
            assert ids.tolist() == [id for id, _ in expected]


@settings(max_examples=100)
@given(
    words=st.sets(st.text("abcsqwé字", min_size=1, max_size=9), min_size=1, max_size=40),
    under=st.sampled_from(["", "a", "c字", "b" * 200]),
    token=st.text("abcsqwé字", min_size=1, max_size=9),
    edits=st.integers(0, 3),
    whole=st.booleans(),
    keyboard=st.sampled_from([None, "qwerty", "azerty"]),
)
def test_words_near_a_token_are_all_found_with_their_least_cost(
    words, under, token, edits, whole, keyboard
):
    edits = min(edits, 2) if keyboard else edits
    more = {under + a + b for a in "abcdefé" for b in "abcdef"}  # more than an entry may have
    ordered = sorted(words | more, key=str.encode)
    encoded = [word.encode() for word in ordered]
    text, offsets = np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)])
    ranges = near(
        make_trie(text, offsets),
        len(ordered),
        np.array([ord(c) for c in token], np.int32),
        edits,
        whole,
        keys_beside(keyboard),
    )
    found = {ordered[i]: cost for lo, hi, cost in ranges.tolist() for i in range(lo, hi)}
    assert sum(hi - lo for lo, hi, _ in ranges.tolist()) == len(found)  # disjoint
    beside = PAIRS[keyboard]
    costs = {word: cost_between(token, word, edits, whole, beside) for word in ordered}
    assert found == {word: cost for word, cost in costs.items() if cost is not None}


def test_what_is_found_is_never_written_beyond_its_table(monkeypatch):
    """In plain Python that is an error; compiled code would write on, and read it all the same."""
    letters = [chr(code) for code in range(48, 123)]
    words = sorted({"abc"[:i] + letter + "abc"[i + 1 :] for i in range(3) for letter in letters})
    text = np.frombuffer("".join(words).encode(), np.uint8)
    trie = make_trie(text, 3 * np.arange(len(words) + 1))
    given = trie, len(words), np.array(list(b"abc"), np.int32), 1, True, None
    compiled, within = near(*given), near.py_func.__globals__
    monkeypatch.setitem(within, "set_row", within["set_row"].py_func)
    ranges = near.py_func(*given)
    np.testing.assert_array_equal(ranges, compiled)
    assert (ranges[:, 1] - ranges[:, 0]).sum() == len(words)


@pytest.fixture(scope="module")
def many():
    """Thousands of phrases over words of skewed frequency: blocks of maxima, long postings."""
    rng = np.random.default_rng(3)
    words = [f"{a}{b}{c}" for a in "kmnpst" for b in ("a", "e", "io") for c in ("r", "ll", "ndo")]
    picks = np.minimum(rng.zipf(1.3, (4000, 3)) - 1, len(words) - 1)
    phrases = sorted({" ".join(words[i] for i in row[: 1 + row[0] % 3]) for row in picks})
    phrases += [f"{word}{i}" for word in words for i in range(20)]
    return PrefixIndex.build(phrases, rng.permutation(len(phrases)).astype(float) / 7)


@pytest.fixture(scope="module")
def many_words(many):
    return WordIndex.build(many)


@pytest.fixture(scope="module")
def best_of_many(many):
    return functools.cache(BruteForce(many).top)


BEST_FIRST, EACH, MARKED = (10**5, 10**5, 0), (3, 10**5, 0), (3, 10**5, 10**5)
"""All candidates are looked at best first; as they lie; as they lie, if two words have them."""


@pytest.mark.parametrize("budgets", [word_index.BUDGETS, BEST_FIRST, EACH, MARKED])
@pytest.mark.parametrize(
    "typed", ["k", "ka", "kar me", "me kar", "kar kar k", "kell ", "kndo", "xar", "kalr mio"]
)
def test_large_ranges_equal_brute_force(
    many, many_words, best_of_many, typed, budgets, monkeypatch
):
    monkeypatch.setattr(word_index, "BUDGETS", budgets)
    assert len(many_words.heads) > 3 * BLOCK
    for typos in (0, 1, 2):
        ids, _ = many_words.top(many, typed, 10, typos=typos)
        assert ids.tolist() == [id for id, _ in best_of_many(typed, 10, typos=typos)]


def test_a_search_that_ends_early_finds_what_matches(many, many_words, best_of_many, monkeypatch):
    monkeypatch.setattr(word_index, "BUDGETS", (0, 40, 0))
    expected = dict(best_of_many("kar me", len(many)))
    ids, scores = many_words.top(many, "kar me", 10)
    assert 0 < len(ids) < len(expected)
    assert scores.tolist() == sorted((expected[id] for id in ids.tolist()), reverse=True)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("iphone", "Apple iPhone 14"),
        ("sna fran", "San Francisco"),
        ("fran san", "San Francisco"),
        ("aple", "Apple iPhone 14"),
        ("ipohne 14", "Apple iPhone 14"),
        ("タワー", "東京タワー"),
        ("京タ", "東京タワー"),
        ("xan francisco", "San Francisco"),
        ("chatuea", "Château d'Ell"),
        ("महा हिन्द", "हिन्द महासागर"),
        ("fransicso", "San Francisco"),
    ],
)
def test_what_people_type_finds_what_they_mean(typed, wanted):
    phrases = ["Apple iPhone 14", "San Francisco", "東京タワー", "Château d'Ell", "हिन्द महासागर"]
    index = PrefixIndex.build(phrases, np.ones(len(phrases)))
    found = index.phrases(WordIndex.build(index).top(index, typed, typos=2)[0])
    assert found == [wanted]


def test_an_older_versions_words_are_refused(many_words):
    arrays = many_words.arrays()
    del arrays["words.ends"]
    with pytest.raises(ModelError, match="older version"):
        WordIndex.stored(arrays)


def test_words_are_letters_marks_and_digits():
    assert words_of(fold("O'Neil & Söhne—2/3 हिन्दी")) == ["o", "neil", "sohne", "2", "3", "हिन्दी"]
    assert found_by(fold("new york new")) == {"new", "york"}
    assert found_by("東京a") == {"東京a", "京a", "a"}


@settings(max_examples=100)
@given(st.lists(st.text().map(fold) | PHRASES.map(fold), max_size=5))
def test_words_are_found_in_many_phrases_at_a_time(phrases):
    encoded = [phrase.encode() for phrase in phrases]
    text, offsets = np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)])
    words, begins = indexed_words(text, offsets)
    texts = [word.decode() for word in words.to_pylist()]
    found = [set(texts[a:b]) for a, b in itertools.pairwise(begins.tolist())]
    assert found == [found_by(phrase) for phrase in phrases]


def test_a_long_word_of_a_script_without_spaces_is_cut():
    text = np.frombuffer(("字" * 20 + "a").encode(), np.uint8)
    words, _ = indexed_words(text, np.array([0, len(text)]))
    lengths = [len(word.decode()) for word in words.to_pylist()]
    assert lengths == [SUFFIX] * 9 + list(range(SUFFIX, 0, -1))


def test_a_long_word_of_another_script_in_such_a_text_is_whole():
    text = np.frombuffer("字internationalization字".encode(), np.uint8)
    words, _ = indexed_words(text, np.array([0, len(text)]))
    found = [word.decode() for word in words.to_pylist()]
    assert found == ["字internation", "internationalization", "字"]


def test_a_phrase_has_each_of_its_words_once_and_a_word_its_phrases_heaviest_first():
    index = PrefixIndex.build(["b a b", "c b a", "字a字 a"], [1, 3, 2])
    words = WordIndex.build(index)
    distinct = sorted(set().union(*(found_by(index.folded(i).decode()) for i in range(3))))

    def lists(start, numbers, n):
        bounds = [read(start, i) for i in range(n + 1)]
        return [[read(numbers, i) for i in range(a, b)] for a, b in itertools.pairwise(bounds)]

    forward = lists(words.forward_start, words.forward, 3)
    of_each = [found_by(index.folded(i).decode()) for i in range(3)]
    assert forward == [sorted(map(distinct.index, found)) for found in of_each]
    has = [[i for i in (1, 2, 0) if word in of_each[i]] for word in distinct]
    assert lists(words.posting_start, words.postings, len(distinct)) == has


def test_phrases_taken_to_pieces_in_parts_are_those_of_the_whole(many, many_words, monkeypatch):
    monkeypatch.setattr(word_index, "PHRASES", 96)
    for name, array in WordIndex.build(many).arrays().items():
        np.testing.assert_array_equal(array, many_words.arrays()[name], err_msg=name)


@pytest.mark.parametrize("typed", ["", "  ", "-", "x" * 2000, "\ud800", "a\ud800 b"])
def test_nothing_to_look_for_finds_nothing(typed):
    index = PrefixIndex.build(["zz"], [1])
    assert WordIndex.build(index).top(index, typed)[0].tolist() == []


@pytest.mark.parametrize("phrases", [[], ["!?"]])
def test_without_words_nothing_is_found(phrases):
    index = PrefixIndex.build(phrases, np.ones(len(phrases)))
    assert WordIndex.build(index).top(index, "a")[0].tolist() == []


@settings(max_examples=50)
@given(
    entries=st.lists(
        st.tuples(PHRASES, st.integers(0, 30).map(float), st.sampled_from(["x", "y", None])),
        min_size=1,
        max_size=12,
        unique_by=lambda row: row[0],
    ),
    typed=st.lists(LETTERS, max_size=8).map("".join),
    asked=st.sampled_from(["x", "y", "z"]),
)
def test_what_does_not_pass_a_filter_is_left_out(entries, typed, asked):
    phrases, weights, tenants = zip(*entries, strict=True)
    index, given = PrefixIndex.build_ordered(phrases, weights)
    contexts = Contexts.of({"tenant": [tenants[i] for i in given]})
    words, brute = WordIndex.build(index), BruteForce(index)
    brute.allowed = np.array([tenants[i] in (asked, None) for i in given])
    through = Filter(index, contexts, {"tenant": asked})
    for text in (typed, phrases[0][:3]):
        scores = words.top(index, text, 3, through=through)[1]
        np.testing.assert_allclose(scores, [s for _, s in brute.top(text, 3)], atol=1e-9)
