"""Phrases by the words in them: in any place and order, begun, or mistyped."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.completion.engine import near_words
from telic.completion.engine.filters import Filter
from telic.completion.engine.folding import fold
from telic.completion.engine.packed_numbers import pack_numbers
from telic.completion.engine.prefix_index import PrefixIndex, block_maxima
from telic.completion.engine.word_kernels import best_phrases
from telic.data.contracts import MAX_TEXT
from telic.errors import ModelError

HALF_EDIT = float(np.log(10))
"""What half an edit takes from a logarithm of popularity: a phrase with an edit must be a hundred
times as popular as one without."""
ONE_EDIT, TWO_EDITS = 3, 8
"""Characters from which a typed word may have one edit, or two."""
MAX_TOKENS = 8
"""Typed words beyond these are not looked for."""
BUDGETS = 100, 3_000, 60_000
"""Candidates that are looked at for one list, see `word_kernels.best_phrases`: best first; each; by
marking those that two typed words have."""
SUFFIX = 12
"""Longest word, in characters, that is kept of a text without spaces, from each character on."""

_ALL = np.empty((0, 1), np.int32)  # no context, no filter
_ASCII_WORD = re.compile("[a-z0-9]+")
_NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts that are written without spaces."""


def words_of(folded: str) -> list[str]:
    """Split a folded text at everything that is no letter, mark or digit.

    Examples
    --------
    >>> words_of(fold("St. John's (Île-à-Vache)"))
    ['st', 'john', 's', 'ile', 'a', 'vache']
    """
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    kept = [c if unicodedata.category(c)[0] in "LNM" else " " for c in folded]
    return "".join(kept).split()


def indexed_words(folded: str) -> set[str]:
    """Return the words that a phrase is found by.

    Of a script without spaces these are the text from each of its characters on, so that any
    part of it is the beginning of one.
    """
    found = set()
    for word in words_of(folded):
        if not _NO_SPACES.search(word):
            found.add(word)
            continue
        for i, character in enumerate(word):
            begins = i == 0 or _NO_SPACES.match(character) or _NO_SPACES.match(word[i - 1])
            if begins and unicodedata.category(character)[0] != "M":
                found.add(word[i : i + SUFFIX])
    return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordIndex:
    """The words of a prefix index's phrases, and the phrases that have each.

    Make one with `build`; it goes with the index it was built of.

    Attributes
    ----------
    letters, firsts, downs, ends : int32 arrays, uint8 array
        The words, sorted, as a trie: see `telic.completion.engine.near_words`.
    posting_start, postings : packed numbers
        Ids of the phrases that have word w, heaviest first, from ``posting_start[w]`` on: see
        `telic.completion.engine.packed_numbers`.
    forward_start, forward : packed numbers
        The words of phrase p, ascending, from ``forward_start[p]`` on.
    heads : uint16 or uint32 array, shape (words,)
        Number of the weight (`PrefixIndex.weight_numbers`) of each word's heaviest phrase.
    head_maxima : int32 or int64 array, shape (levels, blocks)
        As `PrefixIndex.block_maxima`, of `heads`.

    Examples
    --------
    >>> index = PrefixIndex.build(["Apple iPhone 14", "San Francisco", "Santa Fe"], [3, 9, 1])
    >>> words = WordIndex.build(index)
    >>> [index.phrases(words.top(index, typed)[0]) for typed in ("14 ipho", "sna fran")]
    [['Apple iPhone 14'], ['San Francisco']]
    """

    letters: np.ndarray
    firsts: np.ndarray
    downs: np.ndarray
    ends: np.ndarray
    posting_start: np.ndarray
    postings: np.ndarray
    forward_start: np.ndarray
    forward: np.ndarray
    heads: np.ndarray
    head_maxima: np.ndarray

    def __post_init__(self) -> None:
        for field in fields(self):
            array = np.asarray(getattr(self, field.name)).view()
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)

    @classmethod
    def build(cls, index: PrefixIndex) -> Self:
        """Take the phrases of a prefix index to pieces."""
        phrase, word = _pairs(index)
        coded = word.dictionary_encode()
        order = pc.sort_indices(coded.dictionary).to_numpy()
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        number = rank[coded.indices.to_numpy(zero_copy_only=False)] if len(word) else phrase
        size = max(len(order), 1)
        pairs = np.unique(phrase * size + number)
        phrase, number = pairs // size, pairs % size
        words = coded.dictionary.take(pa.array(order)).cast(pa.large_binary())
        forward_start = np.zeros(len(index) + 1, np.int64)
        np.cumsum(np.bincount(phrase, minlength=len(index)), out=forward_start[1:])
        posting_start = np.zeros(len(order) + 1, np.int64)
        np.cumsum(np.bincount(number, minlength=len(order)), out=posting_start[1:])
        postings = phrase[
            np.lexsort((phrase, -index.weight_numbers[phrase].astype(np.int64), number))
        ]
        heads = index.weight_numbers[postings[posting_start[:-1]]]
        lengths = pc.binary_length(words).to_numpy(zero_copy_only=False)
        text = np.frombuffer(b"".join(words.to_pylist()), np.uint8)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        letters, firsts, downs, ends = near_words.make_trie(text, offsets)
        return cls(
            letters,
            firsts,
            downs,
            ends,
            pack_numbers(posting_start),
            pack_numbers(postings),
            pack_numbers(forward_start),
            pack_numbers(number),
            heads,
            block_maxima(heads),
        )

    def top(
        self,
        index: PrefixIndex,
        typed: str,
        k: int = 10,
        *,
        unit: float = 1.0,
        typos: int = 1,
        skip: tuple[int, int] = (0, 0),
        through: Filter | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Give the best phrases that have every typed word.

        A phrase's score is its weight, a logarithm of popularity over ``unit``'s inverse, less
        ``unit * HALF_EDIT`` for each half edit: popularity times a factor of 1/100 for each edit
        and 1/10 for each word that is only begun though another was typed after it. Of two typed
        words the last may always be only begun, unless white space follows it.

        Parameters
        ----------
        index : PrefixIndex
            The one that this was built of.
        typed : str
        k : int
        unit : float
            Weight of the logarithm of popularity in the index's weights.
        typos : {0, 1, 2}
            The most edits that a word may have: insertions, deletions, substitutions, and
            transpositions of neighbours, in any place. A word shorter than `ONE_EDIT` characters
            may have none, one shorter than `TWO_EDITS` only one.
        skip : (int, int)
            Ids, from the first to before the second, that are left out.
        through : Filter, optional
            What does not pass it is left out; its boosts do not count.

        Returns
        -------
        ids : int64 array
            Best first, at most `k`.
        scores : float64 array
        """
        nothing = np.empty(0, np.int64), np.empty(0)
        if len(typed) > MAX_TEXT or not len(self.heads):
            return nothing
        folded = fold(typed)
        tokens = words_of(folded)[:MAX_TOKENS]
        if not tokens:
            return nothing
        finished = not folded.endswith(tokens[-1])
        ranges = []
        for i, token in enumerate(tokens):
            whole = i < len(tokens) - 1 or finished
            edits = min(typos, (len(token) >= ONE_EDIT) + (len(token) >= TWO_EDITS))
            ranges.append(self._near(token, edits, whole))
            if not len(ranges[-1]):
                return nothing
        starts = np.cumsum([0, *map(len, ranges)])
        ids, scores = np.empty(k, np.int64), np.empty(k)
        filtered = (_ALL, _ALL[:, 0])
        if through is not None:
            filtered = through.contexts.codes, through.wanted
        found = best_phrases(
            (index.weight_numbers, index.weight_values),
            (self.heads, self.head_maxima),
            (self.postings, self.posting_start),
            (self.forward, self.forward_start),
            (np.concatenate(ranges), starts),
            unit * HALF_EDIT,
            skip,
            BUDGETS,
            filtered,
            (ids, scores),
        )
        return ids[:found], scores[:found]

    def _near(self, token: str, edits: int, whole: bool) -> np.ndarray:
        codes = np.array([ord(character) for character in token], np.int32)
        trie = self.letters, self.firsts, self.downs, self.ends
        return near_words.near(trie, len(self.heads), codes, edits, whole)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a model folder keeps."""
        return {f"words.{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def stored(cls, arrays: Mapping[str, np.ndarray]) -> Self | None:
        """Read back what `arrays` gave; None if it was never there.

        Raises
        ------
        ModelError
            If an older version gave it.
        """
        if "words.heads" not in arrays:
            return None
        if "words.ends" not in arrays:
            raise ModelError("the model's word index is an older version's. Fit it again.")
        return cls(**{field.name: arrays[f"words.{field.name}"] for field in fields(cls)})


def _pairs(index: PrefixIndex) -> tuple[np.ndarray, pa.Array]:
    """Every word of every phrase: the phrase's id, and the word."""
    text, offsets = index.all_folded()
    n = len(index)
    high = np.concatenate([[0], np.cumsum(text >= 0x80)])
    plain = high[offsets[1:]] == high[offsets[:-1]]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    texts = pa.Array.from_buffers(pa.large_string(), n, buffers)
    split = pc.split_pattern_regex(texts.filter(pa.array(plain)), "[^a-z0-9]+")
    lengths = pc.list_value_length(split).to_numpy(zero_copy_only=False)
    phrase = np.repeat(np.flatnonzero(plain), lengths)
    words = pc.list_flatten(split)
    there = pc.not_equal(words, "")
    phrase = phrase[there.to_numpy(zero_copy_only=False)]
    words = words.filter(there)
    others = np.flatnonzero(~plain)
    sets = [indexed_words(text[offsets[i] : offsets[i + 1]].tobytes().decode()) for i in others]
    phrase = np.concatenate([phrase, np.repeat(others, [len(s) for s in sets])]).astype(np.int64)
    more = pa.array([word for s in sets for word in s], pa.large_string())
    return phrase, pa.concat_arrays([words.cast(pa.large_string()), more])
