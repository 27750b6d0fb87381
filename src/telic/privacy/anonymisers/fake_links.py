"""Fake links: how well they can be told from real ones, and drawing some that cannot."""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logit
from threadpoolctl import threadpool_limits

from telic.errors import InputError
from telic.hin import Links, Network
from telic.hin.samples import neighbours
from telic.privacy.anonymisers.random_links import add_random_links, more_links, real_strengths
from telic.privacy.protected import attribute_codes, own_links, target_type

MOST = 6_000
"""Links of either sort that a detector learns from or is asked about."""
CANDIDATES = 12
"""Pairs looked at for each fake link that is wanted."""
ROUNDS = 4
"""How often fake links are drawn, each time looked at among those drawn before."""
FOLDS = 3
"""Links and candidates are judged by classifiers that did not learn from them."""
SEED = 1
"""Of the detector that chooses, so that its folds are not those of the detector that reports."""
BLUR = 0.05
"""How much degrees are blurred where fake links are drawn: a deviation of their logarithm.

A candidate's degrees count the link that it would add, and so are one higher than those that real
links of the same node show. At a node of very many links, whose degree no other node has, that
difference alone would tell candidates from real links, and none would be drawn there."""
MOST_WANTED = 400_000
"""Fake links of one type that may be drawn with care."""


class _Pairs(NamedTuple):
    """Pairs of nodes, and the strength of a link between them (1 where there is none)."""

    source: np.ndarray
    target: np.ndarray
    strength: np.ndarray

    def take(self, rows: np.ndarray) -> "_Pairs":
        """Return some of them."""
        return _Pairs(*(part[rows] for part in self))


class _Look:
    """What shows of pairs of users in a network if they are linked by one type.

    With a generator degrees are blurred, to compare real links with candidates: see `BLUR`.
    """

    def __init__(
        self, network: Network, name: str, node_type: str, rng: np.random.Generator | None
    ) -> None:
        self.rng = rng
        n = network.size(node_type)
        links = network.links[name]
        self.around = _ones(neighbours(network, node_type))
        self.own = _ones(links.matrix(n))
        self.others = [
            _ones(network.links[other].matrix(n))
            for other in own_links(network.schema, node_type)
            if other != name
        ]
        sums = self.own.sum(axis=1), self.own.sum(axis=0), self.around.sum(axis=1)
        self.degrees = np.stack(sums)
        table = network.nodes[node_type]
        self.codes = [
            attribute_codes(table.column(name)) for name in network.schema.nodes[node_type]
        ]

    def of(self, pairs: _Pairs) -> np.ndarray:
        """Return one row of features for each pair; of a link between them, only its strength."""
        a, b = pairs.source, pairs.target
        paths = self.around[a].multiply(self.around[b]).sum(axis=1)
        back = _at(self.own, b, a)
        linked = [_at(other, *ends) for other in self.others for ends in ((a, b), (b, a))]
        # What the link adds to degrees of its type, and to those of any: nothing where it is there.
        new, first = 1 - _at(self.own, a, b), 1 - _at(self.around, a, b).clip(max=1)
        out, into, any_way = self.degrees
        ends = [
            out[a] + new,
            into[a],
            out[b],
            into[b] + new,
            any_way[a] + first,
            any_way[b] + first,
        ]
        few = np.minimum(any_way[a], any_way[b]).clip(1)
        columns = [pairs.strength, paths, paths / few, back, *linked, *_blurred(ends, self.rng)]
        for code in self.codes:
            columns += [code[a] == code[b], np.abs(code[a] - code[b]), code[a], code[b]]
        return np.stack(columns, axis=1).astype(float)

    def ways(self, each: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Go from each to a friend of a friend, a friend, and back along a link."""
        friend = _step(self.around, each, rng)
        return [_step(self.around, friend, rng), friend, _step(csr_array(self.own.T), each, rng)]


class _LookAcross:
    """As `_Look`, of pairs of nodes of two types, of which one is the users'."""

    def __init__(
        self, network: Network, name: str, node_type: str, rng: np.random.Generator | None
    ) -> None:
        self.rng = rng
        link = network.schema.link(name)
        self.own = _ones(network.links[name].matrix(network.size(link.target)))
        self.out, self.into = self.own.sum(axis=1), self.own.sum(axis=0)
        self.around = _ones(neighbours(network, node_type))
        self.users_first = link.source == node_type
        self.codes = [
            [
                attribute_codes(network.nodes[kind].column(each))
                for each in network.schema.nodes[kind]
            ]
            for kind in (link.source, link.target)
        ]

    def of(self, pairs: _Pairs) -> np.ndarray:
        """Return one row of features for each pair; of a link between them, only its strength."""
        a, b = pairs.source, pairs.target
        user, theirs = (a, self.own.T[b]) if self.users_first else (b, self.own[a])
        # How many of those whom the user is linked with have the same link.
        shared = self.around[user].multiply(csr_array(theirs)).sum(axis=1)
        new = 1 - _at(self.own, a, b)
        ends = _blurred([self.out[a] + new, self.into[b] + new], self.rng)
        columns = [pairs.strength, *ends, shared]
        columns += [
            code[side] for codes, side in zip(self.codes, (a, b), strict=True) for code in codes
        ]
        return np.stack(columns, axis=1).astype(float)

    def ways(self, each: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Go from each as a friend's link goes, and as one does that shares an end with its own."""
        if self.users_first:
            friends = _step(self.own, _step(self.around, each, rng), rng)
        else:
            friends = _step(self.around, _step(self.own, each, rng), rng)
        alike = _step(csr_array(self.own.T), _step(self.own, each, rng), rng)
        return [friends, _step(self.own, alike, rng)]


def _blurred(degrees: list[np.ndarray], rng: np.random.Generator | None) -> list[np.ndarray]:
    if rng is None:
        return degrees
    return [each * np.exp(BLUR * rng.normal(size=len(each))) for each in degrees]


def _look(
    network: Network, name: str, node_type: str, rng: np.random.Generator | None = None
) -> _Look | _LookAcross:
    look = _Look if name in own_links(network.schema, node_type) else _LookAcross
    return look(network, name, node_type, rng)


def detect_fakes(
    network: Network, release: Network, *, node_type: str | None = None, seed: int = 0
) -> dict[str, float]:
    """Return how well fake links can be told from real ones in a release: the AUC by link type.

    The detector is a gradient-boosted classifier that sees the release alone: strengths, common
    neighbours, degrees, links the other way and of other types, attributes of both ends. It learns
    from links of which it is told the truth, and is asked about others (five-fold), which is more
    than an intruder has. ½ is a guess, 1 tells all. Link types without fake links, or with fewer
    than ten of either sort, are left out.

    Parameters
    ----------
    network, release : Network
        With the same nodes in the same order.
    node_type : str, optional
        Whose links are looked at, those to and from other types too.
    seed : int
    """
    from sklearn.metrics import roc_auc_score  # scikit-learn takes seconds
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    node_type = target_type(network, node_type)
    rng = np.random.default_rng(seed)
    found = {}
    for link in network.schema.links:
        name, n = link.name, network.size(link.target)
        if name not in release.links or node_type not in (link.source, link.target):
            continue
        pairs = _listed(release.links[name])
        was = network.links[name]
        fake = ~np.isin(
            pairs.source * np.int64(n) + pairs.target, was.sources * np.int64(n) + was.indices
        )
        chosen = np.concatenate(
            [rng.permutation(np.flatnonzero(fake == side))[:MOST] for side in (False, True)]
        )
        if min(fake[chosen].sum(), (~fake[chosen]).sum()) < 10:
            continue
        seen = _look(release, name, node_type).of(pairs.take(chosen))
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        with threadpool_limits(1):  # waking threads costs more than these small trees
            chance = cross_val_predict(
                _classifier(seed), seen, fake[chosen], cv=folds, method="predict_proba"
            )
        found[name] = float(roc_auc_score(fake[chosen], chance[:, 1]))
    return found


def add_plausible_links(
    network: Network,
    missing: Mapping[str, np.ndarray],
    rng: np.random.Generator,
    node_type: str,
    *,
    by_source: bool = True,
    original: Network | None = None,
) -> Network:
    """Add links that look like the real ones: so many from each node, or as many as are found.

    Candidates are drawn at random, among friends of friends (and what they are linked to), along
    other links and by how often nodes are linked to. A classifier that tells real links from
    candidates gives each the odds of being real, by which candidates are then drawn: so those that
    are drawn are distributed like real links, as far as the classifier sees. That is repeated, link
    type by link type, among the fake links of all types drawn before: they too must answer and
    close triangles. Random links are drawn too, which stand out least where real ones follow no
    pattern. Of all drawings the one that the detector (`detect_fakes`) tells apart least is taken.

    Parameters
    ----------
    network : Network
    missing : mapping of str to int array
        Link type, from or to users → how many links each node is to have more.
    rng : numpy.random.Generator
    node_type : str
        The users'.
    by_source : bool
        False: so many links in all, from whichever nodes; then two fake links may answer each
        other as real ones do.
    original : Network, optional
        What the fake links are told apart from: with the links that were taken out before.

    Raises
    ------
    InputError
        If more than `MOST_WANTED` links of a type are wanted.
    """
    for name, wanted in missing.items():
        if wanted.sum() > MOST_WANTED:
            raise InputError(
                f"link type {name!r}: {wanted.sum():,} fake links are wanted, more than "
                f'{MOST_WANTED:,} that can be drawn with care. Pass "plausible": false to draw '
                "them at random."
            )
    original = network if original is None else original
    best, least, shown = network, np.inf, network
    for _ in range(ROUNDS):
        for name, wanted in missing.items():
            if len(network.links[name]) >= 10:
                drawn = _draw(network, shown, name, wanted, rng, node_type, by_source)
                ends = network.size(network.schema.link(name).target)
                grown = more_links(network.links[name], *drawn, ends)
                shown = Network(network.schema, network.nodes, {**shown.links, name: grown})
        found = _stands_out(original, shown, node_type, missing)
        if found <= least:
            best, least = shown, found
    links = {name: add_random_links(network, name, some, rng) for name, some in missing.items()}
    shown = Network(network.schema, network.nodes, {**network.links, **links})
    return shown if _stands_out(original, shown, node_type, missing) < least else best


def _stands_out(original: Network, shown: Network, node_type: str, names: Container[str]) -> float:
    """Say how far the detector is from a guess, over link types; below ½ tells as much as above."""
    found = detect_fakes(original, shown, node_type=node_type, seed=SEED)
    aside = [abs(auc - 0.5) for name, auc in found.items() if name in names]
    return float(np.mean(aside)) if aside else 0.0


def _draw(
    network: Network,
    shown: Network,
    name: str,
    missing: np.ndarray,
    rng: np.random.Generator,
    node_type: str,
    by_source: bool,
) -> _Pairs:
    """Draw fake links for `network` that look real in `shown`, which holds earlier ones too."""
    link, old, n = network.schema.link(name), network.links[name], len(missing)
    real = _listed(old)
    look = _look(shown, name, node_type, rng)
    ends = network.size(link.target)
    pool = _candidates(look, old, missing, ends, rng)
    if link.source == link.target and not link.self_links:
        pool = pool.take(np.flatnonzero(pool.source != pool.target))
    if not by_source and link.source == link.target:  # answers to fake links, whoever gives them
        pool = _joined(pool, _answers(shown.links[name], old, n))
    if not len(pool.source):
        return pool
    odds = _odds(look, real.take(rng.permutation(len(real.source))[:MOST]), pool, rng)
    # The largest of odds plus Gumbel noise are a draw without replacement by the odds.
    key = -(odds + rng.gumbel(size=len(odds)))
    if not by_source:
        return pool.take(np.argsort(key)[: missing.sum()])
    order = np.lexsort((key, pool.source))
    begins = np.searchsorted(pool.source[order], np.arange(n))
    place = np.arange(len(order)) - begins[pool.source[order]]
    return pool.take(order[place < missing[pool.source[order]]])


def _odds(
    look: _Look | _LookAcross, real: _Pairs, pool: _Pairs, rng: np.random.Generator
) -> np.ndarray:
    """Return the log odds of each candidate to be real, by classifiers that did not see it."""
    seen = look.of(real)
    odds = np.empty(len(pool.source))
    folds = [rng.integers(FOLDS, size=len(part.source)) for part in (real, pool)]
    with threadpool_limits(1):
        for fold in range(FOLDS):
            others = rng.permutation(np.flatnonzero(folds[1] != fold))[:MOST]
            kept = seen[folds[0] != fold]
            if not len(kept) or not len(others):
                odds[folds[1] == fold] = 0.0
                continue
            label = np.repeat([1, 0], [len(kept), len(others)])
            model = _classifier(0).fit(np.vstack([kept, look.of(pool.take(others))]), label)
            asked = np.flatnonzero(folds[1] == fold)
            for rows in np.array_split(asked, len(asked) // 10**5 + 1):
                if len(rows):
                    chance = model.predict_proba(look.of(pool.take(rows)))[:, 1]
                    odds[rows] = logit(chance.clip(1e-6, 1 - 1e-6))
    return odds


def _candidates(
    look: _Look | _LookAcross, old: Links, missing: np.ndarray, ends: int, rng: np.random.Generator
) -> _Pairs:
    """Draw pairs that are not linked, several for each link that is missing, each pair once.

    They lead to any of so many `ends`, to one that a link leads to, and the ways that the look has.
    """
    each = np.repeat(np.arange(len(missing)), missing * CANDIDATES)
    ways = [
        rng.integers(ends, size=len(each)),
        old.indices[rng.integers(len(old), size=len(each))].astype(np.int64),
        *look.ways(each, rng),
    ]
    target = np.choose(rng.integers(len(ways), size=len(each)), ways)
    taken = old.sources * np.int64(ends) + old.indices
    there = target >= 0
    pairs = np.setdiff1d(each[there] * np.int64(ends) + target[there], taken)
    strength = real_strengths(old, len(pairs), rng).astype(np.int64)
    return _Pairs(pairs // ends, pairs % ends, strength)


def _answers(shown: Links, old: Links, n: int) -> _Pairs:
    """Return the links that would answer those shown, and are not real."""
    back = shown.indices * np.int64(n) + shown.sources
    place, first = np.unique(back, return_index=True)
    new = ~np.isin(place, old.sources * np.int64(n) + old.indices)
    strength = _listed(shown).strength[first[new]]
    return _Pairs(place[new] // n, place[new] % n, strength.astype(np.int64))


def _joined(one: _Pairs, other: _Pairs) -> _Pairs:
    """Put pairs together, each once."""
    both = _Pairs(*(np.append(a, b) for a, b in zip(one, other, strict=True)))
    return both.take(np.unique(np.stack([both.source, both.target]), axis=1, return_index=True)[1])


def _step(graph: csr_array, start: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Go from each node to a random neighbour; −1 where there is none, or was none before."""
    degree = np.where(start >= 0, np.diff(graph.indptr)[start], 0)
    place = graph.indptr[start] + (rng.random(len(start)) * degree).astype(np.int64)
    there = degree > 0
    return np.where(there, np.append(graph.indices, -1)[np.where(there, place, -1)], -1)


def _classifier(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=15, random_state=seed)


def _listed(links: Links) -> _Pairs:
    strength = np.ones(len(links), np.int64) if links.strength is None else links.strength
    return _Pairs(links.sources.astype(np.int64), links.indices.astype(np.int64), strength)


def _ones(matrix: csr_array) -> csr_array:
    return csr_array(matrix > 0).astype(np.int64)


def _at(matrix: csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return np.asarray(matrix[rows, columns]).ravel()
