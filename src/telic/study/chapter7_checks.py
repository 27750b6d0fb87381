"""Why chapter 7's tables level off where they do, and whether advice survives the attack."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from telic.hin import Network
from telic.privacy.advise import advise, confirm
from telic.privacy.anonymise import COARSENINGS, apply_steps
from telic.privacy.auxiliary import Auxiliary, Rules
from telic.privacy.dehin import attack
from telic.privacy.score import bootstrap_interval, right
from telic.privacy.target import own_links, subsets
from telic.study.chapter7_networks import World

FAR = 3
LINK_COUNTS = (("0", 0, 0), ("1", 1, 1), ("2", 2, 2), ("3 to 9", 3, 9), ("10 or more", 10, None))


def out_links(target: Network, names: Sequence[str]) -> np.ndarray:
    """Count each user's out-links over some link types."""
    return np.sum([target.links[name].out_degree for name in names], axis=0)


def ceiling(world: World, density: float) -> list[dict[str, Any]]:
    """Say, per set of link types, who has an out-link at all and who of those is found.

    Returns
    -------
    list of dict
        ``links``; ``linked``, the share of targets with an out-link in these types; ``found`` by
        the attack at distance `FAR`; ``found_of_linked``.
    """
    samples = world.samples[density]
    prepared = Auxiliary(world.network, Rules.of(samples[0][0]))
    rows = []
    for names in subsets(own_links(samples[0][0].schema, "user")):
        linked, found = [], []
        for target, truth in samples:
            result = attack(prepared, target, max_distance=FAR, links=names)
            linked.append(out_links(target, names) > 0)
            found.append(right(result, truth, FAR))
        has, hit = np.concatenate(linked), np.concatenate(found)
        rows.append({"links": names, "linked": float(has.mean()), "found": float(hit.mean()),
                     "found_of_linked": float(hit[has].mean())})  # fmt: skip
    return rows


def found_by_links(world: World, density: float) -> list[dict[str, Any]]:
    """Say, for single link types together, how often who has few or many out-links is found."""
    samples = world.samples[density]
    prepared = Auxiliary(world.network, Rules.of(samples[0][0]))
    counts, hits = [], []
    for name in own_links(samples[0][0].schema, "user"):
        for target, truth in samples:
            result = attack(prepared, target, max_distance=1, links=[name])
            counts.append(out_links(target, [name]))
            hits.append(right(result, truth, 1))
    count, hit = np.concatenate(counts), np.concatenate(hits)
    rows = []
    for label, low, high in LINK_COUNTS:
        inside = (count >= low) & (count <= (np.inf if high is None else high))
        rows.append({"out_links": label, "share": float(inside.mean()),
                     "found": float(hit[inside].mean()) if inside.any() else 0.0})  # fmt: skip
    return rows


def advice(world: World, density: float, *, max_risk: float) -> dict[str, Any]:
    """Advise on one group, then attack the release from the group and from everyone around.

    Both attackers coarsen what they know as the release was; the second knows the whole network.
    """
    target, truth = world.samples[density][0]
    found = advise(target, max_risk=max_risk)
    release = apply_steps(target, found.steps)
    known = apply_steps(world.network, found.steps, only=COARSENINGS)
    prepared = Auxiliary(known, Rules.of(release))
    hits = right(attack(prepared, release, max_distance=FAR), truth, FAR)
    before = right(
        attack(Auxiliary(world.network, Rules.of(target)), target, max_distance=FAR), truth, FAR
    )
    return {
        "max_risk": max_risk, "risk_before": found.before[-1].risk,
        "risk_after": found.after[-1].risk, "loss": found.loss, "proven": found.proven,
        "choice": found.choice, "attack_inside": confirm(target, found),
        "attack_before": float(before.mean()), "attack_after": float(hits.mean()),
        "interval": bootstrap_interval(hits),
    }  # fmt: skip
