"""Privacy risk of a network that is to be published: who is alike, seen n links far."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit, prange

from telic.errors import InputError
from telic.hin import Network
from telic.privacy.target import attribute_codes, own_links, subsets, target_type
from telic.privacy.threads import threads_for

_NO_STRENGTH = np.empty(0, np.int32)


@njit(cache=True, nogil=True, inline="always")
def mix(x):
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = np.uint64(x)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True, parallel=True)
def add_neighbour_hashes(indptr, indices, strength, salt, hashes, total):
    """Add, for each node, the hashes of its out-neighbours mixed with strength and link type."""
    for v in prange(len(total)):
        acc = np.uint64(0)
        for e in range(indptr[v], indptr[v + 1]):
            s = np.uint64(strength[e]) if len(strength) else np.uint64(0)
            acc += mix(hashes[indices[e]] + salt * (s + np.uint64(1)))
        total[v] += acc


@njit(cache=True, nogil=True)
def mix_all(values):
    """Scramble every value in place."""
    for v in range(len(values)):
        values[v] = mix(values[v])


@dataclass(frozen=True)
class Risk:
    """Privacy risk for one set of link types at one distance (Definitions 7.4.1 and 7.4.2).

    Parameters
    ----------
    links : tuple of str
    distance : int
        Links looked at lead at most this far.
    risk : float
        R(T), in [0, 1]: mean of l(t)/k(t).
    cardinality : int
        C(T): number of distinct values.
    unique : float
        Share of users with k(t) = 1.
    hashes : uint64 array, shape (n,)
        Equal for users that look alike.
    """

    links: tuple[str, ...]
    distance: int
    risk: float
    cardinality: int
    unique: float
    hashes: np.ndarray = field(repr=False)

    def group_sizes(self) -> np.ndarray:
        """Return k(t) of every user: how many look like it, itself included."""
        return group_sizes(self.hashes)

    def k_histogram(self) -> dict[int, int]:
        """Return how many users have each k(t)."""
        k, users = np.unique(self.group_sizes(), return_counts=True)
        return dict(zip(k.tolist(), users.tolist(), strict=True))

    def worst(self, count: int, loss: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the `count` users at the highest risk l(t)/k(t)."""
        risks = (1.0 if loss is None else loss) / self.group_sizes()
        return np.argsort(-risks, kind="stable")[:count]


def group_sizes(values: np.ndarray) -> np.ndarray:
    """Return, for every value, how often it occurs: k(t)."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return counts[inverse]


def tuple_risk(values: np.ndarray, loss: np.ndarray | None = None) -> float:
    """Privacy risk R(T) of a table whose tuples are given as codes (Definition 7.4.2).

    Parameters
    ----------
    values : array, shape (n,)
    loss : float array in [0, 1], shape (n,), optional
        l(t): what a user has to lose. Default 1, which gives C(T)/N (Theorem 7.4.4).

    Examples
    --------
    k-anonymity calls both of these 1-anonymous once one odd tuple is added (Section 7.4.2):

    >>> import numpy as np
    >>> t1000 = np.append(np.zeros(1000, int), 1)
    >>> t2 = np.append(np.repeat(np.arange(500), 2), 500)
    >>> round(tuple_risk(t1000) * 1001), round(tuple_risk(t2) * 1001)
    (2, 501)
    """
    if not len(values):
        raise InputError("risk of an empty table is not defined: give at least one tuple.")
    return float(np.mean((1.0 if loss is None else loss) / group_sizes(values)))


def check_loss(loss: np.ndarray | None, size: int) -> np.ndarray | None:
    """Return the loss as floats after checking its shape and its range."""
    if loss is None:
        return None
    loss = np.asarray(loss, float)
    if loss.shape != (size,) or not ((loss >= 0) & (loss <= 1)).all():
        raise InputError(f"loss needs {size} numbers between 0 and 1, one per user.")
    return loss


def profile_hashes(
    network: Network, node_type: str, attributes: Sequence[str] | None = None
) -> np.ndarray:
    """Hash what each profile shows: the named attributes, or all that the schema does not ignore.

    Values count as different unless they are equal, whatever the attribute's rule: the table that
    is judged and the one it is compared with are of the same moment.
    """
    rules = network.schema.nodes[node_type]
    if attributes is None:
        attributes = [name for name, rule in rules.items() if rule.kind != "ignore"]
    table = network.nodes[node_type]
    out = np.zeros(table.num_rows, np.uint64)
    for name in attributes:
        if name not in table.column_names or name == "id":
            known = [column for column in table.column_names if column != "id"]
            raise InputError(f"attribute {name!r} does not exist. Attributes are {known}.")
        out += attribute_codes(table.column(name)).astype(np.uint64) + np.uint64(1)
        mix_all(out)
    mix_all(out)
    return out


def risks(
    network: Network,
    *,
    links: Sequence[Sequence[str]] | None = None,
    max_distance: int | None = None,
    attributes: Sequence[str] | None = None,
    loss: np.ndarray | Callable[[Network], np.ndarray] | None = None,
    node_type: str | None = None,
) -> Iterator[Risk]:
    """Privacy risk for sets of link types and distances n = 0, 1, … (Section 7.4).

    Two users look alike at distance n if their profiles are equal and their out-links lead, type
    by type and strength by strength, to users that look alike at distance n − 1. Each user's view
    is hashed to 64 bits by order-free sums, so the cost is one pass over the links per distance;
    two different views collide with probability about N²/2⁶⁵.

    Parameters
    ----------
    network : Network
    links : sequence of sequences of str, optional
        The sets of link types to judge; default every non-empty subset.
    max_distance : int, optional
        Default: until nothing changes any more (at most N).
    attributes : sequence of str, optional
        Profile attributes that the adversary knows; default all that the schema does not ignore.
    loss : array in [0, 1] or callable, optional
        l(t), or a function of the network that returns it; default 1 for everyone.
    node_type : str, optional
        Who is to be protected; needed if the network has several node types.

    Yields
    ------
    Risk
        Set by set, distance 0 first. Without `max_distance` a set ends at the first distance that
        adds nothing.

    Examples
    --------
    >>> from telic.hin import LinkType, Schema, network_from_arrays
    >>> schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    >>> network = network_from_arrays(schema, {"user": {"id": ["a", "b", "c"]}},
    ...                               {"follow": (["a", "b"], ["b", "c"])})
    >>> [round(r.risk, 2) for r in risks(network)]
    [0.33, 0.67, 1.0, 1.0]
    """
    node_type = target_type(network, node_type)
    size = network.size(node_type)
    if not size:
        raise InputError(f"node type {node_type!r} is empty: there is nobody to protect.")
    if max_distance is not None and max_distance < 0:
        raise InputError(f"max_distance is {max_distance}, expected 0 or more.")
    own = own_links(network.schema, node_type)
    chosen = (
        subsets(own) if links is None else [own_links(network.schema, node_type, s) for s in links]
    )
    weights = check_loss(loss(network) if callable(loss) else loss, size)
    start = profile_hashes(network, node_type, attributes)
    salts = {
        name: np.uint64((2 * i + 1) * 0x9E3779B97F4A7C15 % 2**64) for i, name in enumerate(own)
    }

    def spread(name: str, hashes: np.ndarray, total: np.ndarray) -> None:
        edges = network.links[name]
        strength = _NO_STRENGTH if edges.strength is None else edges.strength
        args = edges.indptr, edges.indices, strength, salts[name], hashes, total
        with threads_for(len(edges)):
            add_neighbour_hashes(*args)

    # At distance 1 the sum over a set of link types is the sum of the types' sums.
    first: dict[str, np.ndarray] = {}
    base = _judge((), 0, start, weights)
    for names in chosen:
        hashes = start
        last = Risk(tuple(names), 0, base.risk, base.cardinality, base.unique, start)
        yield last
        for distance in range(1, (size if max_distance is None else max_distance) + 1):
            total = start.copy()
            for name in names:
                if distance > 1:
                    spread(name, hashes, total)
                    continue
                if name not in first:
                    first[name] = np.zeros(size, np.uint64)
                    spread(name, start, first[name])
                total += first[name]
            mix_all(total)
            hashes = total
            before, last = last, _judge(tuple(names), distance, hashes, weights)
            yield last
            if max_distance is None and last.cardinality == before.cardinality:
                break


def _judge(
    links: tuple[str, ...], distance: int, hashes: np.ndarray, loss: np.ndarray | None
) -> Risk:
    ordered = np.sort(hashes)
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    counts = np.diff(np.append(starts, len(ordered)))
    mean = len(starts) / len(hashes)
    if loss is not None:
        mean = float(np.mean(loss / group_sizes(hashes)))
    return Risk(
        links, distance, mean, len(starts), float((counts == 1).sum() / len(hashes)), hashes
    )


def growth_bounds(
    network: Network,
    distance: int,
    *,
    attributes: Sequence[str] | None = None,
    node_type: str | None = None,
) -> tuple[float, float]:
    """Return log₁₀ of the bounds (7.4.2) and (7.4.3) on the expected cardinality, up to constants.

    They assume independent values, in-degree at most 1 and power-law out-degrees, so they say how
    fast risk could grow, not how large it is.

    Parameters
    ----------
    network : Network
    distance : int
        n ≥ 1.
    attributes, node_type
        As in `risks`.

    Returns
    -------
    lower, upper : float
        2ⁿ log₁₀(C(E)·C(L)ⁿ) and Nⁿ log₁₀(C(E)·C(L)ⁿ).
    """
    node_type = target_type(network, node_type)
    entity = len(np.unique(profile_hashes(network, node_type, attributes)))
    log_links = 0.0
    for name in own_links(network.schema, node_type):
        strength = network.links[name].strength
        log_links += np.log10(1 if strength is None else max(len(np.unique(strength)), 1))
    value = float(np.log10(entity) + distance * log_links)
    return 2.0**distance * value, float(network.size(node_type)) ** distance * value
