"""Phrases by the words in them: in any place and order, begun, or mistyped."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.completion.engine.array_kernels import frozen
from telic.completion.engine.encoded_phrases import bytes_and_offsets
from telic.completion.engine.filters import Filter
from telic.completion.engine.folding import fold
from telic.completion.engine.keyboards import keys_beside
from telic.completion.engine.packed_numbers import pack_numbers
from telic.completion.engine.prefix_index import PrefixIndex, block_maxima
from telic.completion.engine.typos import QUARTER_EDIT, edits_allowed, make_trie, near
from telic.completion.engine.word_kernels import best_phrases
from telic.completion.engine.words import indexed_words, pieces_of, words_of
from telic.data.contracts import MAX_TEXT
from telic.errors import ModelError
from telic.kernels import kernel

MAX_TOKENS = 8
"""Typed words beyond these are not looked for."""
BUDGETS = 100, 3_000, 60_000
"""Candidates that are looked at for one list, see `word_kernels.best_phrases`: best first; each; by
marking those that two typed words have. Where no typos are looked for there is no limit: the worst
are three typed words, each two of which are in many phrases and all three in few."""
PHRASES = 1 << 16
"""Phrases that are taken to pieces at a time."""

NO_VALUES = np.empty(0, np.int32)
"""What `WordIndex.top` takes for no boosted values."""
_ALL = frozen(np.empty((0, 1), np.int32)), NO_VALUES, NO_VALUES  # no context, no filter, no boost


NONE_LEFT_OUT = np.zeros(0, np.bool_)
"""What `WordIndex.top` takes for no phrase that is left out."""


class Token(NamedTuple):
    """A typed word, and what it may mean."""

    text: str
    whole: bool
    """Whether it is finished; else it may be the beginning of a word."""
    edits: int
    """The most edits that it may have."""


def sought(typed: str, typos: int) -> list[Token]:
    """Return the words of what was typed, or pieces of them, at most `MAX_TOKENS`."""
    if len(typed) > MAX_TEXT:
        return []
    folded = fold(typed)
    words = words_of(folded)[:MAX_TOKENS]
    finished = bool(words) and not folded.endswith(words[-1])
    tokens = []
    for i, word in enumerate(words):
        # A piece goes on in the next one: only the last may be the end of a phrase's word.
        *begun, last = pieces_of(word)
        tokens += [Token(piece, False, edits_allowed(piece, typos)) for piece in begun]
        whole = finished or i < len(words) - 1
        tokens.append(Token(last, whole, edits_allowed(last, typos)))
    return tokens[:MAX_TOKENS]


def near_words(
    trie: tuple[np.ndarray, ...], size: int, token: Token, keys: np.ndarray | None
) -> np.ndarray:
    """Return what `telic.completion.engine.typos.near` gives for a token."""
    codes = np.array([ord(character) for character in token.text], np.int32)
    return near(trie, size, codes, token.edits, token.whole, keys)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WordIndex:
    """The words of a prefix index's phrases, and the phrases that have each.

    Make one with `build`; it goes with the index it was built of.

    Attributes
    ----------
    letters, firsts, downs, ends : int32 arrays, uint8 array
        The words, sorted, as a trie: see `telic.completion.engine.typos`.
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
            object.__setattr__(self, field.name, frozen(getattr(self, field.name)))

    @classmethod
    def build(cls, index: PrefixIndex) -> Self:
        """Take the phrases of a prefix index to pieces."""
        words, forward_start, forward = _forward(index)
        posting_start = np.zeros(len(words) + 1, np.int64)
        np.cumsum(np.bincount(forward, minlength=len(words)), out=posting_start[1:])
        postings = np.empty(len(forward), np.int32 if len(index) < 2**31 else np.int64)
        heaviest = np.argsort(-index.weight_numbers.astype(np.int64), kind="stable")
        _fill_postings(heaviest, forward_start, forward, posting_start[:-1].copy(), postings)
        heads = index.weight_numbers[postings[posting_start[:-1]]]
        letters, firsts, downs, ends = make_trie(*bytes_and_offsets(words))
        return cls(
            letters,
            firsts,
            downs,
            ends,
            pack_numbers(posting_start),
            pack_numbers(postings),
            pack_numbers(forward_start),
            pack_numbers(forward),
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
        left_out: np.ndarray = NONE_LEFT_OUT,
        through: Filter | None = None,
        boosted: np.ndarray = NO_VALUES,
        keyboard: str | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Give the best phrases that have every typed word.

        A phrase's score is its weight, a logarithm of popularity over ``unit``'s inverse, less
        ``unit * QUARTER_EDIT`` for each quarter of an edit: popularity times a factor of 1/100 for
        each edit and 1/10 for each word that is only begun though another was typed after it. Of
        two typed words the last may always be only begun, unless white space follows it.

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
            transpositions of neighbours, in any place. Short words may have fewer: see
            `telic.completion.engine.typos.edits_allowed`.
        skip : (int, int)
            Ids, from the first to before the second, that are left out.
        left_out : bool array of shape (phrases,), optional
            Which others are left out.
        through : Filter, optional
            What does not pass it is left out; its boosts do not count.
        boosted : int32 array, optional
            With a filter, one of its `Filter.sets`: what lacks a value of it is left out, too.
        keyboard : {"qwerty", "qwertz", "azerty"}, optional
            The layout on which it was typed: a letter beside the right one then costs three
            quarters of an edit, a factor of 1/32.

        Returns
        -------
        ids : int64 array
            Best first, at most `k`.
        scores : float64 array
        """
        nothing = np.empty(0, np.int64), np.empty(0)
        if not len(self.heads) or not (tokens := sought(typed, typos)):
            return nothing
        trie, keys = (self.letters, self.firsts, self.downs, self.ends), keys_beside(keyboard)
        ranges = []
        for token in tokens:
            ranges.append(near_words(trie, len(self.heads), token, keys))
            if not len(ranges[-1]):
                return nothing
        starts = np.cumsum([0, *map(len, ranges)])
        ids, scores = np.empty(k, np.int64), np.empty(k)
        filtered = _ALL
        if through is not None:
            filtered = through.contexts.codes, through.wanted, boosted
        found = best_phrases(
            (index.weight_numbers, index.weight_values),
            (self.heads, self.head_maxima),
            (self.postings, self.posting_start),
            (self.forward, self.forward_start),
            (np.concatenate(ranges), starts),
            unit * QUARTER_EDIT,
            skip,
            left_out,
            BUDGETS,
            typos == 0,
            filtered,
            (ids, scores),
        )
        return ids[:found], scores[:found]

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


def _forward(index: PrefixIndex) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Return all words, sorted; where each phrase's begin among the numbers of all; the numbers.

    A phrase has the number of each of its words once, ascending.
    """
    distinct, numbers, counts = [pa.array([], pa.large_binary())], [], [np.zeros(1, np.int64)]
    for begin in range(0, len(index), PHRASES):
        text, offsets = index.folded_between(begin, min(begin + PHRASES, len(index)))
        words, begins = indexed_words(text, offsets)
        coded = words.dictionary_encode()
        distinct.append(coded.dictionary)
        numbers.append(coded.indices.to_numpy(zero_copy_only=False).astype(np.int32))
        counts.append(np.diff(begins))
    coded = pa.concat_arrays(distinct).dictionary_encode()
    order = pc.sort_indices(coded.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    ranks = rank[coded.indices.to_numpy(zero_copy_only=False)]
    first = np.cumsum([len(part) for part in distinct])
    parts = [ranks[at + part] for at, part in zip(first, numbers, strict=False)]
    forward = np.concatenate([np.empty(0, np.int32), *parts])
    start = np.cumsum(np.concatenate(counts))
    used = _sort_each(start, forward)
    return coded.dictionary.take(order), start, forward[:used]


@kernel
def _sort_each(start, forward):
    """Sort each phrase's words, and close the gaps that words which come again leave; count."""
    used, end = 0, start[0]
    for i in range(len(start) - 1):
        begin, end = end, start[i + 1]
        start[i] = used
        for place in range(begin, end):
            word, at = forward[place], used
            while at > start[i] and forward[at - 1] > word:
                at -= 1
            if at > start[i] and forward[at - 1] == word:
                continue
            for p in range(used, at, -1):
                forward[p] = forward[p - 1]
            forward[at] = word
            used += 1
    start[-1] = used
    return used


@kernel
def _fill_postings(heaviest, start, forward, place, postings):
    """Give each word its phrases in the order in which these come, from its place on."""
    for phrase in heaviest:
        for word in forward[start[phrase] : start[phrase + 1]]:
            postings[place[word]] = phrase
            place[word] += 1
