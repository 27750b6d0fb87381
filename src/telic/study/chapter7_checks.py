"""Why chapter 7's tables level off where they do, and whether advice survives the attack."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.advise import advise
from telic.privacy.auxiliary import Auxiliary
from telic.privacy.dehin import attack
from telic.privacy.score import bootstrap_interval, right
from telic.privacy.steps import COARSENINGS, apply_steps
from telic.privacy.target import own_links, subsets
from telic.report import Report
from telic.study.chapter7_networks import World
from telic.study.chapter7_published import PUBLISHED_RISK

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
    prepared = _prepared(world.network, samples[0][0])
    rows = []
    for names in subsets(own_links(samples[0][0].schema, "user")):
        linked, found = [], []
        for target, truth in samples:
            result = attack(prepared, target, distance=FAR, links=names)
            linked.append(out_links(target, names) > 0)
            found.append(right(result, truth, FAR))
        has, hit = np.concatenate(linked), np.concatenate(found)
        rows.append({"links": names, "linked": float(has.mean()), "found": float(hit.mean()),
                     "found_of_linked": float(hit[has].mean())})  # fmt: skip
    return rows


def found_by_links(world: World, density: float) -> list[dict[str, Any]]:
    """Say, for single link types together, how often who has few or many out-links is found."""
    samples = world.samples[density]
    prepared = _prepared(world.network, samples[0][0])
    counts, hits = [], []
    for name in own_links(samples[0][0].schema, "user"):
        for target, truth in samples:
            result = attack(prepared, target, distance=1, links=[name])
            counts.append(out_links(target, [name]))
            hits.append(right(result, truth, 1))
    count, hit = np.concatenate(counts), np.concatenate(hits)
    rows = []
    for label, low, high in LINK_COUNTS:
        inside = (count >= low) & (count <= (np.inf if high is None else high))
        rows.append({"out_links": label, "share": float(inside.mean()),
                     "found": float(hit[inside].mean()) if inside.any() else 0.0})  # fmt: skip
    return rows


def ceiling_section(page: Report, facts: dict[str, Any], world: World, density: float) -> None:
    """Explain where the tables level off, with the numbers of `ceiling` and `found_by_links`."""
    rows = ceiling(world, density)
    page.section("Why two link types already reach the ceiling")
    by_links = {"-".join(row["links"]): row for row in rows}
    page.text(
        "Nobody is found by links who has none, so the share of targets with an out-link in the "
        "types used bounds what links can add. In the book that share is at least the risk of "
        "Table 7.1 at distance 3 less 1.1 points, since users without links fall into 11 kinds. "
        "There, who never mentions hardly ever retweets or comments (one such type 92.7 to 93.2 %, "
        "all three 93.5 %), and following alone brings other people in (97.5 %). In the simulator "
        "the types fall silent independently among active users: "
        f"{by_links['mention']['linked']:.1%} have a mention, "
        f"{by_links['mention-retweet']['linked']:.1%} a mention or a retweet, and "
        f"{by_links['mention-retweet-comment']['linked']:.1%} any of the three. The ceiling "
        "therefore comes with the second type of any kind; in the book with follow and one other. "
        "The simulator was left as it is: only published marginals may set it, and the book "
        "publishes this share as a result, not as a marginal."
    )
    page.table(
        ["link types", "have an out-link, %", "found at n = 3, %", "found of those, %", "book's "
         "share with an out-link, at least, %"],
        [["-".join(row["links"]), *(f"{100 * row[key]:.1f}" for key in
          ("linked", "found", "found_of_linked")),
          f"{PUBLISHED_RISK['-'.join(row['links'])][-1] - 1.1:.1f}"] for row in rows],
        caption="The ceiling by link types, density 0.01 (simulated)",
    )  # fmt: skip
    few = found_by_links(world, density)
    page.text(
        "The second reason is how much one link tells. With one link type at distance 1 the book "
        "finds 68.1 to 82.8 % of all targets, which is 73 to 89 % of those with a link by the "
        f"shares above. Here one link finds {few[1]['found']:.0%} and two find "
        f"{few[2]['found']:.0%}, but only {few[1]['share']:.0%} of the targets have one: active "
        "users have links enough in every type for one type to find nearly all of them."
    )
    page.table(
        ["out-links of that type", "share of targets, %", "found at n = 1, %"],
        [[row["out_links"], f"{100 * row['share']:.1f}", f"{100 * row['found']:.1f}"]
         for row in few],
        caption="One link type at a time, all four together (simulated)",
    )  # fmt: skip
    facts["ceiling"], facts["found_by_links"] = rows, few


def _prepared(known: Network, target: Network) -> Auxiliary:
    return Auxiliary(known, Adversary.of(target, in_links=False, joint=False))


def advice(world: World, density: float, *, max_risk: float) -> dict[str, Any]:
    """Advise on one group, then attack the release from the group and from everyone around.

    The advice is against an intruder who sees all that the release contains; who looks in the
    whole network runs the book's attack. Both coarsen what they know as the release was.
    """
    target, truth = world.samples[density][0]
    found = advise(target, max_risk=max_risk)
    release = apply_steps(target, found.steps)
    known = apply_steps(world.network, found.steps, only=COARSENINGS)
    hits, before = (
        right(attack(_prepared(around, published), published, distance=FAR), truth, FAR)
        for around, published in ((known, release), (world.network, target))
    )
    return {
        "max_risk": max_risk, "risk_before": found.before[-1].risk,
        "risk_after": found.after[-1].risk, "loss": found.loss, "proven": found.proven,
        "choice": found.choice, "attack_inside": found.attacked,
        "attack_before": float(before.mean()), "attack_after": float(hits.mean()),
        "interval": bootstrap_interval(hits),
    }  # fmt: skip
