"""Which release meets a stated risk and loses least."""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from telic.errors import InputError
from telic.hin import Links, Network
from telic.privacy.adversary import Adversary
from telic.privacy.auxiliary import Auxiliary, TooManyPairs
from telic.privacy.dehin import attack
from telic.privacy.merged_types import flatten
from telic.privacy.release_steps import apply_steps
from telic.privacy.risk import Risk, risks
from telic.privacy.score import right
from telic.privacy.target import attribute_codes
from telic.privacy.utility import entropy
from telic.privacy.views import (
    WHOLE_STEPS,
    Layer,
    Neighbourhood,
    count_kinds,
    farthest,
    layer_salt,
    profile_hashes,
    refine,
)

MAX_TRIED = 3000
MAX_WORK = 1_500_000_000
"""Nodes and links that the search looks at, all releases and distances together."""
MAX_PAIRS = 300_000_000
"""Pairs of users that the confirming attack compares at most."""


class Level(NamedTuple):
    """How one field is published.

    `loss` is what is lost of the field: 1 for an attribute, for ids or for strengths, 2 for links
    with their strengths. `shown` are its codes, or a link type's strengths; None: not shown.
    """

    label: str
    steps: list[dict[str, Any]]
    loss: float
    shown: np.ndarray | None = None
    published: bool = True


@dataclass(frozen=True)
class Lever:
    """One thing that can be coarsened, step by step; each level is coarser than the one before.

    Parameters
    ----------
    name : str
        Attribute, node type with known ids, or link type.
    kind : str
        Node type of an attribute or of ids; empty for links.
    levels : list of Level
    """

    name: str
    kind: str
    levels: list[Level]


@dataclass(frozen=True)
class Advice:
    """A release under the stated risk.

    Parameters
    ----------
    adversary : Adversary
        Against whom: what the intruder is taken to see of the network, and of the release.
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
        By distance; as it was, and the release.
    attacked : float or None
        Share of all users that the attack finds in the release, by an adversary who knows all that
        it shows exactly; None: it would compare more than `MAX_PAIRS` pairs of users. It cannot
        find more than those who are alone of their kind, ``after[-1].unique``.
    effects : list of (field, level, risk without it, risk with it added back)
        The marginal effect of each field: of coarsening it fully in the network as it is, and of
        publishing it in full in the release.
    """

    adversary: Adversary
    steps: list[dict[str, Any]]
    choice: dict[str, str]
    loss: float
    proven: bool
    tried: int
    before: list[Risk] = field(repr=False)
    after: list[Risk] = field(repr=False)
    attacked: float | None
    effects: list[tuple[str, str, float, float]] = field(repr=False)


def levers(network: Network, adversary: Adversary) -> list[Lever]:
    """List what can be coarsened of what the adversary sees.

    Widths for numbers, meaningless ids for known ones, bins for strengths, leaving out.
    """
    out = []
    for kind, seen in adversary.attributes.items():
        own = kind == adversary.node_type
        for name in seen:
            where = {} if own else {"node_type": kind}
            levels = _attribute_levels(network, kind, name, where)
            out.append(Lever(name if own else f"{kind}.{name}", kind, levels))
    for kind in adversary.known_ids:
        levels = [
            Level("as they are", [], 0.0, np.arange(network.size(kind))),
            Level("replaced", [_step("replace-ids", node_type=kind)], 1.0),
        ]
        out.append(Lever(f"ids of {kind}", kind, levels))
    out += [
        Lever(name, "", _link_levels(network, name, rule)) for name, rule in adversary.links.items()
    ]
    return out


def _attribute_levels(
    network: Network, kind: str, name: str, where: Mapping[str, str]
) -> list[Level]:
    column = network.nodes[kind].column(name)
    whole = entropy(column)
    levels = [Level("as it is", [], 0.0, attribute_codes(column))]
    for width in _widths(column):
        steps = [_step("generalise", attribute=name, width=width, **where)]
        coarse = apply_steps(network, steps, node_type=kind).nodes[kind].column(name)
        lost = max(0.0, 1 - entropy(coarse) / whole) if whole else 0.0
        label = f"rounded down to multiples of {width:,.6g}"
        levels.append(Level(label, steps, lost, attribute_codes(coarse)))
    return [*levels, Level("not published", [_step("suppress", attribute=name, **where)], 1.0)]


def _link_levels(network: Network, name: str, rule: Any) -> list[Level]:
    strength = network.links[name].strength
    if rule is None or rule.kind == "ignore":
        strength = None
    levels = [Level("as it is", [], 0.0, strength)]
    if strength is not None:
        for base in (2, 4, 16):
            steps = [_step("bin", base=base, links=[name])]
            binned = apply_steps(network, steps).links[name].strength
            lost = 1 - _bits(binned) / _bits(strength) if _bits(strength) else 0.0
            levels.append(Level(f"strengths binned by powers of {base}", steps, lost, binned))
        levels.append(Level("without strengths", [_step("drop-strengths", links=[name])], 1.0))
    gone = 2.0 if strength is not None else 1.0
    steps = [_step("drop-links", links=[name])]
    return [*levels, Level("not published", steps, gone, published=False)]


def advise(
    network: Network,
    *,
    max_risk: float,
    adversary: Adversary | None = None,
    weights: Mapping[str, float] | None = None,
    max_tried: int = MAX_TRIED,
    progress: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Search for the release with the least loss whose risk R(T) is at most `max_risk`.

    Levels are nested, so coarsening never raises risk: a release is ruled out with everything
    finer than it. Releases are tried from the cheapest up, after a greedy search has given a
    bound; if `max_tried` or `MAX_WORK` runs out, the greedy one is returned and `proven` is false.
    At last the release is attacked, by the same adversary with exact knowledge.

    Parameters
    ----------
    network : Network
    max_risk : float in (0, 1]
    adversary : Adversary, optional
        Against whom; default one who sees everything that the network contains.
    weights : mapping of str to float, optional
        How much a field's loss counts; default 1.
    max_tried : int
    progress : callable, optional
        Told what is done next, and the number of releases judged so far.

    Raises
    ------
    InputError
        If even the coarsest release is above `max_risk` (fewer than 1/max_risk users).
    """
    if not 0 < max_risk <= 1:
        raise InputError(f"max_risk is {max_risk}, expected more than 0 and at most 1.")
    adversary = Adversary.of(network) if adversary is None else adversary
    if not network.size(adversary.node_type):
        raise InputError(f"node type {adversary.node_type!r} is empty: there is nobody to protect.")
    progress("listing what can be coarsened")
    fields = levers(network, adversary)
    for name, weight in (weights or {}).items():
        if name not in [lever.name for lever in fields]:
            raise InputError(f"weights: {name!r} is neither an attribute nor a link type.")
        if not isinstance(weight, int | float) or not 0 <= weight < np.inf:
            raise InputError(f"weights: {name!r} is {weight!r}, expected a number >= 0.")
    search = _Search(network, adversary, fields, max_risk, progress)
    share = {lever.name: (weights or {}).get(lever.name, 1.0) for lever in fields}
    losses = [[share[lever.name] * level.loss for level in lever.levels] for lever in fields]
    whole = sum(part[-1] for part in losses) or 1.0
    top = tuple(len(lever.levels) - 1 for lever in fields)
    if not search.passes(top):
        raise InputError(
            f"max_risk {max_risk} cannot be met: even with nothing but the ids published, risk is "
            f"1/{network.size(adversary.node_type)}. Publish more users or accept more risk."
        )
    chosen = _greedy(search, top, losses)
    bound = sum(part[level] for part, level in zip(losses, chosen, strict=True))
    better, proven = _cheapest(search, top, losses, bound, max_tried)
    chosen = better or chosen
    steps = [step for level in search.levels(chosen) for step in level.steps]
    loss = sum(part[level] for part, level in zip(losses, chosen, strict=True)) / whole
    none = (0,) * len(fields)
    effects = []
    for i, lever in enumerate(fields):
        progress(f"what {lever.name} adds")
        without = (*none[:i], top[i], *none[i + 1 :])
        added = (*chosen[:i], 0, *chosen[i + 1 :])
        label = lever.levels[chosen[i]].label
        effects.append((lever.name, label, search.risk(without), search.risk(added)))
    progress("confirming by attack")
    found = Advice(
        adversary=adversary,
        steps=steps,
        choice={
            x.name: level.label for x, level in zip(fields, search.levels(chosen), strict=True)
        },
        loss=loss,
        proven=proven,
        tried=search.tried,
        before=_by_distance(network, adversary),
        after=_by_distance(*_released(network, adversary, steps)),
        attacked=None,
        effects=effects,
    )
    return replace(found, attacked=confirm(network, found))


def _released(
    network: Network, adversary: Adversary, steps: list[dict[str, Any]]
) -> tuple[Network, Adversary]:
    """Return the release, and what the same adversary sees of it."""
    release = apply_steps(network, steps, node_type=adversary.node_type)
    seen = replace(
        adversary,
        attributes={
            kind: {n: r for n, r in table.items() if n in release.schema.nodes[kind]}
            for kind, table in adversary.attributes.items()
        },
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


class _Search:
    """Judges releases from codes and strengths made once; stops where a distance fails."""

    def __init__(
        self,
        network: Network,
        adversary: Adversary,
        fields: list[Lever],
        max_risk: float,
        progress: Callable[[str], None],
    ) -> None:
        self.adversary, self.fields = adversary, fields
        self.max_risk, self.progress = max_risk, progress
        self.kinds = {kind: network.size(kind) for kind in adversary.attributes}
        flat = flatten(network, adversary)
        self.size, self.protected = flat.size, flat.protected
        # Reversed links with the place of each in the original, to carry any level's strengths.
        self.ways = []
        for links, _ in flat.links:
            number = Links(links.indptr, links.indices, np.arange(len(links), dtype=np.int32))
            self.ways.append((links, number.reverse(flat.size) if adversary.in_links else None))
        self.neighbourhood = lru_cache(maxsize=4)(self._neighbourhood)
        self.profiles = lru_cache(maxsize=64)(self._profiles)
        self.judged: dict[tuple[int, ...], bool] = {}
        self.failed = np.empty((0, len(fields)), np.int64)
        self.work = 0

    @property
    def tried(self) -> int:
        """How many releases were judged."""
        return len(self.judged)

    def levels(self, choice: tuple[int, ...]) -> list[Level]:
        """Return what happens to each field."""
        return [lever.levels[level] for lever, level in zip(self.fields, choice, strict=True)]

    def _profiles(self, kind: str, choice: tuple[int, ...]) -> np.ndarray:
        """Hash the profiles of one node type; `choice` holds the levels of its own fields."""
        own = [lever for lever in self.fields if lever.kind == kind]
        shown = [lever.levels[level].shown for lever, level in zip(own, choice, strict=True)]
        number = np.full(self.kinds[kind], list(self.kinds).index(kind))
        return profile_hashes(len(number), [number, *(x for x in shown if x is not None)])

    def _neighbourhood(self, choice: tuple[int, ...]) -> Neighbourhood:
        levers = [lever for lever in self.fields if not lever.kind]
        layers = []
        for number, (lever, level) in enumerate(zip(levers, choice, strict=True)):
            shown = lever.levels[level].shown
            if not lever.levels[level].published:
                continue
            out, back = self.ways[number]
            layers.append(Layer(Links(out.indptr, out.indices, shown), layer_salt(2 * number)))
            if back is not None:
                carried = None if shown is None else shown[back.strength]
                links = Links(back.indptr, back.indices, carried)
                layers.append(Layer(links, layer_salt(2 * number + 1)))
        return Neighbourhood(layers, self.size, self.adversary.joint)

    def risk(self, choice: tuple[int, ...], limit: float = np.inf) -> float:
        """Return the risk at the farthest distance, or the first one above `limit`."""
        parts = []
        for kind in self.kinds:
            own = [x for x, lever in zip(choice, self.fields, strict=True) if lever.kind == kind]
            parts.append(self.profiles(kind, tuple(own)))
        links = tuple(x for x, lever in zip(choice, self.fields, strict=True) if not lever.kind)
        start = np.concatenate(parts)
        self.work += self.size
        # Most releases fail by their profiles alone: their links need not be merged.
        found = count_kinds(start[: self.protected]) / self.protected
        if found > limit or self.adversary.distance == 0:
            return found
        around = self.neighbourhood(links)
        if not around.entries:
            return found
        for step in refine(start, around, self.adversary.distance, self.protected):
            found = step.kinds / self.protected
            self.work += (self.size + around.entries) * (step.distance <= WHOLE_STEPS)
            if found > limit:
                break
        return found

    def passes(self, choice: tuple[int, ...]) -> bool:
        """Judge a release, unless a coarser one has failed already."""
        if choice not in self.judged:
            if (np.array(choice) <= self.failed).all(axis=1).any():
                return False
            self.judged[choice] = self.risk(choice, self.max_risk) <= self.max_risk
            self.progress(f"{self.tried:,} releases judged")
            if not self.judged[choice]:
                self.failed = np.vstack([self.failed, choice])
        return self.judged[choice]


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
        if search.tried > limit or search.work > MAX_WORK or looked > 100 * limit:
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


def confirm(network: Network, advice: Advice) -> float | None:
    """Attack the advised release with the whole network, coarsened alike, as auxiliary.

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
    alike = farthest(flatten(release, seen), seen)
    prepared = Auxiliary(known, seen.exactly())
    try:
        result = attack(prepared, release, alike=alike, max_pairs=MAX_PAIRS)
    except TooManyPairs:
        return None
    truth = np.arange(network.size(seen.node_type))
    return float(right(result, truth, len(result.sizes) - 1).mean())
