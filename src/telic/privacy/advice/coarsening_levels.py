"""What a release can coarsen, field by field, and what each level loses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from telic.hin import Network
from telic.privacy.adversary import Adversary, label_of
from telic.privacy.anonymisers.coarsen import count_name, link_counts
from telic.privacy.anonymisers.release_steps import apply_steps
from telic.privacy.protected import attribute_codes


class Level(NamedTuple):
    """How one field is published.

    `loss` is what is lost of the field: 1 for an attribute, for ids or for strengths, 2 for links
    with their strengths. `shown` are its codes, or a link type's strengths; None: not shown.
    `counts` is how many links a node has, where that is shown instead of them.
    """

    label: str
    steps: list[dict[str, Any]]
    loss: float
    shown: np.ndarray | None = None
    published: bool = True
    counts: np.ndarray | None = None


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
    source : str
        Node type where links begin; empty for others.
    """

    name: str
    kind: str
    levels: list[Level]
    source: str = ""


def levers(network: Network, adversary: Adversary) -> list[Lever]:
    """List what can be coarsened of what the adversary sees.

    Widths for numbers, meaningless ids for known ones, bins for strengths, leaving out.
    """
    out = []
    for kind, seen in adversary.attributes.items():
        where = {} if kind == adversary.node_type else {"node_type": kind}
        for name in seen:
            levels = _attribute_levels(network, kind, name, where)
            out.append(Lever(label_of(adversary.node_type, kind, name), kind, levels))
    for kind in adversary.known_ids:
        levels = [
            Level("as they are", [], 0.0, np.arange(network.size(kind))),
            Level("replaced", [_step("replace-ids", node_type=kind)], 1.0),
        ]
        out.append(Lever(f"ids of {kind}", kind, levels))
    out += [
        Lever(
            name,
            "",
            # Counts show at once what links show one step farther: no coarsening if steps are few.
            _link_levels(network, name, rule, counted=adversary.distance is None),
            network.schema.link(name).source,
        )
        for name, rule in adversary.links.items()
    ]
    return out


def _attribute_levels(
    network: Network, kind: str, name: str, where: Mapping[str, str]
) -> list[Level]:
    column = network.nodes[kind].column(name)
    codes = attribute_codes(column)
    whole = _bits(codes)
    levels = [Level("as it is", [], 0.0, codes)]
    for width in _widths(column):
        steps = [_step("generalise", attribute=name, width=width, **where)]
        coarse = apply_steps(network, steps, node_type=kind).nodes[kind].column(name)
        shown = attribute_codes(coarse)
        lost = max(0.0, 1 - _bits(shown) / whole) if whole else 0.0
        label = f"rounded down to multiples of {width:,.6g}"
        levels.append(Level(label, steps, lost, shown))
    return [*levels, Level("not published", [_step("suppress", attribute=name, **where)], 1.0)]


def _link_levels(network: Network, name: str, rule: Any, *, counted: bool) -> list[Level]:
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
    # An attribute that has the counts' name already would be lost.
    counted &= count_name(name) not in network.nodes[network.schema.link(name).source].column_names
    for base in (2, 4, 16) if counted and len(network.links[name]) else ():
        steps = [_step("count-links", base=base, links=[name])]
        counts = link_counts(network.links[name].out_degree, base)
        lost = gone - _kept_by_counts(network, name, counts)
        label = f"as each node's number of links, by powers of {base}"
        levels.append(Level(label, steps, lost, None, False, counts))
    steps = [_step("drop-links", links=[name])]
    return [*levels, Level("not published", steps, gone, published=False)]


def _widths(column: pa.ChunkedArray) -> list[float]:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return []
    if pa.types.is_floating(column.type):
        column = column.filter(pc.is_finite(column))
    bounds = pc.min_max(column)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is None or pc.count_distinct(column).as_py() < 4:
        return []
    span = high - low
    # 5, 10, 20 and 100 times … each divides the next, so levels are nested.
    unit = 10.0 ** np.floor(np.log10(max(span / 100, 1e-9)))
    if pa.types.is_integer(column.type):
        unit = max(unit, 1.0)
    widths = [float(unit * times) for times in (5, 10, 20, 100) if unit * times <= span]
    # Steps take numbers of 64 bits, which the multiple below the lowest value is to be, too.
    most = 2**63 + low if pa.types.is_integer(column.type) and low < 0 else 2**63
    return [width for width in widths if width < most]


def _bits(values: np.ndarray | None) -> float:
    if values is None:
        return 0.0
    return float(stats.entropy(np.unique(values, return_counts=True)[1], base=2))


def _kept_by_counts(network: Network, name: str, counts: np.ndarray) -> float:
    """Share of the information about who is linked that is in how many links each node has."""
    link = network.schema.link(name)
    cells = network.size(link.source) * network.size(link.target)
    linked = len(network.links[name]) / cells
    whole = cells * float(stats.entropy([linked, 1 - linked], base=2))
    return min(1.0, len(counts) * _bits(counts) / whole) if whole else 0.0


def _step(method: str, **options: Any) -> dict[str, Any]:
    return {"method": method, **options}
