"""Simulated shoppers: a second family of people at a search box, of other mechanics than typists.

Nothing is shared with `telic.simulate.simulate_typists` but the form of the log. Made-up goods take
the place of places, and their popularity is log-normal. The shop's lists come from its own, wrong
idea of popularity, begin at the second character, match any word and show at most four goods of a
brand. People type in bursts; in a pause their eyes may go to the list, from any line on, until they
lose patience; they may settle for something alike. What they want follows their taste, and what
they looked for last.
"""

import json
from bisect import bisect_left
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from telic.data.contracts import COMPOSITIONS, SIMULATED
from telic.errors import expect_one_of, expect_whole
from telic.simulate.catalogue import Catalogue

BRANDS, NOUNS, KINDS, GOODS = 25, 50, 80, 3000
SHOWN, OF_A_BRAND = 6, 4
CONSONANTS, VOWELS = list("bdfgklmnprstvz"), list("aeiou")
BEGIN = 1_772_000_000_000_000  # 25 February 2026, in microseconds
HOUR = 3_600_000_000


@dataclass(frozen=True, kw_only=True)
class ShopperParameters:
    """How simulated shoppers type and look; the defaults are ``calibrated``.

    Nothing is published of most of these numbers. `key_seconds`, `pauses`, `looks` and `patience`
    were set so that the marginals meet the ranges of `telic.simulate.log_marginals.PUBLISHED`,
    before any gain was looked at; the others are free.
    """

    key_seconds: float = 0.11
    """Mean of a user's mean seconds for a key within a burst."""
    pauses: float = 0.46
    """Probability that a burst ends after a character; twice this after a word."""
    pause_seconds: float = 0.35
    """Mean of a pause."""
    looks: float = 0.97
    """Probability that the eyes go to the list in a pause."""
    patience: float = 0.95
    """Probability of reading a further line."""
    from_the_top: float = 0.8
    """Probability of beginning at the first line; else at any."""
    line_seconds: float = 0.18
    """Mean for reading a line."""
    recognises: float = 0.9
    """Probability of seeing that a line that is read is the one that is wanted."""
    settles: float = 0.03
    """Probability of taking a line of the same noun instead."""
    tastes: bool = True
    """Whether each user likes some nouns more than others do."""
    same_noun: float = 0.25
    """Probability that the next search is for goods of the same noun."""
    typos: float = 0.02
    """Probability that a wrong character is typed before a right one, and deleted at once."""
    submits_at: float | None = None
    """Mean characters after which people submit what they want without looking."""


SHOPPERS: dict[str, ShopperParameters] = {
    "calibrated": ShopperParameters(),
    "inattentive": ShopperParameters(looks=0.0, submits_at=8.5),
    "all alike": ShopperParameters(tastes=False, same_noun=0.0),
    "thorough": ShopperParameters(pauses=0.5, looks=0.6, patience=0.97, line_seconds=0.25),
}
"""
===========  ======================================================================================
calibrated   From published marginals.
inattentive  Control: nobody looks, pauses are as long with any list, and the length at which a
             query is submitted is drawn before. Lists and dwells say nothing.
all alike    Control: nobody has a taste, and searches do not depend on the one before.
thorough     Planted effect: fewer lists are looked at, and these are read to the end, so that a
             long dwell says "read and not wanted".
===========  ======================================================================================
"""


@lru_cache(maxsize=4)
def goods_catalogue(seed: int = 0) -> Catalogue:
    """Return made-up goods, brand, kind and noun, with their log-normal popularity.

    Examples
    --------
    >>> goods = goods_catalogue()
    >>> len(goods.phrases), len(goods.phrases[0].split())
    (3000, 3)
    """
    rng = np.random.default_rng([seed, 1])
    brands, kinds, nouns = (_words(rng, n) for n in (BRANDS, KINDS, NOUNS))
    drawn = rng.choice(BRANDS * KINDS * NOUNS, GOODS, replace=False)
    brand, kind, noun = np.unravel_index(drawn, (BRANDS, KINDS, NOUNS))
    liked = rng.normal(0, 0.8, BRANDS)[brand] + rng.normal(0, 0.8, NOUNS)[noun]
    phrases = [
        f"{brands[b]} {kinds[k]} {nouns[n]}" for b, k, n in zip(brand, kind, noun, strict=True)
    ]
    return Catalogue(phrases, np.exp(liked + rng.normal(0, 1.2, GOODS)))


def _words(rng: np.random.Generator, n: int) -> list[str]:
    """Return distinct made-up words of two to four syllables."""
    words: dict[str, None] = {}
    while len(words) < n:
        count = rng.integers(2, 5)
        words["".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(count))] = None
    return list(words)


def simulate_shoppers(
    *, users: int = 100, compositions: int = 100, setting: str = "calibrated", seed: int = 0
) -> pa.Table:
    """Make a composition log of people who look for the goods of `goods_catalogue`.

    Parameters
    ----------
    users, compositions : int
        How many, and how many for each.
    setting : {"calibrated", "inattentive", "all alike", "thorough"}
        See `SHOPPERS`.
    seed : int
        Equal seeds give equal logs, of the same goods.

    Returns
    -------
    pyarrow.Table
        As of `telic.simulate.simulate_typists`; the parameters are under ``telic.shoppers``.

    Raises
    ------
    InputError
        If a number is below 1 or there is no such setting.

    Examples
    --------
    >>> log = simulate_shoppers(users=2, compositions=3)
    >>> log.num_rows, log.column_names[:3]
    (6, ['user', 'composition', 'query'])
    """
    expect_one_of(SHOPPERS, setting=setting)
    expect_whole(1, users=users, compositions=compositions)
    p, goods = SHOPPERS[setting], goods_catalogue()
    shop = _Shop(goods, np.random.default_rng([seed, 2]))
    rows = []
    for user in range(users):
        rng = np.random.default_rng([seed, 3, user])
        person = replace(p, key_seconds=p.key_seconds * rng.gamma(16, 1 / 16))
        liking = rng.gamma(0.3, 1.0, NOUNS)[shop.noun]
        taste = goods.weights * (liking if p.tastes else 1.0)
        at, wanted = BEGIN + int(rng.uniform(0, 24 * HOUR)), -1
        for number in range(compositions):
            odds = taste
            if wanted >= 0 and rng.random() < p.same_noun:
                odds = taste * (shop.noun == shop.noun[wanted])
            wanted = int(rng.choice(GOODS, p=odds / odds.sum()))
            keystrokes, taken, selected, end = _typed(person, shop, wanted, at, rng)
            rows.append(
                {
                    "user": f"s{user:0{len(str(users - 1))}d}",
                    "composition": f"s{user}-{number}",
                    "query": goods.phrases[taken],
                    "submitted_at": end,
                    "selected": selected,
                    "keystrokes": keystrokes,
                }
            )
            at = end + int(rng.exponential(20) * HOUR) + HOUR // 60
    known = [field for field in COMPOSITIONS if field.name in rows[0]]
    about = {"setting": setting, "seed": seed, "parameters": asdict(p)}
    return pa.Table.from_pylist(rows, pa.schema(known)).replace_schema_metadata(
        {SIMULATED: b"true", b"telic.shoppers": json.dumps(about).encode()}
    )


class _Shop:
    """The lists of the shop, which knows popularity badly and not what is new."""

    def __init__(self, goods: Catalogue, rng: np.random.Generator) -> None:
        self.phrases = goods.phrases
        words = [phrase.split() for phrase in goods.phrases]
        self._brand = np.unique([one[0] for one in words], return_inverse=True)[1]
        self.noun = np.unique([one[2] for one in words], return_inverse=True)[1]
        known = np.where(rng.random(GOODS) < 0.15, 1e-3, 1.0)
        self._order = np.argsort(-goods.weights * known * np.exp(rng.normal(0, 0.7, GOODS)))
        # Each phrase from each of its words on, in order of text, and the place of its goods in
        # the order: what matches a prefix is one stretch.
        place = np.argsort(self._order).tolist()
        begins = sorted(
            (" ".join(one[first:]), place[item])
            for item, one in enumerate(words)
            for first in range(len(one))
        )
        self._begins = [text for text, _ in begins]
        self._places = np.array([at for _, at in begins])
        self._lists: dict[str, list[int]] = {}

    def shown(self, prefix: str) -> list[int]:
        """Return the goods of which a word begins with what is typed, the best known first."""
        if len(prefix) < 2:
            return []
        if prefix not in self._lists:
            # No text sorts after the last character of all.
            lo, hi = (bisect_left(self._begins, prefix + end) for end in ("", "\U0010ffff"))
            found, of_brand = [], np.zeros(BRANDS, int)
            for item in self._order[np.unique(self._places[lo:hi])]:
                of_brand[self._brand[item]] += 1
                if of_brand[self._brand[item]] <= OF_A_BRAND:
                    found.append(int(item))
                if len(found) == SHOWN:
                    break
            self._lists[prefix] = found
        return self._lists[prefix]


def _typed(
    p: ShopperParameters, shop: _Shop, wanted: int, at: int, rng: np.random.Generator
) -> tuple[list[dict[str, object]], int, int | None, int]:
    """Type until something is taken: the keystrokes, what was taken, its line, and when."""
    text, keystrokes = shop.phrases[wanted], []
    last = len(text) if p.submits_at is None else 2 + rng.poisson(p.submits_at - 2)
    prefixes: list[str] = []
    for k in range(1, min(last, len(text)) + 1):
        if rng.random() < p.typos:
            prefixes += [text[: k - 1] + "x", text[: k - 1]] if k > 1 else []
        prefixes.append(text[:k])
    for prefix in prefixes:
        shown = shop.shown(prefix)
        keystrokes.append(
            {"at": at, "prefix": prefix, "suggestions": [shop.phrases[item] for item in shown]}
        )
        seconds = p.key_seconds * rng.gamma(4, 1 / 4)
        line, taken = 0, wanted
        if rng.random() < p.pauses * (2 if prefix.endswith(" ") else 1):
            seconds += rng.gamma(2, p.pause_seconds / 2)
            if rng.random() < p.looks:
                line, taken, reading = _read(p, shop, shown, wanted, rng)
                seconds += reading
        at += 1 + int(1e6 * seconds)
        if line:
            return keystrokes, taken, line, at
    return keystrokes, wanted, None, at


def _read(
    p: ShopperParameters, shop: _Shop, shown: list[int], wanted: int, rng: np.random.Generator
) -> tuple[int, int, float]:
    """Read on until something is taken or patience is lost: its line (0: none), what, seconds."""
    seconds = 0.0
    first = 0 if rng.random() < p.from_the_top or not shown else int(rng.integers(len(shown)))
    for line, item in enumerate(shown[first:], first + 1):
        seconds += rng.exponential(p.line_seconds)
        taken = p.recognises if item == wanted else p.settles
        if shop.noun[item] == shop.noun[wanted] and rng.random() < taken:
            return line, item, seconds + 0.4 + 0.08 * line
        if rng.random() > p.patience:
            break
    return 0, wanted, seconds
