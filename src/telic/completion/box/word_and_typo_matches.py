"""Suggestions beyond those that begin with what was typed: its words elsewhere, or mistyped."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from telic.completion.engine.filters import Filter
from telic.completion.engine.folding import fold
from telic.completion.engine.words import words_of

if TYPE_CHECKING:
    from telic.completion.box.completer import Completer

FEW = 3
"""Typos are looked for where fewer phrases than that match as typed."""
MANY = 1_000
"""Once so many phrases were asked for, no further texts are looked for behind them."""


class Found(NamedTuple):
    """Phrases that match beyond the prefix, best first."""

    numbers: list[int]
    scores: list[float]


class OwnWords:
    """A user's own queries by the words in them.

    Parameters
    ----------
    folded : sequence of bytes
        Their folded forms.
    """

    def __init__(self, folded: Sequence[bytes]) -> None:
        lines = [" " + " ".join(words_of(form.decode())) + "\n" for form in folded]
        self._text = "".join(lines)
        self._start = np.cumsum([0, *map(len, lines)]).tolist()

    def matching(self, tokens: list[str]) -> list[int]:
        """Return the places of those with a word for every token, the last of which may be begun.

        As in `telic.completion.engine.word_index`, the earlier ones may be begun too.
        """
        if not tokens:
            return []
        needles = [" " + token for token in tokens]
        found, at = [], self._text.find(needles[0])
        while at >= 0:
            line = bisect_right(self._start, at) - 1
            here = self._text[self._start[line] : self._start[line + 1]]
            if all(needle in here for needle in needles[1:]):
                found.append(line)
            at = self._text.find(needles[0], self._start[line + 1])
        return found


def beyond(
    completer: "Completer",
    prefix: str,
    *,
    there: int,
    wanted: int,
    own: Sequence[tuple[int, float]] = (),
    through: Filter | None = None,
) -> Found:
    """Give what to add to the phrases that begin with a prefix.

    Parameters
    ----------
    completer : Completer
        With words.
    prefix : str
        As typed.
    there : int
        Phrases that begin with it.
    wanted : int
        How many are to be added.
    own : sequence of (int, float)
        Numbers and relevance of the user's own queries that have the words typed.
    through : Filter, optional
    """
    index, words = completer.index, completer.words
    assert words is not None
    skip = index.range(prefix)
    said = completer.synonyms.variants(prefix) if completer.synonyms else []

    def top(typos: int, times: int = 2) -> tuple[np.ndarray, np.ndarray]:
        asked = wanted if through is None else times * wanted
        asked += len(completer.live.gone) if len(completer.live.gone) < 100 else 100
        found = [
            words.top(
                index,
                text,
                asked,
                unit=completer.unit,
                typos=t,
                skip=skip,
                through=through,
                keyboard=completer.keyboard,
            )
            for text, t in [(prefix, typos), *((text, 0) for text in said)]
        ]
        more = asked < MANY and any(len(each) == asked for each, _ in found)
        ids, scores = (np.concatenate(columns) for columns in zip(*found, strict=True))
        if completer.live.gone or completer.live.weights:
            left = np.isin(ids, completer.live.left(ids))
            ids, scores = ids[left], scores[left]
        if through is None:
            order = np.lexsort((ids, -scores)) if said else np.arange(len(ids))
            order = order[np.sort(np.unique(ids[order], return_index=True)[1])] if said else order
            return ids[order][:wanted], scores[order][:wanted]
        scores = scores + through.added(ids)
        order = np.lexsort((ids, -scores))
        texts = index.phrases(ids[order].tolist())
        new = sorted({text: i for i, text in reversed(list(enumerate(texts)))}.values())[:wanted]
        if len(new) < wanted and more:  # the same text is in many contexts
            return top(typos, 4 * times)
        return ids[order][new], scores[order][new]

    ids, scores = top(0)
    for typos in (1, 2):
        if there + len(set(ids.tolist()) | {number for number, _ in own}) >= FEW ** (2 - typos):
            break
        ids, scores = top(typos)
    if not own:
        return Found(ids.tolist(), scores.tolist())
    best = dict(zip(ids.tolist(), scores.tolist(), strict=True))
    for number, relevance in own:
        best[number] = max(relevance, best.get(number, relevance))
    ordered = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:wanted]
    return Found([number for number, _ in ordered], [score for _, score in ordered])


def typed_words(prefix: str) -> list[str]:
    """Return the words of what was typed."""
    return words_of(fold(prefix))
