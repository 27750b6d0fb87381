"""Suggestions beyond those that begin with what was typed: its words elsewhere, or mistyped."""

from collections.abc import Callable, Iterable
from itertools import chain, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from telic.completion.engine.filters import Filter
from telic.completion.engine.word_index import NO_VALUES

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


def beyond(
    completer: "Completer",
    prefix: str,
    *,
    there: int,
    wanted: int,
    others: Callable[[str, int], Iterable[tuple[int, float]]],
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
    others : callable
        Takes a text and the most edits of a word; gives the numbers and scores of what has its
        words and is not in the index as it was built: own queries, and what was changed.
    through : Filter, optional
    """
    index, words = completer.index, completer.words
    assert words is not None
    skip = index.range(prefix)
    said = completer.synonyms.variants(prefix) if completer.synonyms else []

    enough = max(wanted, FEW)  # else a short list would make right words look like typos

    def texts(typos: int) -> list[tuple[str, int]]:
        return [(prefix, typos), *((text, 0) for text in said)]

    def top(typos: int, times: int = 2) -> tuple[np.ndarray, np.ndarray]:
        asked = enough if through is None else times * enough
        sets = [(NO_VALUES, 0.0)] if through is None else through.sets
        columns, unseen = [], []
        for (text, t), (boosted, added) in product(texts(typos), sets):
            found = words.top(
                index,
                text,
                asked,
                unit=completer.unit,
                typos=t,
                skip=skip,
                left_out=completer.live.touched(),
                through=through,
                boosted=boosted,
                keyboard=completer.keyboard,
            )
            columns.append(found)
            if len(found[0]) == asked:
                unseen.append(found[1][-1] + added)
        ids, scores = (np.concatenate(column) for column in zip(*columns, strict=True))
        if through is None:
            return ids, scores
        scores = scores + through.added(ids)
        order = np.lexsort((ids, -scores))
        phrases = index.phrases(ids[order].tolist())
        new = sorted({text: i for i, text in reversed(list(enumerate(phrases)))}.values())[:enough]
        ids, scores = ids[order][new], scores[order][new]
        # The same text is in many contexts, or a boost below 1 holds phrases back.
        more = unseen and (len(new) < enough or scores[-1] < max(unseen))
        return top(typos, 4 * times) if more and asked < MANY else (ids, scores)

    best: dict[int, float] = {}

    def add(typos: int) -> None:
        """Add what is found with so many typos; with typos not every candidate is looked at."""
        found = zip(*(column.tolist() for column in top(typos)), strict=True)
        for number, score in chain(found, *(others(*text) for text in texts(typos))):
            best[number] = max(score, best.get(number, score))

    add(0)
    for typos in (1, 2):
        if there + len(best) >= FEW ** (2 - typos):
            break
        add(typos)
    ordered = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
    if through is not None:  # each text once, however many contexts it is in
        ids = [number for number, _ in ordered if number < len(index)]
        first = dict(zip(reversed(index.phrases(ids)), reversed(ids), strict=True))
        again = set(ids) - set(first.values())
        ordered = [pair for pair in ordered if pair[0] not in again]
    if len(ordered) > wanted:
        ordered = [pair for pair in ordered if pair[1] >= ordered[wanted - 1][1]]
    # Equal ones come in the order of an index that has what was added.
    ordered.sort(key=lambda pair: (-pair[1], *completer.live.place(pair[0])))
    ordered = ordered[:wanted]
    return Found([number for number, _ in ordered], [score for _, score in ordered])
