"""Suggestions beyond those that begin with what was typed: its words elsewhere, or mistyped."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING

import numpy as np

from telic.completion.engine.filters import Filter
from telic.completion.engine.word_index import NO_VALUES

if TYPE_CHECKING:
    from telic.completion.box.completer import Completer

FEW = 3
"""Typos are looked for where fewer phrases than that match as typed."""
MANY = 1_000
"""Once so many phrases were asked for, no further texts are looked for behind them."""
UNFILTERED = [(NO_VALUES, 0.0)]
"""In place of `Filter.sets`: no boosted values, which add nothing."""

Others = Callable[[str, int], Iterable[tuple[int, float]]]


def beyond(
    completer: "Completer",
    prefix: str,
    *,
    there: int,
    wanted: int,
    others: Others,
    through: Filter | None = None,
) -> list[tuple[int, float]]:
    """Give the numbers and scores of what to add to phrases that begin with a prefix, best first.

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
    others : callable
        Takes a text and the most edits of a word; gives the numbers and scores of what has its
        words and is not in the index as it was built: own queries, and what was changed.
    through : Filter, optional
    """
    # At least FEW, else a short list would make right words look like typos.
    search = _Search(completer, prefix, max(wanted, FEW), others, through)
    best: dict[int, float] = {}
    for typos in (0, 1, 2):
        if typos and there + len(best) >= FEW ** (2 - typos):
            break
        for number, score in search.found(typos):
            best[number] = max(score, best.get(number, score))
    ordered = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
    if through is not None:
        ordered = _each_text_once(completer, ordered)
    if len(ordered) > wanted:
        ordered = [pair for pair in ordered if pair[1] >= ordered[wanted - 1][1]]
    # Equal ones come in the order of an index that has what was added.
    ordered.sort(key=lambda pair: (-pair[1], *completer.live.place(pair[0])))
    return ordered[:wanted]


def _each_text_once(
    completer: "Completer", ordered: list[tuple[int, float]]
) -> list[tuple[int, float]]:
    """Keep the best entry of each text, however many contexts it is in."""
    ids = [number for number, _ in ordered if number < len(completer.index)]
    texts = completer.index.phrases(ids)
    first = dict(zip(reversed(texts), reversed(ids), strict=True))
    again = set(ids) - set(first.values())
    return [pair for pair in ordered if pair[0] not in again]


@dataclass(frozen=True)
class _Search:
    """What was typed, and how many phrases with its words are enough."""

    completer: "Completer"
    prefix: str
    enough: int
    others: Others
    through: Filter | None

    def found(self, typos: int) -> Iterator[tuple[int, float]]:
        """Yield numbers and scores of what has so many typos in a word at most.

        With typos not every candidate is looked at.
        """
        ids, scores = self._in_index(typos)
        yield from zip(ids.tolist(), scores.tolist(), strict=True)
        yield from chain.from_iterable(self.others(*text) for text in self._texts(typos))

    def _texts(self, typos: int) -> list[tuple[str, int]]:
        """What is looked for, each with its typos: what was typed, and other ways to say it."""
        synonyms = self.completer.synonyms
        said = synonyms.variants(self.prefix) if synonyms else []
        return [(self.prefix, typos), *((text, 0) for text in said)]

    def _in_index(self, typos: int) -> tuple[np.ndarray, np.ndarray]:
        if self.through is None:
            return self._best(typos, self.enough)[:2]
        asked = 2 * self.enough
        while True:
            ids, scores, unseen = self._best(typos, asked)
            ids, scores = self._texts_once(ids, scores + self.through.added(ids))
            # The same text is in many contexts, or a boost below 1 holds phrases back.
            lacking = len(ids) < self.enough or scores[-1] < unseen
            if unseen == -np.inf or not lacking or asked >= MANY:
                return ids, scores
            asked *= 4

    def _best(self, typos: int, asked: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the best `asked` of each text and set of boosted values, without their boosts.

        Returns
        -------
        ids, scores : ndarray
        unseen : float
            What no other phrase scores more than, with its boosts; -inf if there is no other.
        """
        completer, words, unseen = self.completer, self.completer.words, -np.inf
        assert words is not None
        sets = UNFILTERED if self.through is None else self.through.sets
        columns = []
        for (text, most), (boosted, added) in product(self._texts(typos), sets):
            ids, scores = words.top(
                completer.index,
                text,
                asked,
                unit=completer.unit,
                typos=most,
                skip=completer.index.range(self.prefix),
                left_out=completer.live.touched(),
                through=self.through,
                boosted=boosted,
                keyboard=completer.keyboard,
            )
            columns.append((ids, scores))
            if len(ids) == asked:
                unseen = max(unseen, float(scores[-1]) + added)
        ids, scores = (np.concatenate(column) for column in zip(*columns, strict=True))
        return ids, scores, unseen

    def _texts_once(self, ids: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Keep the best entry of each text, and as many as are enough, best first."""
        order = np.lexsort((ids, -scores))
        texts = self.completer.index.phrases(ids[order].tolist())
        first = {text: i for i, text in reversed(list(enumerate(texts)))}
        kept = order[sorted(first.values())[: self.enough]]
        return ids[kept], scores[kept]
