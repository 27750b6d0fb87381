"""Very many phrases of one text, or with one long beginning: the work for them is counted."""

import tracemalloc

import numpy as np
import pytest

from telic.completion import PrefixIndex, fold
from telic.completion.engine import prefix_kernels
from telic.completion.engine.filters import Contexts, Filter
from telic.completion.engine.typos import make_trie
from telic.completion.engine.word_index import WordIndex

MANY = 100_000
BEGINNING = "one and the same long beginning of a title "


@pytest.fixture(scope="module")
def alike():
    """One text a hundred thousand times, each limited to a value of its own, and some others."""
    texts = [BEGINNING] * MANY + [f"{BEGINNING}{i}" for i in range(20)]
    weights = np.arange(len(texts)) % 97.0
    index, given = PrefixIndex.build_ordered(texts, weights, apart=np.arange(len(texts)))
    return index, Contexts.of({"shop": [str(i % MANY) for i in given]})


def test_the_phrases_of_one_text_are_found_in_few_steps(alike, monkeypatch):
    index, _ = alike
    text, read = np.frombuffer(fold(BEGINNING).encode(), np.uint8), []
    length_of = prefix_kernels.length_of
    monkeypatch.setattr(
        prefix_kernels, "length_of", lambda *given: read.append(given[1]) or length_of(*given)
    )
    assert prefix_kernels.range_of.py_func(index.strings, len(index), text) == (0, MANY)
    assert len(read) <= 4 * np.log2(MANY)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 17, 100])
@pytest.mark.parametrize("longer", [0, 1, 40])
def test_all_phrases_of_one_text_are_found_and_no_others(count, longer):
    texts = ["a", *["b"] * count, *[f"b{i}" for i in range(longer)], "c"]
    index, _ = PrefixIndex.build_ordered(texts, np.ones(len(texts)), apart=np.arange(len(texts)))
    assert index.alike("B") == range(1, 1 + count)
    assert index.spelled_as("b") == range(1, 1 + count)
    assert len(index.spelled_as("B")) == len(index.spelled_as("bb")) == 0


@pytest.mark.parametrize("boost", [{}, {"shop": {"7": 1000.0, "11": 0.1}}])
def test_a_keystroke_reads_few_phrases_of_one_text(alike, boost, monkeypatch):
    index, contexts = alike
    read, phrases = [], PrefixIndex.phrases

    def counted(self, ids):
        read.append(len(ids))
        return phrases(self, ids)

    through = Filter(index, contexts, boost=boost)
    monkeypatch.setattr(PrefixIndex, "phrases", counted)
    ids, weights = through.top("one", 10)
    assert sum(read) <= 10_000
    assert len({index.phrase(id) for id in ids}) == 10
    best = through.boosted(np.arange(MANY))
    assert (ids[0], weights[0]) == (best.argmax(), best.max())
    rest = np.sort(through.boosted(np.arange(MANY, len(index))))[::-1]
    np.testing.assert_array_equal(weights[1:], rest[:9])


def test_the_best_of_a_text_may_be_one_that_no_boost_holds_back():
    """All the heavier ones of the text are held back, and are too many to read."""
    weights = [10.0] * 5_000 + [9.0, 8.5]
    index, given = PrefixIndex.build_ordered(
        ["tea"] * 5_001 + ["teak"], weights, apart=np.arange(5_002)
    )
    contexts = Contexts.of({"shop": ["x" if i < 5_000 else "y" for i in given]})
    ids, found = Filter(index, contexts, boost={"shop": {"x": 0.01}}).top("t", 2)
    assert index.phrases(ids) == ["tea", "teak"]
    assert found.tolist() == [9.0, 8.5]


def test_a_filter_finds_its_phrase_among_all_of_one_text(alike):
    index, contexts = alike
    for shop in ("0", "99999"):
        found = Filter(index, contexts, {"shop": shop}).find(BEGINNING)
        assert contexts.values[0][contexts.codes[0, found]] == shop
    assert Filter(index, contexts, {"shop": "none"}).find(BEGINNING) == -1


def peak_of(count):
    """The most memory that building takes for so many phrases with one beginning."""
    texts, weights = [f"{BEGINNING}{i:06}" for i in range(count)], np.ones(count)
    tracemalloc.start()
    words = WordIndex.build(PrefixIndex.build(texts, weights))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, words


def test_the_memory_of_a_build_grows_with_the_phrases_not_faster():
    peak_of(100)  # compiles, which takes memory too
    less, _ = peak_of(MANY // 2)
    more, words = peak_of(MANY)
    assert more <= 2.2 * less
    assert len(words.heads) == MANY + len(BEGINNING.split())


def test_the_trie_of_words_with_one_beginning_reads_each_letter_a_few_times(monkeypatch):
    from telic.completion.engine import typos

    def made(count):
        encoded = [b"same" * 5 + b"%05d" % i for i in range(count)]
        offsets = np.cumsum([0, *map(len, encoded)])
        make_trie.py_func(np.frombuffer(b"".join(encoded), np.uint8), offsets)
        return offsets[-1]

    made(2)  # compiles what it calls, which then no longer looks for the name that is replaced
    read, character = [0], typos.character.py_func

    def counted(*given):
        read[0] += 1
        return character(*given)

    monkeypatch.setattr(typos, "character", counted)
    letters = []
    for count in (1_000, 2_000):
        read[0] = 0
        size = made(count)
        letters.append(read[0] / size)
    assert max(letters) <= 4
