"""Say less of a network before it is published: coarser values, fewer fields."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.errors import InputError, expect_above
from telic.hin import Links, Network, Rule
from telic.hin.schema import down_to, powers_of
from telic.privacy.protected import link_types, target_type


def bin_strengths(
    network: Network, *, base: float = 2.0, links: Sequence[str] | None = None
) -> Network:
    """Replace each strength by the largest power of `base` (rounded up) that is not above it.

    If the schema says that strengths seen later may differ by a tolerance, it says in the release
    that they are in powers, so that 7 and 9 still match: they are 4 and 8.

    Raises
    ------
    InputError
        If `base` is less than 1.001: such powers tell nearly all numbers apart; or if strengths
        with a tolerance are in powers of another base already.
    """
    built = dict(network.links)
    types = {link.name: link for link in network.schema.links}
    powers = powers_of(base)
    for name in link_types(network.schema, links):
        old, rule = built[name], types[name].strength
        if old.strength is not None:
            floor = down_to(powers, old.strength)
            built[name] = Links(old.indptr, old.indices, floor.astype(np.int32))
            if rule is not None and rule.kind == "tolerance":
                if rule.powers not in (0, base):
                    raise InputError(
                        f"links of type {name!r} are in powers of {rule.powers:g} already."
                    )
                types[name] = replace(types[name], strength=replace(rule, powers=base))
    schema = replace(network.schema, links=tuple(types.values()))
    return Network(schema, network.nodes, built)


def drop_strengths(network: Network, *, links: Sequence[str] | None = None) -> Network:
    """Publish links without their strengths."""
    names = set(link_types(network.schema, links))
    types = tuple(
        replace(link, strength=None) if link.name in names else link
        for link in network.schema.links
    )
    built = {
        name: Links(old.indptr, old.indices) if name in names else old
        for name, old in network.links.items()
    }
    return Network(replace(network.schema, links=types), network.nodes, built)


def count_name(link: str) -> str:
    """Name the attribute that holds how many links of a type a node has."""
    return f"{link} count"


def link_counts(out_degree: np.ndarray, base: float) -> np.ndarray:
    """Bring numbers of links down to powers of `base`; 0 stays.

    Examples
    --------
    >>> link_counts(np.array([0, 1, 5, 64]), 2).tolist()
    [0, 1, 4, 64]
    """
    powers = np.append(0, powers_of(base))
    return powers[np.searchsorted(powers, out_degree, side="right") - 1]


def count_links(network: Network, *, links: Sequence[str], base: float = 2.0) -> Network:
    """Publish of each node how many links of a type it has, in powers of `base`, instead of them.

    Raises
    ------
    InputError
        If `base` is less than 1.001, or there is an attribute of the new one's name.
    """
    nodes, rules = dict(network.nodes), dict(network.schema.nodes)
    for name in link_types(network.schema, links):
        kind, label = network.schema.link(name).source, count_name(name)
        if label in nodes[kind].column_names:
            raise InputError(f"attribute {label!r} of {kind!r} exists already. Rename it.")
        counts = link_counts(network.links[name].out_degree, base)
        nodes[kind] = nodes[kind].append_column(label, pa.array(counts))
        rules[kind] = {**rules[kind], label: Rule("at_least")}
    left = drop_links(network, links=links)
    return Network(replace(left.schema, nodes=rules), nodes, left.links)


def drop_links(network: Network, *, links: Sequence[str]) -> Network:
    """Do not publish these link types."""
    names = set(link_types(network.schema, links))
    types = tuple(link for link in network.schema.links if link.name not in names)
    kept = {link.name: network.links[link.name] for link in types}
    return Network(replace(network.schema, links=types), network.nodes, kept)


def generalise(
    network: Network, *, attribute: str, width: float, node_type: str | None = None
) -> Network:
    """Round a numeric attribute down to a multiple of `width`.

    If the schema says that values seen later may differ by a tolerance, it becomes so wide that
    they still match: 79 and 80 are 75 and 80 in fives.
    """
    node_type = target_type(network, node_type)
    expect_above(0, width=width)
    column = _attribute(network, node_type, attribute)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InputError(f"attribute {attribute!r} is {column.type}: only numbers have widths.")
    whole = pa.types.is_integer(column.type) and float(width).is_integer()
    values = pc.unique(column).drop_null()
    coarse = _multiples(values.to_numpy(zero_copy_only=False), int(width) if whole else width)
    coarse = pa.array(coarse).take(pc.index_in(column, value_set=values).combine_chunks())
    table = network.nodes[node_type]
    place = table.column_names.index(attribute)
    nodes = {**network.nodes, node_type: table.set_column(place, attribute, coarse)}
    rules = dict(network.schema.nodes[node_type])
    if attribute in rules and rules[attribute].kind == "tolerance":
        # A little more for decimals: 64.2 - 63.9 is above 0.3 by rounding.
        wide = np.ceil(rules[attribute].width / width) * width * (1 if whole else 1 + 1e-6)
        rules[attribute] = Rule("tolerance", float(min(wide, np.nextafter(2.0**63, 0))))
    schema = replace(network.schema, nodes={**network.schema.nodes, node_type: rules})
    return Network(schema, nodes, network.links)


def _multiples(values: np.ndarray, width: float) -> np.ndarray:
    """Return the largest multiples of a width that are not above each value."""
    if isinstance(width, int):
        # A table may hold numbers of 8 bits, which have few multiples.
        values = values.astype({"i": np.int64, "u": np.uint64, "f": float}[values.dtype.kind])
        with np.errstate(invalid="ignore"):
            coarse = np.where(np.isinf(values), values, values - values % width)
            coarse += 0  # not -0.0, which would be another value than 0.0
        if (coarse > values).any():
            raise InputError(f"a multiple of {width} below some values needs more than 64 bits.")
        return coarse
    with np.errstate(over="ignore"):
        quotient = values.astype(float) / width
    if (np.isinf(quotient) & np.isfinite(values.astype(float))).any():
        raise InputError(
            f"a width of {width} is too small beside some values. Choose a larger one."
        )
    near = np.round(quotient)
    # 0.3 / 0.1 is below 3 by rounding, and 6 * 0.1 above 0.6: decimals are what people mean.
    with np.errstate(invalid="ignore"):  # infinite ones stay
        apart = np.abs(quotient - near)
    same = apart <= 4 * np.finfo(float).eps * np.maximum(np.abs(quotient), 1)
    coarse = np.where(same, near, np.floor(quotient)) * width
    return np.array([float(f"{x:.15g}") + 0 for x in coarse])


def suppress(network: Network, *, attribute: str, node_type: str | None = None) -> Network:
    """Do not publish an attribute."""
    node_type = target_type(network, node_type)
    _attribute(network, node_type, attribute)
    left = {k: v for k, v in network.schema.nodes[node_type].items() if k != attribute}
    schema = replace(network.schema, nodes={**network.schema.nodes, node_type: left})
    table = network.nodes[node_type].drop_columns([attribute])
    return Network(schema, {**network.nodes, node_type: table}, network.links)


def _attribute(network: Network, node_type: str, attribute: str) -> pa.ChunkedArray:
    table = network.nodes[node_type]
    if attribute == "id" or attribute not in table.column_names:
        known = [name for name in table.column_names if name != "id"]
        raise InputError(f"attribute {attribute!r} does not exist. Attributes are {known}.")
    return table.column(attribute)
