"""Implicit negative feedback: the 16 features of Table 2.2, updated keystroke by keystroke.

The kernels here are the only place that computes them: training and replay call them from
`telic.completion.learning.replayed_log`, the service through `Feedback`.
"""

from typing import TYPE_CHECKING

import numpy as np

from telic.completion.engine.array_kernels import copy_into, joined_texts
from telic.completion.engine.front_coding import gather
from telic.kernels import kernel

if TYPE_CHECKING:
    from telic.completion.engine.prefix_index import PrefixIndex
    from telic.completion.learning.adaqac import FeedbackDesign

FEATURES = (
    "DwellT-M",
    "DwellT",
    "WordBound",
    "SpaceChar",
    "OtherChar",
    "IsPrevQuery",
    *(f"Pos@{i}" for i in range(1, 11)),
)
"""Names of the features, in the order of Table 2.2."""

DWELL_CAP = 3.0
"""Seconds: one dwell counts no more, *before* it is summed or maximised."""

POSITIONS = 10
_POS = 6
LONGEST_AT = 16
"""Beyond the features, for Filtering QAC: the longest dwell at each of the positions 1 to 10."""
WIDTH = 26
"""Columns kept per suggestion."""
LISTS = 128
"""Lists that a composition remembers, so that no number of keystrokes takes more memory."""

Lists = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Of each list its suggestions by place, -1 where there is none; which of them stood at the end of
a word; its dwell; and the last byte of its prefix."""

_SPACE = 32
_NO_WEIGHTS = np.empty(0)


@kernel
def word_byte(byte):
    """Whether a byte of folded UTF-8 belongs to a word: an ASCII letter or digit, or not ASCII."""
    return byte >= 128 or 48 <= byte <= 57 or 97 <= byte <= 122


@kernel
def ends_word(prefix, text):
    """Whether the prefix, typed towards the text, stands at the end of one of the text's words."""
    n = len(prefix)
    if n == 0 or n > len(text) or not word_byte(prefix[n - 1]):
        return False
    for i in range(n):
        if prefix[i] != text[i]:
            return False
    return n == len(text) or not word_byte(text[n])


@kernel
def slot_of(ids, used, q):
    """Position of suggestion q among the first `used`, or -1."""
    for i in range(used):
        if ids[i] == q:
            return i
    return -1


@kernel
def capped(dwell):
    """Seconds that count of a dwell."""
    return min(max(dwell, 0.0), DWELL_CAP)


@kernel
def last_byte(prefix):
    """Return the last byte of a prefix; a letter where there is none."""
    return prefix[len(prefix) - 1] if len(prefix) else np.uint8(97)


@kernel
def add_place(row, position, dwell, last, at_word):
    """Add to a suggestion's features its place in a list; `capped` has been at the dwell."""
    row[0] = max(row[0], dwell)
    row[1] += dwell
    row[2] += at_word
    row[3] += last == _SPACE
    row[4] += last != _SPACE and not word_byte(last)
    if position < POSITIONS:
        row[_POS + position] += 1.0


@kernel
def observe_list(ids, table, used, shown, texts, dwell, prefix, blob, offsets):
    """Add one list that was shown for `dwell` seconds and not selected from; return slots used.

    The folded text of suggestion shown[i] is blob[offsets[t]:offsets[t + 1]] with t = texts[i].
    """
    dwell, last = capped(dwell), last_byte(prefix)
    for position in range(len(shown)):
        q = shown[position]
        if slot_of(shown, position, q) >= 0:
            continue  # listed twice: its best position counts
        i = slot_of(ids, used, q)
        if i < 0:
            i = used
            used += 1
            ids[i] = q
            table[i] = 0.0
        t = texts[position]
        at_word = ends_word(prefix, blob[offsets[t] : offsets[t + 1]])
        add_place(table[i], position, dwell, last, at_word)
        if position < POSITIONS:
            longest = table[i, LONGEST_AT + position]
            table[i, LONGEST_AT + position] = max(longest, dwell)
    return used


@kernel
def read_rows(ids, table, used, previous, wanted, out):
    """Write the row of every wanted suggestion: zeros if it was never shown in the composition."""
    for j in range(len(wanted)):
        out[j] = 0.0
        i = slot_of(ids, used, wanted[j])
        if i >= 0:
            copy_into(out[j], 0, table[i])
            out[j, 5] = wanted[j] == previous


@kernel
def keep_list(lists, at, shown, dwell, prefix, texts):
    """Write a list that was shown, with the table of its folded texts, to row `at` of lists."""
    numbers, at_words, dwells, lasts = lists
    blob, offsets = texts
    numbers[at] = -1
    dwells[at, 0], lasts[at, 0] = capped(dwell), last_byte(prefix)
    for position in range(len(shown)):
        if slot_of(shown, position, shown[position]) < 0:
            text = blob[offsets[position] : offsets[position + 1]]
            numbers[at, position] = shown[position]
            at_words[at, position] = ends_word(prefix, text)


@kernel
def keep_phrases(lists, at, shown, dwell, prefix, strings, n):
    """Do as `keep_list` for phrases of a catalogue of n: one call from Python, not two."""
    keep_list(lists, at, shown, dwell, prefix, gather(strings, n, shown))


@kernel
def read_lists(lists, count, previous, wanted, out):
    """Write the features of every wanted suggestion as `observe_list` adds them up."""
    numbers, at_words, dwells, lasts = lists
    out[:] = 0.0
    for i in range(count):
        for position in range(numbers.shape[1]):
            for j in range(len(wanted)):
                if wanted[j] == numbers[i, position]:
                    dwell, last = dwells[i, 0], lasts[i, 0]
                    add_place(out[j], position, dwell, last, at_words[i, position])
                    out[j, 5] = wanted[j] == previous


@kernel
def weigh_lists(lists, count, previous, wanted, relevance, scales, weights, out):
    """Fill what `Feedback.weighed` returns of the lists that were shown."""
    rows, columns, parts, added = out
    read_lists(lists, count, previous, wanted, rows)
    caps, deviations, bound = scales
    d = len(deviations)
    for j in range(len(rows)):
        for i in range(d):
            columns[j, i] = min(rows[j, i], caps[i]) / deviations[i]
        if columns.shape[1] > d:
            columns[j, d] = relevance[j] if np.isfinite(relevance[j]) else 0.0
        fed_back = 0.0
        for i in range(len(weights)):
            parts[j, i] = columns[j, i] * weights[i]
            if i < d:
                fed_back += parts[j, i]
        # Not the parts' sum: suggestions at the bound are equal, whatever rounding makes of them.
        added[j] = min(max(fed_back, -bound), bound)
        for i in range(len(weights)):
            if i >= d:
                added[j] += parts[j, i]
            elif abs(fed_back) > bound:
                parts[j, i] *= bound / abs(fed_back)


class Feedback:
    """What one composition has told so far about the suggestions it was shown.

    Suggestions are numbered by the caller. The features of a suggestion that was never shown in
    the composition are all zero; *IsPrevQuery* too is counted only once it was shown, as
    [Zhang2017] demands (a query never shown keeps its relevance score). The character of a
    keystroke is the last one of the prefix it leaves; a keystroke stands at a word boundary, for a
    suggestion that begins with the prefix, when the prefix ends where one of the suggestion's words
    ends.

    The last `LISTS` lists count. They are kept, and not sums of each suggestion as in training: of
    many prefixes there are more suggestions than lists, and each would have a row of its own.

    Parameters
    ----------
    previous : int, optional
        Number of the query that the user submitted immediately before.

    Examples
    --------
    >>> texts = [b"facebook", b"facetime"]
    >>> feedback = Feedback()
    >>> feedback.observe(b"fac", [0, 1], dwell=1.5, texts=texts)
    >>> feedback.features([0])[0, :2], feedback.features([1])[0, 7]
    (array([1.5, 1.5]), np.float64(1.0))
    """

    def __init__(self, previous: int = -1) -> None:
        self.previous = previous
        self._count = 0
        self._lists = _room(8, POSITIONS)

    def observe(
        self, prefix: bytes, shown: list[int] | np.ndarray, *, dwell: float, texts: list[bytes]
    ) -> None:
        """Add a list that was shown and not selected from.

        Parameters
        ----------
        prefix : bytes
            The folded prefix, UTF-8, for which it was shown.
        shown : sequence of int
            Numbers of the suggestions, best first.
        dwell : float
            Seconds until the next keystroke.
        texts : list of bytes
            Folded UTF-8 text of each suggestion in `shown`.
        """
        self._make_room(len(shown))
        typed, numbers = np.frombuffer(prefix, np.uint8), np.asarray(shown, np.int32)
        keep_list(self._lists, self._count, numbers, float(dwell), typed, joined_texts(texts))
        self._count += 1

    def observe_phrases(
        self, prefix: bytes, shown: list[int] | np.ndarray, *, dwell: float, index: "PrefixIndex"
    ) -> None:
        """As `observe`, for phrases of a catalogue, which are numbered by its ids."""
        self._make_room(len(shown))
        typed, numbers = np.frombuffer(prefix, np.uint8), np.asarray(shown, np.int32)
        at, n = self._count, len(index)
        keep_phrases(self._lists, at, numbers, float(dwell), typed, index.strings, n)
        self._count += 1

    def features(self, wanted: list[int] | np.ndarray) -> np.ndarray:
        """Return the features of the suggestions `wanted`, shape (len(wanted), 16)."""
        wanted = np.asarray(wanted, np.int32)
        out = np.empty((len(wanted), len(FEATURES)))
        read_lists(self._lists, self._count, self.previous, wanted, out)
        return out

    def weighed(
        self,
        wanted: np.ndarray,
        relevance: np.ndarray,
        design: "FeedbackDesign",
        weights: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Return features and columns of the suggestions `wanted`; columns times weights, and sums.

        The same as `features`, `FeedbackDesign.columns` and `FeedbackDesign.parts` would give one
        after the other. Without weights there are no products.
        """
        n, width = len(wanted), len(FEATURES) + design.learn_relevance
        given = _NO_WEIGHTS if weights is None else weights
        if len(given) not in (0, width):  # the kernel looks at no bounds
            raise ValueError(f"{len(given)} weights for {width} columns")
        features, (columns, parts) = np.empty((n, len(FEATURES))), np.empty((2, n, width))
        added = np.empty(n)
        weigh_lists(
            self._lists,
            self._count,
            self.previous,
            np.asarray(wanted, np.int32),
            relevance,
            (design.caps, design.deviations, design.bound),
            given,
            (features, columns, parts, added),
        )
        if weights is None:
            return features, columns, None, None
        return features, columns, parts, added

    def _make_room(self, places: int) -> None:
        """Make room for a list of so many places; the oldest makes it where there are `LISTS`."""
        rows, widest = self._lists[0].shape
        if self._count < rows and places <= widest:
            return
        before, first, count = self._lists, max(self._count - LISTS + 1, 0), self._count
        self._count = count - first
        self._lists = _room(min(2 * rows, LISTS), max(places, widest))
        for new, old in zip(self._lists, before, strict=True):
            new[: self._count, : old.shape[1]] = old[first:count]


def _room(rows: int, places: int) -> Lists:
    numbers = np.full((rows, places), -1, np.int32)
    at_words = np.zeros((rows, places), np.bool_)
    return numbers, at_words, np.zeros((rows, 1)), np.zeros((rows, 1), np.uint8)
