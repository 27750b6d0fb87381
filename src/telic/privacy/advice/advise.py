"""Which release meets the stated limits and loses least."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from telic.errors import InputError
from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.advice.coarsening_levels import levers
from telic.privacy.advice.judged_releases import keep_judged
from telic.privacy.advice.release_search import (
    FrontierPoint,
    ReleaseSearch,
    cheapest,
    frontier,
    greedy,
    lost,
)
from telic.privacy.anonymisers.coarsen import count_name
from telic.privacy.anonymisers.release_steps import apply_steps
from telic.privacy.attacks.auxiliary import Auxiliary, TooManyPairs
from telic.privacy.attacks.dehin import MAX_PAIRS, attack
from telic.privacy.attacks.score import right
from telic.privacy.risk.limits import Limits
from telic.privacy.risk.risks import Risk, risks
from telic.privacy.risk.views import farthest

MAX_TRIED = 3000


@dataclass(frozen=True)
class Advice:
    """A release under the stated limits.

    Parameters
    ----------
    adversary : Adversary
        Against whom: what the intruder is taken to see of the network, and of the release.
    limits : Limits
        What it was asked to keep, and keeps.
    steps : list of dict
        What to do, for `apply_steps`.
    choice : dict of str to str
        Field → what happens to it.
    loss : float
        Share of the published fields' information that is lost, in [0, 1].
    proven : bool
        Whether every cheaper combination of levels was ruled out.
    tried : int
        How many releases were judged, those of earlier searches that went before included.
    before, after : list of Risk
        By distance; as it was, and the release.
    attacked : float or None
        Share of all users that the attack finds in the release, by an adversary who knows all that
        it shows exactly; None: it would compare more than `MAX_PAIRS` pairs of users. It cannot
        find more than those who are alone of their kind, ``after[-1].unique``.
    effects : list of (field, level, risk without it, risk with it added back)
        The marginal effect of each field: of coarsening it fully in the network as it is, and of
        publishing it in full in the release.
    frontier : list of FrontierPoint
        Releases that none found beats in both loss and mean risk, the one that loses least first;
        losses are shares, as `loss`.
    """

    adversary: Adversary
    limits: Limits
    steps: list[dict[str, Any]]
    choice: dict[str, str]
    loss: float
    proven: bool
    tried: int
    before: list[Risk] = field(repr=False)
    after: list[Risk] = field(repr=False)
    attacked: float | None
    effects: list[tuple[str, str, float, float]] = field(repr=False)
    frontier: list[FrontierPoint] = field(repr=False)


def advise(
    network: Network,
    limits: Limits,
    *,
    adversary: Adversary | None = None,
    weights: Mapping[str, float] | None = None,
    max_tried: int = MAX_TRIED,
    seconds: float | None = None,
    resume: str | Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Search for the release with the least loss that keeps the limits.

    Levels are nested, so coarsening never raises anybody's risk: a release is ruled out with
    everything finer than it. Releases are tried from the cheapest up, after a greedy search has
    given a bound; if `max_tried` or `MAX_WORK` runs out, the greedy one is returned and `proven` is
    false. At the end the release is attacked, by the same adversary with exact knowledge.

    Parameters
    ----------
    network : Network
    limits : Limits
        On the mean risk, the highest, the share of unique users, the risk of the worst 1 %.
    adversary : Adversary, optional
        Against whom; default one who sees everything that the network contains.
    weights : mapping of str to float, optional
        How much a field's loss counts; default 1.
    max_tried : int
        Judge about this many releases at most, beside those that `resume` holds.
    seconds : float, optional
        Stop the search after so long and give the best release found, which keeps the limits.
    resume : path, optional
        A file that keeps what was judged: a search with it goes on where the last one, of the same
        network against the same adversary, ended. Limits and weights may differ.
    progress : callable, optional
        Told what is done next, and the number of releases judged so far.

    Raises
    ------
    InputError
        If even the coarsest release, nothing but nameless users, is above a limit.
    """
    adversary = Adversary.of(network) if adversary is None else adversary
    if not network.size(adversary.node_type):
        raise InputError(f"node type {adversary.node_type!r} is empty: there is nobody to protect.")
    progress("listing what can be coarsened")
    fields = levers(network, adversary)
    weights = weights or {}
    for name, weight in weights.items():
        if name not in [lever.name for lever in fields]:
            raise InputError(f"weights: {name!r} is neither an attribute nor a link type.")
        if not isinstance(weight, int | float) or not 0 <= weight < np.inf:
            raise InputError(f"weights: {name!r} is {weight!r}, expected a number >= 0.")
    search = ReleaseSearch(network, adversary, fields, limits, progress, seconds)
    losses = [
        [weights.get(lever.name, 1.0) * level.loss for level in lever.levels] for lever in fields
    ]
    whole = sum(part[-1] for part in losses) or 1.0
    top = tuple(len(lever.levels) - 1 for lever in fields)
    with keep_judged(resume, search.judged, network, adversary, fields):
        limit = search.tried + max_tried
        if not search.passes(top):
            users = network.size(adversary.node_type)
            raise InputError(
                f"{limits.words()}: cannot be met. Even with nothing but new ids published, "
                f"everybody's risk is 1/{users}. Publish more users or accept more risk."
            )
        chosen = greedy(search, top, losses)
        better, proven = cheapest(search, top, losses, lost(losses, chosen), limit)
        chosen, tried = better or chosen, search.tried
        steps = [step for level in search.levels(chosen) for step in level.steps]
        none = (0,) * len(fields)
        effects = []
        for i, lever in enumerate(fields):
            progress(f"what {lever.name} adds")
            without = (*none[:i], top[i], *none[i + 1 :])
            added = (*chosen[:i], 0, *chosen[i + 1 :])
            label = lever.levels[chosen[i]].label
            effects.append(
                (lever.name, label, search.measures(without).risk, search.measures(added).risk)
            )
        progress("drawing the frontier")
        edge = [p._replace(loss=p.loss / whole) for p in frontier(search, top, losses)]
    progress("confirming by attack")
    found = Advice(
        adversary=adversary,
        limits=limits,
        steps=steps,
        choice={
            x.name: level.label for x, level in zip(fields, search.levels(chosen), strict=True)
        },
        loss=lost(losses, chosen) / whole,
        proven=proven,
        tried=tried,
        before=_by_distance(network, adversary),
        after=_by_distance(*_released(network, adversary, steps)),
        attacked=None,
        effects=effects,
        frontier=edge,
    )
    return replace(found, attacked=confirm(network, found))


def _released(
    network: Network, adversary: Adversary, steps: list[dict[str, Any]]
) -> tuple[Network, Adversary]:
    """Return the release, and what the same adversary sees of it."""
    release = apply_steps(network, steps, node_type=adversary.node_type)
    attributes = {
        kind: {n: r for n, r in table.items() if n in release.schema.nodes[kind]}
        for kind, table in adversary.attributes.items()
    }
    for link in network.schema.links:
        label, rules = count_name(link.name), release.schema.nodes[link.source]
        if label in rules and label not in network.schema.nodes[link.source]:
            attributes[link.source][label] = rules[label]
    seen = replace(
        adversary,
        attributes=attributes,
        links={
            name: None if release.schema.link(name).strength is None else rule
            for name, rule in adversary.links.items()
            if name in release.links
        },
        known_ids=tuple(k for k in adversary.known_ids if k not in release.schema.pseudonyms),
    )
    return release, seen


def _by_distance(network: Network, adversary: Adversary) -> list[Risk]:
    return list(risks(network, adversary, links=[list(adversary.links)]))


def confirm(network: Network, advice: Advice) -> float | None:
    """Attack the advised release, with the whole network, coarsened likewise, as auxiliary.

    The attacker is the advice's adversary and knows everything exactly: nothing has grown in
    between.

    Returns
    -------
    float or None
        Share of users found, at the farthest distance that the adversary looks; None if more than
        `MAX_PAIRS` pairs of users would have to be compared.
    """
    release, seen = _released(network, advice.adversary, advice.steps)
    known = apply_steps(network, advice.steps, node_type=seen.node_type)
    alike = farthest(release, seen)
    prepared = Auxiliary(known, seen.exactly())
    try:
        result = attack(prepared, release, alike=alike, max_pairs=MAX_PAIRS)
    except TooManyPairs:
        return None
    truth = np.arange(network.size(seen.node_type))
    return float(right(result, truth, len(result.sizes) - 1).mean())
