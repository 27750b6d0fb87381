"""Two releases of the same people: what both tell together, and whether rows can be joined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from telic.errors import InputError
from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.anonymisers.release_steps import COARSENINGS, apply_steps
from telic.privacy.attacks.auxiliary import Auxiliary, TooManyPairs
from telic.privacy.attacks.dehin import MAX_PAIRS, attack
from telic.privacy.attacks.score import right, same_ids
from telic.privacy.risk.risks import Measures, measure
from telic.privacy.risk.views import farthest


@dataclass(frozen=True)
class TwoReleases:
    """The risk of the people who are in both releases.

    Parameters
    ----------
    people : int
        How many are in both.
    first, second : Measures
        Of each release alone: a person is hidden among all rows of it that look the same.
    joined : Measures
        Of both, if their rows can be joined, because ids are kept or because each row can be
        matched: a person is hidden among those who look the same in both.
    matched : float or None
        Share of the people whose rows the attack joins by what both releases show, the first being
        sought in the second, which may have grown as the schema's rules say. None: too many pairs
        to compare.
    unmatched : float or None
        Share of the people whose row of the first matches none of the second. Where the second is
        coarser that is no protection: an intruder coarsens the first, as `steps` do.
    """

    people: int
    first: Measures
    second: Measures
    joined: Measures
    matched: float | None
    unmatched: float | None


def two_releases(
    first: Network,
    second: Network,
    *,
    adversary: Adversary | None = None,
    later: Adversary | None = None,
    steps: Sequence[Mapping[str, Any]] = (),
) -> TwoReleases:
    """Measure what two releases of the same people tell, such as this month's and the last one's.

    Parameters
    ----------
    first, second : Network
        As they are published, but with the ids that say who is who.
    adversary : Adversary, optional
        What an intruder sees of the first; default everything.
    later : Adversary, optional
        The same for the second.
    steps : sequence of mappings, optional
        How the second was coarsened beyond the first, as of `apply_steps`: the intruder repeats it
        on the first before seeking its rows.

    Raises
    ------
    InputError
        If nobody is in both.

    Examples
    --------
    Each month everybody is among two, but nobody is so in both:

    >>> from telic.hin import Schema, network_from_arrays
    >>> schema = Schema.parse({"nodes": {"user": {"attributes": {"city": "exact"}}}, "links": []})
    >>> months = [network_from_arrays(schema, {"user": {"id": [1, 2, 3, 4], "city": city}}, {})
    ...           for city in (["a", "a", "b", "b"], ["a", "b", "a", "b"])]
    >>> found = two_releases(*months)
    >>> found.first.risk, found.second.risk, found.joined.risk
    (0.5, 0.5, 1.0)
    """
    adversary = Adversary.of(first) if adversary is None else adversary
    node_type = adversary.node_type
    later = Adversary.of(second, node_type=node_type) if later is None else later
    place = same_ids(second, first, node_type)
    there = np.flatnonzero(place >= 0)
    if not len(there):
        raise InputError(
            f"two releases: no {node_type} id of the first is in the second. Give both with the "
            "ids they had before new ones were drawn."
        )
    views = [
        farthest(network, seen)[: network.size(node_type)]
        for network, seen in ((first, adversary), (second, later))
    ]
    codes = [np.unique(view, return_inverse=True)[1] for view in views]
    both = codes[0][there] * np.int64(codes[1].max() + 1) + codes[1][place[there]]
    alike = first
    if steps:
        alike = apply_steps(first, steps, only=COARSENINGS, node_type=node_type)
        adversary = _after(adversary, first, alike)
    matched, unmatched = _matched(alike, second, _in_both(adversary, later, second), place, there)
    return TwoReleases(
        people=len(there),
        first=_of_some(codes[0], there),
        second=_of_some(codes[1], place[there]),
        joined=measure(both),
        matched=matched,
        unmatched=unmatched,
    )


def _after(adversary: Adversary, before: Network, after: Network) -> Adversary:
    """Return what an intruder sees of a network that was made coarser, by the rules it has now."""
    now = Adversary.of(after, node_type=adversary.node_type)
    return replace(
        adversary,
        attributes={
            kind: {
                name: rule
                for name, rule in own.items()
                if name in adversary.attributes[kind] or name not in before.nodes[kind].column_names
            }
            for kind, own in now.attributes.items()
        },
        links={name: rule for name, rule in now.links.items() if name in adversary.links},
    )


def _of_some(codes: np.ndarray, people: np.ndarray) -> Measures:
    """Judge some of the people, who are hidden among all of a release."""
    each = 1 / np.bincount(codes)[codes[people]]
    few = -(-len(each) // 100)
    return Measures(
        float(each.mean()),
        len(np.unique(codes[people])),
        float((each == 1).mean()),
        float(each.max()),
        float(np.sort(each)[-few:].mean()),
    )


def _in_both(first: Adversary, second: Adversary, release: Network) -> Adversary:
    """Take from the first what the second does not see, or what the second release lacks."""
    return replace(
        first,
        attributes={
            kind: {name: rule for name, rule in seen.items() if name in second.attributes[kind]}
            for kind, seen in first.attributes.items()
            if kind in second.attributes
        },
        links={
            name: None if release.links[name].strength is None else rule
            for name, rule in first.links.items()
            if name in second.links
        },
        known_ids=tuple(kind for kind in first.known_ids if kind in second.known_ids),
    )


def _matched(
    first: Network, second: Network, adversary: Adversary, place: np.ndarray, there: np.ndarray
) -> tuple[float, float] | tuple[None, None]:
    """Return the shares of the people whose rows the attack joins, and whose match none."""
    try:
        result = attack(Auxiliary(second, adversary), first, max_pairs=MAX_PAIRS)
    except TooManyPairs:
        return None, None
    last = len(result.sizes) - 1
    found = right(result, place, last)[there]
    return float(found.mean()), float((result.sizes[last][there] == 0).mean())
