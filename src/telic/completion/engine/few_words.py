"""Phrases of a short list by the words in them, as `WordIndex` finds those of a long one."""

from collections.abc import Sequence

import numpy as np

from telic.completion.engine.array_kernels import frozen, joined_texts
from telic.completion.engine.keyboards import keys_beside
from telic.completion.engine.typos import make_trie
from telic.completion.engine.word_index import near_words, sought
from telic.completion.engine.words import indexed_words

NEVER = 1 << 20
"""Cost of a phrase that has no word for a token."""


class FewWords:
    """The words of phrases that change too often to be indexed: a user's own, or an editor's.

    Parameters
    ----------
    folded : sequence of bytes
        Folded forms.

    Examples
    --------
    >>> words = FewWords([b"san francisco", b"santa fe"])
    >>> [each.tolist() for each in words.matching("sna fran", typos=1)]
    [[0], [4]]
    """

    def __init__(self, folded: Sequence[bytes]) -> None:
        # Arrow would load pandas to tell a list.
        words, self._begins = indexed_words(*joined_texts(folded))
        each = words.to_pylist()
        distinct = sorted(set(each))
        number = {word: i for i, word in enumerate(distinct)}
        self._word, self._size = np.array([number[word] for word in each], np.int64), len(distinct)
        self._trie = tuple(map(frozen, make_trie(*joined_texts(distinct))))

    def __len__(self) -> int:
        """Return the number of phrases."""
        return len(self._begins) - 1

    def matching(
        self, typed: str, *, typos: int = 0, keyboard: str | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which phrases have every typed word, ascending, and their costs.

        Parameters
        ----------
        typed, typos, keyboard
            As of `WordIndex.top`.

        Returns
        -------
        places, costs : int64 arrays
            A cost is in quarters of an edit.
        """
        total = np.zeros(len(self), np.int64)
        tokens = sought(typed, typos) if self._size else []
        for token in tokens:
            cost = np.full(self._size, NEVER)
            ranges = near_words(self._trie, self._size, token, keys_beside(keyboard))
            for lo, hi, own in ranges.tolist():
                cost[lo:hi] = own
            first, end = self._begins[:-1], self._begins[1:]
            cheapest = np.minimum.reduceat(np.append(cost[self._word], NEVER), first)
            total += np.where(first < end, cheapest, NEVER)
        places = np.flatnonzero(total < NEVER) if tokens else np.empty(0, np.int64)
        return places, total[places]
