"""The networks that chapter 7 is studied on: simulated, and real ones where they are at hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from telic.data.data_sets import data_folder
from telic.errors import InputError
from telic.hin import Links, LinkType, Network, Rule, Schema, induced, network_from_arrays
from telic.simulate.microblog import Community, microblog

DENSITIES = tuple(round(0.001 * i, 3) for i in range(1, 11))
DENSEST = DENSITIES[-1]


@dataclass(frozen=True)
class World:
    """An auxiliary network, and groups published from it.

    Parameters
    ----------
    name : str
    network : Network
    samples : dict of float to list of (Network, int array)
        Density → targets with their true auxiliary positions.
    risk_attributes : tuple of str
        What the risk study takes as profile.
    """

    name: str
    network: Network
    samples: Mapping[float, list[tuple[Network, np.ndarray]]]
    risk_attributes: tuple[str, ...] = ()


def simulated_world(
    *,
    users: int = 200_000,
    samples: int = 3,
    densities: Sequence[float] = DENSITIES,
    size: int = 1000,
    copies: bool = False,
    seed: int = 0,
) -> World:
    """Simulate the microblog with `samples` dense groups of each density."""
    groups = [Community(density, size) for density in densities for _ in range(samples)]
    network, members = microblog(users=users, communities=groups, copies=copies, seed=seed)
    taken: dict[float, list[tuple[Network, np.ndarray]]] = {}
    for group, chosen in zip(groups, members, strict=True):
        target = induced(network, {"user": chosen})
        taken.setdefault(group.density, []).append((target, chosen))
    name = f"simulated microblog, {users:,} users" + (" (control: copied links)" * copies)
    return World(name, network, taken, ("tags",))


@lru_cache(maxsize=1)  # of the published size, a network takes a gigabyte
def make_world(name: str, users: int = 0, samples: int = 1, seed: int = 0) -> World:
    """Make a network of the study by its name; the numbers are of the simulated ones alone."""
    if name in REAL:
        return REAL[name]()
    if name == "control":
        return simulated_world(
            users=users, samples=samples, densities=(DENSEST,), copies=True, seed=seed
        )
    return simulated_world(users=users, samples=samples, seed=seed)


def sanremo(*, users: int = 1000, share: float = 0.8, seed: int = 0) -> World:
    """Sanremo 2016: real growth. Auxiliary: all events; target: the first `share` of the time.

    The target's users are those of highest degree in its own period, with all links among them.
    Profiles are simulated, at the microblog's cardinalities, since the set has none.
    """
    events = _table("sanremo2016_events")
    until = np.quantile(events.column("ts").to_numpy(), [0, 1]) @ [1 - share, share]
    everyone = _from_events(events, None, seed)
    early = _from_events(
        events.filter(pc.less_equal(events.column("ts"), int(until))), everyone.nodes["user"], seed
    )
    degree = sum(
        links.out_degree + np.bincount(links.indices, minlength=early.size("user"))
        for links in early.links.values()
    )
    chosen = np.sort(np.argsort(-degree, kind="stable")[:users])
    target = induced(early, {"user": chosen})
    return World(
        "Sanremo 2016, real growth, simulated profiles",
        everyone,
        {0.0: [(target, chosen)]},
        ("tags",),
    )


def copenhagen() -> World:
    """Copenhagen Networks Study: calls, messages, Facebook friends of 833 people; no profile."""
    table = _table("cns_links")
    network = _from_links(table, None)
    everyone = np.arange(network.size("user"))
    return World("Copenhagen Networks Study", network, {0.0: [(network, everyone)]}, ())


def timme(*, density: float = 0.01, seed: int = 0) -> World:
    """TIMME: 583 politicians, five link types, thinned to a density; the party is the profile."""
    users = _table("timme_purep_users")
    nodes = pa.table({"id": users.column("user"), "party": users.column("party")})
    links = _table("timme_purep_links")
    keep = np.random.default_rng(seed).random(links.num_rows) < density / 0.072
    network = _from_links(links.filter(pa.array(keep)), nodes, without_strength=("follow",))
    everyone = np.arange(network.size("user"))
    return World(
        f"TIMME thinned to {density}", network, {density: [(network, everyone)]}, ("party",)
    )


def _table(name: str) -> pa.Table:
    file = data_folder() / "hin" / f"{name}.parquet"
    if not file.is_file():
        raise InputError(f"{file}: not found. Set TELIC_DATA to the folder of real data sets.")
    return pq.ParquetFile(file).read()


def _from_links(
    table: pa.Table, nodes: pa.Table | None, without_strength: Sequence[str] = ()
) -> Network:
    ends = np.unique(np.concatenate([table.column(c).to_numpy() for c in ("src", "dst")]))
    nodes = pa.table({"id": ends}) if nodes is None else nodes
    names = sorted(pc.unique(table.column("link").cast(pa.string())).to_pylist())
    types, links = [], {}
    for name in names:
        part = table.filter(pc.equal(table.column("link").cast(pa.string()), name))
        counted = part.group_by(["src", "dst"]).aggregate([("weight", "sum")])
        plain = name in without_strength or pc.max(counted.column("weight_sum")).as_py() == 1
        types.append(LinkType(name, "user", "user", None if plain else Rule("at_least"), True))
        links[name] = tuple(counted.column(c) for c in ("src", "dst", "weight_sum"))
    attributes = {name: Rule("exact") for name in nodes.column_names if name != "id"}
    schema = Schema({"user": attributes}, tuple(types))
    return network_from_arrays(schema, {"user": nodes}, links)


def _from_events(events: pa.Table, nodes: pa.Table | None, seed: int) -> Network:
    table = pa.table(
        {
            "link": events.column("link"),
            "src": events.column("src"),
            "dst": events.column("dst"),
            "weight": pa.array(np.ones(events.num_rows, np.int64)),
        }
    )
    if nodes is None:
        bare = _from_links(table, None)
        size = bare.size("user")
        profile = microblog(users=size, links=size, seed=seed)[0].nodes["user"]
        nodes = profile.set_column(0, "id", bare.ids("user").cast(pa.int32()))
    network = _from_links(table, nodes)
    rules = dict(network.schema.nodes["user"])
    rules["tweets"] = Rule("at_least")
    types = tuple(replace(link, strength=Rule("at_least")) for link in network.schema.links)
    links = {}
    for name, old in network.links.items():
        ones = np.ones(len(old), np.int32)
        links[name] = Links(old.indptr, old.indices, ones if old.strength is None else old.strength)
    return Network(Schema({"user": rules}, types), network.nodes, links)


REAL = {"sanremo": sanremo, "copenhagen": copenhagen, "timme": timme}
