"""Which release meets a stated risk and loses least."""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from telic.errors import InputError
from telic.hin import Network, Rule, Schema
from telic.privacy.auxiliary import Auxiliary, Rules
from telic.privacy.dehin import attack
from telic.privacy.risk import Risk, risks
from telic.privacy.score import right
from telic.privacy.steps import apply_steps
from telic.privacy.target import own_links, target_type
from telic.privacy.utility import entropy

MAX_TRIED = 3000


@dataclass(frozen=True)
class Lever:
    """One thing that can be coarsened, step by step; each level is coarser than the one before.

    Parameters
    ----------
    name : str
        Attribute or link type.
    levels : list of (label, steps, loss)
        `steps` for `apply_steps`; `loss` is what is lost of this field: 1 for an attribute or for
        the strengths, 2 for links with their strengths.
    """

    name: str
    levels: list[tuple[str, list[dict[str, Any]], float]]


@dataclass(frozen=True)
class Advice:
    """A release under the stated risk.

    Parameters
    ----------
    steps : list of dict
        What to do, for `apply_steps`.
    choice : dict of str to str
        Field → what happens to it.
    loss : float
        Share of the published fields' information that is lost, in [0, 1].
    proven : bool
        Whether every cheaper combination of levels was ruled out.
    tried : int
        How many releases were judged.
    before, after : list of Risk
        By distance.
    effects : list of (field, level, risk without it, risk with it added back)
        The marginal effect of each field: of coarsening it fully in the network as it is, and of
        publishing it in full in the release.
    """

    steps: list[dict[str, Any]]
    choice: dict[str, str]
    loss: float
    proven: bool
    tried: int
    before: list[Risk] = field(repr=False)
    after: list[Risk] = field(repr=False)
    effects: list[tuple[str, str, float, float]] = field(repr=False)


def levers(network: Network, node_type: str) -> list[Lever]:
    """List what can be coarsened: widths for numbers, bins for strengths, leaving out."""
    out = []
    table = network.nodes[node_type]
    for name, rule in network.schema.nodes[node_type].items():
        if rule.kind == "ignore":
            continue
        column = table.column(name)
        steps = [
            (
                f"rounded down to multiples of {width:,.6g}",
                [_step("generalise", attribute=name, width=width)],
            )
            for width in _widths(column)
        ]
        steps.append(("not published", [_step("suppress", attribute=name)]))
        whole = entropy(column)
        levels: list[tuple[str, list[dict[str, Any]], float]] = [("as it is", [], 0.0)]
        for label, change in steps[:-1]:
            coarse = apply_steps(network, change).nodes[node_type].column(name)
            levels.append((label, change, max(0.0, 1 - entropy(coarse) / whole) if whole else 0.0))
        levels.append((*steps[-1], 1.0))
        out.append(Lever(name, levels))
    for name in own_links(network.schema, node_type):
        strength = network.links[name].strength
        levels = [("as it is", [], 0.0)]
        if strength is not None:
            for base in (2, 4, 16):
                change = [_step("bin", base=base, links=[name])]
                binned = apply_steps(network, change).links[name].strength
                lost = 1 - _bits(binned) / _bits(strength) if _bits(strength) else 0.0
                levels.append((f"strengths binned by powers of {base}", change, lost))
            levels.append(("without strengths", [_step("drop-strengths", links=[name])], 1.0))
        gone = 2.0 if strength is not None else 1.0
        levels.append(("not published", [_step("drop-links", links=[name])], gone))
        out.append(Lever(name, levels))
    return out


def advise(
    network: Network,
    *,
    max_risk: float,
    max_distance: int | None = None,
    weights: Mapping[str, float] | None = None,
    max_tried: int = MAX_TRIED,
    node_type: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Advice:
    """Search for the release with the least loss whose risk R(T) is at most `max_risk`.

    Levels are nested, so coarsening never raises risk: a release is ruled out with everything
    finer than it. Releases are tried from the cheapest up, after a greedy search has given a
    bound; if `max_tried` runs out, the greedy one is returned and `proven` is false.

    Parameters
    ----------
    network : Network
    max_risk : float in (0, 1]
    max_distance : int, optional
        How far an adversary is assumed to look; default as far as anything changes.
    weights : mapping of str to float, optional
        How much a field's loss counts; default 1.
    max_tried : int
    node_type : str, optional
    progress : callable, optional
        Told the number of releases judged so far.

    Raises
    ------
    InputError
        If even the coarsest release is above `max_risk` (fewer than 1/max_risk users).
    """
    if not 0 < max_risk <= 1:
        raise InputError(f"max_risk is {max_risk}, expected more than 0 and at most 1.")
    node_type = target_type(network, node_type)
    fields = levers(network, node_type)
    for name, weight in (weights or {}).items():
        if name not in [lever.name for lever in fields]:
            raise InputError(f"weights: {name!r} is neither an attribute nor a link type.")
        if not isinstance(weight, int | float) or not 0 <= weight < np.inf:
            raise InputError(f"weights: {name!r} is {weight!r}, expected a number >= 0.")
    search = _Search(network, node_type, fields, max_distance, max_risk, progress)
    share = {lever.name: (weights or {}).get(lever.name, 1.0) for lever in fields}
    losses = [[share[lever.name] * level[2] for level in lever.levels] for lever in fields]
    whole = sum(part[-1] for part in losses) or 1.0
    top = tuple(len(lever.levels) - 1 for lever in fields)
    if not search.passes(top):
        raise InputError(
            f"max_risk {max_risk} cannot be met: even with nothing but the ids published, risk is "
            f"1/{network.size(node_type)}. Publish more users or accept more risk."
        )
    chosen = _greedy(search, top, losses)
    bound = sum(part[level] for part, level in zip(losses, chosen, strict=True))
    better, proven = _cheapest(search, top, losses, bound, max_tried)
    chosen = better or chosen
    steps = [
        step for lever, level in zip(fields, chosen, strict=True) for step in lever.levels[level][1]
    ]
    loss = sum(part[level] for part, level in zip(losses, chosen, strict=True)) / whole
    none = (0,) * len(fields)
    effects = []
    for i, lever in enumerate(fields):
        without = (*none[:i], top[i], *none[i + 1 :])
        added = (*chosen[:i], 0, *chosen[i + 1 :])
        label = lever.levels[chosen[i]][0]
        effects.append((lever.name, label, search.risk(without), search.risk(added)))
    return Advice(
        steps=steps,
        choice={lever.name: lever.levels[c][0] for lever, c in zip(fields, chosen, strict=True)},
        loss=loss,
        proven=proven,
        tried=len(search.known),
        before=search.by_distance(none),
        after=search.by_distance(chosen),
        effects=effects,
    )


class _Search:
    def __init__(
        self, network: Network, node_type: str, fields: list[Lever], max_distance: int | None,
        max_risk: float, progress: Callable[[int], None] | None,
    ) -> None:  # fmt: skip
        self.network, self.node_type, self.fields = network, node_type, fields
        self.max_distance, self.max_risk, self.progress = max_distance, max_risk, progress
        self.known: dict[tuple[int, ...], float] = {}
        self.failed: list[np.ndarray] = []

    def by_distance(self, choice: tuple[int, ...]) -> list[Risk]:
        steps = [
            step for lever, level in zip(self.fields, choice, strict=True)
            for step in lever.levels[level][1]
        ]  # fmt: skip
        release = apply_steps(self.network, steps)
        names = own_links(release.schema, self.node_type)
        return list(risks(release, links=[names], max_distance=self.max_distance,
                          node_type=self.node_type))  # fmt: skip

    def risk(self, choice: tuple[int, ...]) -> float:
        if choice not in self.known:
            self.known[choice] = self.by_distance(choice)[-1].risk
            if self.progress:
                self.progress(len(self.known))
        return self.known[choice]

    def passes(self, choice: tuple[int, ...]) -> bool:
        """Judge a release, unless a coarser one has failed already."""
        levels = np.array(choice)
        if choice not in self.known and any((levels <= other).all() for other in self.failed):
            return False
        if self.risk(choice) <= self.max_risk:
            return True
        self.failed.append(levels)
        return False


def _greedy(search: _Search, top: tuple[int, ...], losses: list[list[float]]) -> tuple[int, ...]:
    """From the coarsest release, refine whatever saves most while the risk allows it."""
    choice = top
    while True:
        options = []
        for i, level in enumerate(choice):
            for finer in range(level):
                saved = losses[i][level] - losses[i][finer]
                options.append((-saved, i, finer))
        for saved, i, finer in sorted(options):
            refined = (*choice[:i], finer, *choice[i + 1 :])
            if saved < 0 and search.passes(refined):
                choice = refined
                break
        else:
            return choice


def _cheapest(
    search: _Search, top: tuple[int, ...], losses: list[list[float]], bound: float, limit: int
) -> tuple[tuple[int, ...] | None, bool]:
    """Try releases by rising loss below `bound`; say whether all of them were ruled out."""
    start = []
    for i, most in enumerate(top):
        level = 0
        # With all else gone this field must be at least this coarse.
        while level < most and not search.passes((*top[:i], level, *top[i + 1 :])):
            level += 1
        start.append(level)
    base = tuple(start)
    heap = [(sum(part[level] for part, level in zip(losses, base, strict=True)), base, 0)]
    looked = 0
    while heap:
        loss, choice, least = heapq.heappop(heap)
        if loss >= bound - 1e-12:
            return None, True
        if search.passes(choice):
            return choice, True
        looked += 1
        if len(search.known) > limit or looked > 100 * limit:
            return None, False
        for i in range(least, len(top)):
            if choice[i] < top[i]:
                coarser = (*choice[:i], choice[i] + 1, *choice[i + 1 :])
                step = losses[i][choice[i] + 1] - losses[i][choice[i]]
                heapq.heappush(heap, (loss + step, coarser, i))
    return None, True


def _widths(column: pa.ChunkedArray) -> list[float]:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return []
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None or pc.count_distinct(column).as_py() < 4:
        return []
    span = high - low
    # 5, 10, 20 and 100 times … each divides the next, so levels are nested.
    unit = 10.0 ** np.floor(np.log10(max(span / 100, 1e-9)))
    if pa.types.is_integer(column.type):
        unit = max(unit, 1.0)
    return [float(unit * times) for times in (5, 10, 20, 100) if unit * times <= span]


def _bits(values: np.ndarray | None) -> float:
    if values is None:
        return 0.0
    return float(stats.entropy(np.unique(values, return_counts=True)[1], base=2))


def _step(method: str, **options: Any) -> dict[str, Any]:
    return {"method": method, **options}


def confirm(network: Network, advice: Advice, *, node_type: str | None = None) -> float:
    """Attack the advised release with the whole network, coarsened alike, as auxiliary.

    The attacker knows everything exactly: nothing has grown in between.

    Returns
    -------
    float
        Share of users found, at the farthest distance judged.
    """
    node_type = target_type(network, node_type)
    release = apply_steps(network, advice.steps)
    strict = {name: Rule("exact") for name in release.schema.nodes[node_type]}
    types = tuple(
        link if link.strength is None else replace(link, strength=Rule("exact"))
        for link in release.schema.links
    )
    schema = Schema({**release.schema.nodes, node_type: strict}, types)
    published = Network(schema, release.nodes, release.links)
    auxiliary = Auxiliary(published, Rules.of(published, node_type=node_type), node_type=node_type)
    distance = advice.after[-1].distance
    result = attack(auxiliary, published, max_distance=distance)
    truth = np.arange(network.size(node_type))
    return float(right(result, truth, distance).mean())
