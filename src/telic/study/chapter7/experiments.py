"""What chapter 7 measures on a network: risk, the attack by links, density and release, losses.

Each experiment takes a `World` and returns what JSON takes. Link types are joined by "-", lists are
by sample, then by distance.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from telic.evaluate.wilson import wilson_interval
from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.advice.advise import advise
from telic.privacy.anonymisers.complete_graph import complete_graph, without_majority_strength
from telic.privacy.anonymisers.joint_k_degree import joint_k_degree
from telic.privacy.anonymisers.k_degree import k_degree
from telic.privacy.anonymisers.release_steps import COARSENINGS, apply_steps
from telic.privacy.attacks.auxiliary import Auxiliary
from telic.privacy.attacks.dehin import attack
from telic.privacy.attacks.score import right, scores
from telic.privacy.link_type_sets import subsets
from telic.privacy.protected import own_links
from telic.privacy.risk.limits import Limits
from telic.privacy.risk.risks import risks
from telic.privacy.utility.utility_loss import link_losses
from telic.study.chapter7.networks import World, make_world

DISTANCES = range(4)
FAR = DISTANCES[-1]
K = 5
"""Users who share a degree under k-degree."""
PRINTED: dict[str, Any] = {"in_links": False, "joint": False}
"""The adversary of the chapter sees out-links, link type by link type."""
LINK_COUNTS = (("0", 0, 0), ("1", 1, 1), ("2", 2, 2), ("3 to 9", 3, 9), ("10 or more", 10, np.inf))


def risk_by_links(world: World, density: float) -> dict[str, list[list[float]]]:
    """Table 7.1: risk by link types."""
    found: dict[str, list[list[float]]] = {}
    for target, _ in world.samples[density]:
        seen = Adversary.of(target, attributes=world.risk_attributes, distance=FAR, **PRINTED)
        of_sample: dict[str, list[float]] = {}
        for risk in risks(target, seen):
            of_sample.setdefault("-".join(risk.links), []).append(risk.risk)
        for names, values in of_sample.items():
            found.setdefault(names, []).append(values)
    return found


def attack_by_links(world: World, density: float) -> dict[str, dict[str, Any]]:
    """Table 7.3: scores of the attack by link types, and who of the first sample is found."""
    prepared, found = _prepare(world), {}
    for chosen in subsets(_links(world)):
        samples = [_attacked(prepared, *sample, links=chosen) for sample in world.samples[density]]
        found["-".join(chosen)] = {
            "scores": [by_distance for by_distance, _ in samples],
            "interval": wilson_interval(samples[0][1].mean(), len(samples[0][1])),
        }
    return found


def attack_by_density(world: World) -> dict[str, dict[str, list[list[dict[str, float]]]]]:
    """Tables 7.2 and 7.4 and Figure 7.9: scores of the attack on each release, by density.

    Releases: as they are with ids replaced (KDDA; ids are never compared, so they need not be);
    complete graph (CGA) with the fake strength drawn at random and with the majority strength,
    both met by the re-configured attack; the re-configured attack on the plain release; complete
    graph of varying weights (VW-CGA), met by both; k-degree with random links, for each link type
    alone and for all degrees together.
    """
    prepared = _prepare(world)
    found: dict[str, dict[str, list[list[dict[str, float]]]]] = {}
    for density, samples in world.samples.items():
        for number, (target, truth) in enumerate(samples):
            for release, network in _releases(target, number):
                rows = found.setdefault(release, {}).setdefault(str(density), [])
                rows.append(_attacked(prepared, network, truth)[0])
    return found


def _releases(target: Network, seed: int) -> Iterable[tuple[str, Network]]:
    complete = complete_graph(target, seed=seed)
    majority = complete_graph(target, strengths=_majority(target), seed=seed)
    varying = complete_graph(target, varying=True, seed=seed)
    yield "KDDA", target
    yield "KDDA, re-configured", without_majority_strength(target)[0]
    yield "CGA, re-configured", without_majority_strength(complete)[0]
    yield "CGA at the majority strength, re-configured", without_majority_strength(majority)[0]
    yield f"{K}-degree", k_degree(target, k=K, plausible=False, seed=seed)
    yield f"joint {K}-degree", joint_k_degree(target, k=K, seed=seed)
    yield "VW-CGA", varying
    yield "VW-CGA, re-configured", without_majority_strength(varying)[0]


def complete_by_links(world: World, density: float) -> dict[str, dict[str, list[float]]]:
    """Figure 7.9's argument: does a complete graph defend where one link type is used, or several?

    Returns
    -------
    dict
        Release → number of link types → precision by distance, the mean over all sets of so many
        types and over the samples. The releases are KDDA and the two complete graphs of one
        strength, these met by the re-configured attack.
    """
    prepared = _prepare(world)
    found: dict[str, dict[str, list[list[float]]]] = {}
    for number, (target, truth) in enumerate(world.samples[density]):
        for release, network in _releases(target, number):
            if release not in BY_LINKS:
                continue
            for chosen in subsets(_links(world)):
                by_distance, _ = _attacked(prepared, network, truth, links=chosen)
                rows = found.setdefault(release, {}).setdefault(str(len(chosen)), [])
                rows.append([score["unique_right"] for score in by_distance])
    return {
        release: {count: np.mean(rows, axis=0).tolist() for count, rows in table.items()}
        for release, table in found.items()
    }


BY_LINKS = ("KDDA", "CGA, re-configured", "CGA at the majority strength, re-configured")


def release_losses(world: World, density: float) -> dict[str, dict[str, float]]:
    """Section 7.6.3: what each complete graph loses, link by link; means over samples."""
    found: dict[str, list[dict[str, float]]] = {}
    for number, (target, _) in enumerate(world.samples[density]):
        for name, release in (
            ("KDDA", target),
            ("CGA", complete_graph(target, seed=number)),
            ("VW-CGA", complete_graph(target, varying=True, seed=number)),
        ):
            found.setdefault(name, []).append(link_losses(target, release))
    return {
        name: {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        for name, rows in found.items()
    }


def ceiling(world: World, density: float) -> list[dict[str, Any]]:
    """Say, by link types, who has an out-link at all and who of those is found.

    Returns
    -------
    list of dict
        ``links``; ``linked``, the share of targets with an out-link in these types; ``found`` by
        the attack at the farthest distance; ``found_of_linked``.
    """
    prepared, rows = _prepare(world), []
    for names in subsets(_links(world)):
        linked, found = [], []
        for target, truth in world.samples[density]:
            linked.append(out_links(target, names) > 0)
            found.append(right(attack(prepared, target, distance=FAR, links=names), truth, FAR))
        has, hit = np.concatenate(linked), np.concatenate(found)
        shares = {"linked": has, "found": hit, "found_of_linked": hit[has]}
        means = {name: float(share.mean()) for name, share in shares.items()}
        rows.append({"links": "-".join(names), **means})
    return rows


def found_by_links(world: World, density: float) -> list[dict[str, Any]]:
    """Say, for single link types together, how often who has few or many out-links is found."""
    prepared = _prepare(world)
    counts, hits = [], []
    for name in _links(world):
        for target, truth in world.samples[density]:
            result = attack(prepared, target, distance=1, links=[name])
            counts.append(out_links(target, [name]))
            hits.append(right(result, truth, 1))
    count, hit = np.concatenate(counts), np.concatenate(hits)
    rows = []
    for label, low, high in LINK_COUNTS:
        inside = (count >= low) & (count <= high)
        rows.append(
            {
                "out_links": label,
                "share": float(inside.mean()),
                "found": float(hit[inside].mean()) if inside.any() else 0.0,
            }
        )
    return rows


def advice(world: World, density: float, *, max_risk: float) -> dict[str, Any]:
    """Advise on one group, then attack the release from the group and from everyone around.

    The advice is against an intruder who sees all that the release contains; who looks in the
    whole network runs the chapter's attack. Both coarsen what they know as the release was.
    """
    target, truth = world.samples[density][0]
    found = advise(target, Limits(risk=max_risk))
    release = apply_steps(target, found.steps)
    known = apply_steps(world.network, found.steps, only=COARSENINGS)
    hits, before = (
        right(attack(_prepared(around, published), published, distance=FAR), truth, FAR)
        for around, published in ((known, release), (world.network, target))
    )
    return {
        "max_risk": max_risk,
        "risk_before": found.before[-1].risk,
        "risk_after": found.after[-1].risk,
        "loss": found.loss,
        "proven": found.proven,
        "choice": found.choice,
        "attack_inside": found.attacked,
        "attack_before": float(before.mean()),
        "attack_after": float(hits.mean()),
        "interval": wilson_interval(hits.mean(), len(hits)),
    }


EXPERIMENTS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        risk_by_links,
        attack_by_links,
        attack_by_density,
        complete_by_links,
        release_losses,
        ceiling,
        found_by_links,
        advice,
    )
}


def run(*, experiment: str, world: dict[str, Any], **options: Any) -> Any:
    """Run one of `EXPERIMENTS` on the network that `make_world` makes of some settings."""
    return EXPERIMENTS[experiment](make_world(**world), **options)


def out_links(target: Network, names: Sequence[str]) -> np.ndarray:
    """Count each user's out-links over some link types."""
    return np.sum([target.links[name].out_degree for name in names], axis=0)


def _links(world: World) -> list[str]:
    return own_links(world.network.schema, next(iter(world.network.schema.nodes)))


def _majority(target: Network) -> dict[str, int]:
    common = {}
    for name, links in target.links.items():
        if links.strength is not None and len(links):
            values, counts = np.unique(links.strength, return_counts=True)
            common[name] = int(values[counts.argmax()])
    return common


def _prepare(world: World) -> Auxiliary:
    return _prepared(world.network, next(iter(world.samples.values()))[0][0])


def _prepared(known: Network, target: Network) -> Auxiliary:
    return Auxiliary(known, Adversary.of(target, **PRINTED))


def _attacked(
    prepared: Auxiliary, target: Network, truth: np.ndarray, links: Sequence[str] | None = None
) -> tuple[list[dict[str, float]], np.ndarray]:
    """Return the attack's scores by distance, and who is found at the farthest one."""
    result = attack(prepared, target, distance=FAR, links=links)
    by_distance = scores(result, prepared.size, truth)
    return [asdict(score) for score in by_distance], right(result, truth, by_distance[-1].distance)
