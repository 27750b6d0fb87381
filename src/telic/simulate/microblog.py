"""A microblog like t.qq: users, four kinds of links among them, dense groups, growth.

What is fixed, and by what. The number of users and links, the numbers of distinct values in a
sample of 1,000 (gender 3, year of birth 87, tweets about 640, tags 11) and power-law degrees are
published (Section 7.6.1). The shape of the profiles is chosen so that profiles alone (n = 0) tell
as much as published: 5.4 % unique, 99.892 % reduction. Table 7.2's precision rises in proportion
to density, which a constant number of links per active member explains: `LINKS_PER_MEMBER` is the
one constant chosen by that. Nothing else looks at what links add.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import prange

from telic.errors import InputError
from telic.hin import Links, LinkType, Network, Rule, Schema, induced
from telic.hin.links import build_links
from telic.kernels import kernel
from telic.privacy.risk.views import mix
from telic.privacy.threads import threads_for

TQQ_USERS = 2_320_895
TQQ_LINKS = 57_000_000
LINK_NAMES = ("follow", "mention", "retweet", "comment")
SHARES = (0.45, 0.15, 0.2, 0.2)
"""Share of all links that each type has; [Zhang2017] does not say, these are assumed."""
LINKS_PER_MEMBER = 41.0
"""Links of an active member inside its group, over all four types."""
EXPONENT = 2.5
"""Of the power laws of out-degrees and strengths; [Zhang2017] takes 2 to 3."""
MEMBER_EXPONENT = 2.2
"""Of the out-degrees inside a dense group."""
POPULARITY = 1.6
"""The r-th most popular user draws links like r^(1/POPULARITY − 1)."""
MAX_STRENGTH = 60_000

_TAIL = 1 / (EXPONENT - 1)
_GROWING = Rule("at_least")
SCHEMA = Schema(
    {
        "user": {
            "gender": Rule("exact"),
            "yob": Rule("exact"),
            "tags": Rule("exact"),
            "tweets": _GROWING,
        }
    },
    tuple(
        LinkType(name, "user", "user", None if name == "follow" else _GROWING)
        for name in LINK_NAMES
    ),
)


@dataclass(frozen=True, slots=True)
class Community:
    """A group whose inside is dense.

    Parameters
    ----------
    density : float
        Share of possible links inside, over all types (Equation 7.6.1).
    size : int
    isolated : float, optional
        Share of members without an out-link inside; default so that active members have
        `LINKS_PER_MEMBER` each.
    """

    density: float
    size: int = 1000
    isolated: float | None = None

    def active(self) -> int:
        """Return the number of members with links inside."""
        if self.isolated is not None:
            return round(self.size * (1 - self.isolated))
        possible = self.density * len(LINK_NAMES) * self.size * (self.size - 1)
        return min(self.size, max(1, round(possible / LINKS_PER_MEMBER)))


@kernel
def uniform(seed, user, draw):
    """A number in (0, 1) that depends on the seed, the user and the draw alone."""
    x = mix(mix(np.uint64(seed) + np.uint64(user)) + np.uint64(draw))
    return (np.float64(x >> np.uint64(11)) + 0.5) * 2.0**-53


@kernel(parallel=True)
def draw_links(seed, indptr, tail, popularity, alike, place, indices, strength, kept):
    """Draw each user's targets by popularity and strengths by a power law; drop repeats."""
    n = len(indptr) - 1
    for v in prange(n):
        begin, size = indptr[v], indptr[v + 1] - indptr[v]
        packed = np.empty(size, np.int64)
        for k in range(size):
            target = place[min(int(n * uniform(seed, v, 2 * k) ** popularity), n - 1)]
            s = 1
            if alike == 0:
                s = min(int(uniform(seed, v, 2 * k + 1) ** -tail), MAX_STRENGTH)
            packed[k] = (np.int64(target) << 32) | s
        packed.sort()
        last, count = np.int64(-1), 0
        for k in range(size):
            target = packed[k] >> 32
            if target != v and target != last:
                indices[begin + count] = target
                strength[begin + count] = packed[k] & 0x7FFFFFFF
                count += 1
                last = target
        kept[v] = count


@kernel
def squeeze(indptr, kept, indices, strength):
    """Close the gaps that dropped repeats left, in place; return the new row pointers."""
    out = np.zeros(len(indptr), np.int64)
    for v in range(len(kept)):
        for k in range(kept[v]):
            indices[out[v] + k] = indices[indptr[v] + k]
            strength[out[v] + k] = strength[indptr[v] + k]
        out[v + 1] = out[v] + kept[v]
    return out


def microblog(
    *,
    users: int = 20_000,
    links: int | None = None,
    communities: Sequence[Community] = (),
    copies: bool = False,
    equal_strengths: bool = False,
    seed: int = 0,
) -> tuple[Network, list[np.ndarray]]:
    """Simulate a microblog.

    Parameters
    ----------
    users : int
    links : int, optional
        Over all four types, before those of planted groups; default t.qq's 24.6 per user.
    communities : sequence of Community
        Planted groups; they do not overlap.
    copies : bool
        Control: all four link types have the same links, so adding types must add nothing.
    equal_strengths : bool
        Control: every strength is 1, so strengths must tell nothing.
    seed : int
        Same seed, same network, at any number of threads.

    Returns
    -------
    network : Network
        One node type ``user``; ids are 0 … users − 1.
    members : list of int arrays
        Positions of each community's members, ascending.

    Examples
    --------
    >>> network, (members,) = microblog(users=3000, communities=[Community(0.01, 100)], seed=1)
    >>> network.size("user"), len(members)
    (3000, 100)
    """
    if users < 2:
        raise InputError(f"users is {users}, expected 2 or more.")
    wanted = sum(group.size for group in communities)
    if wanted > users:
        raise InputError(
            f"users is {users}, expected at least {wanted}: so many are members of communities."
        )
    for group in communities:
        for name in ("density", "isolated"):
            share = getattr(group, name)
            if share is not None and not 0 <= share <= 1:
                raise InputError(f"{name} is {share}, expected a share from 0 to 1.")
    links = round(TQQ_LINKS / TQQ_USERS * users) if links is None else links
    rng = np.random.default_rng(seed)
    place = rng.permutation(users).astype(np.int32)
    deck = rng.permutation(users)
    ends = np.cumsum([group.size for group in communities]).astype(int)
    members = [
        np.sort(deck[end - group.size : end]) for group, end in zip(communities, ends, strict=True)
    ]
    # One user is active in all types alike.
    activity = np.minimum(rng.random(users) ** -_TAIL, 3000.0)
    built: dict[str, Links] = {}
    for number, (name, share) in enumerate(zip(LINK_NAMES, SHARES, strict=True)):
        if copies and number:
            first = built["follow"]
            built[name] = Links(first.indptr, first.indices, np.ones(len(first), np.int32))
            continue
        wanted = activity * (links * share / activity.sum())
        counts = np.minimum(wanted + rng.random(users), users / 4).astype(np.int64)
        indptr = np.append(0, np.cumsum(counts))
        indices, strength = (np.empty(indptr[-1], np.int32) for _ in range(2))
        kept = np.empty(users, np.int64)
        alike = int(equal_strengths or copies)
        args = indptr, _TAIL, POPULARITY, alike, place, indices, strength, kept
        with threads_for(len(indices)):
            draw_links(int(rng.integers(2**62)), *args)
        indptr = squeeze(indptr, kept, indices, strength)
        indices, strength = indices[: indptr[-1]].copy(), strength[: indptr[-1]].copy()
        background = Links(indptr, indices, None if name == "follow" else strength)
        planted = [
            _plant(rng, group, chosen, name, equal_strengths)
            for group, chosen in zip(communities, members, strict=True)
        ]
        built[name] = _with_groups(background, members, planted)
    network = Network(SCHEMA, {"user": _profiles(rng, users, members)}, built)
    return network, members


def _profiles(rng: np.random.Generator, users: int, members: list[np.ndarray]) -> pa.Table:
    gender = rng.choice(3, users, p=[0.04, 0.56, 0.40])
    # Most are of one generation, but a sample of 1,000 shows nearly all 87 years of birth.
    spread = np.exp(-0.5 * ((np.arange(87) - 62) / 5.0) ** 2)
    yob = 1925 + rng.choice(87, users, p=0.65 * spread / spread.sum() + 0.35 / 87)
    tags = rng.choice(11, users, p=[0.4] + [0.06] * 10)
    tweets = np.minimum(rng.lognormal(4.5, 1.4, users), 3e6)
    # Who is in a dense group tweets more than the rest.
    for chosen in members:
        tweets[chosen] = np.minimum(rng.lognormal(5.3, 2.4, len(chosen)), 3e6)
    return pa.table(
        {
            "id": np.arange(users, dtype=np.int32),
            "gender": gender.astype(np.int8),
            "yob": yob.astype(np.int16),
            "tags": tags.astype(np.int8),
            "tweets": tweets.astype(np.int32),
        }
    )


def _plant(
    rng: np.random.Generator, group: Community, members: np.ndarray, name: str, equal: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw one type's links inside a group: active members link to any member."""
    size, active = group.size, group.active()
    wanted = round(group.density * size * (size - 1))
    if wanted > 0.5 * active * (size - 1):
        raise InputError(
            f"community: {active} active members of {size} cannot hold density {group.density}. "
            "Lower the density or the share of isolated members."
        )
    # Who is active, and how much, is drawn once per group: whoever mentions also retweets and
    # comments, while following is a habit of its own.
    own = np.random.default_rng([*members[:2].tolist(), size])
    deck = own.permutation(size)[:active]
    habits = np.minimum(own.random((2, active)) ** (-1 / (MEMBER_EXPONENT - 1)), 100.0)
    habit = habits[0 if name == "follow" else 1]
    taken = np.zeros((active, size), bool)
    taken[np.arange(active), deck] = True
    count = 0
    while count < wanted:
        rows = rng.choice(active, wanted - count, p=habit / habit.sum())
        columns = rng.integers(size, size=wanted - count)
        taken[rows, columns] = True
        count = int(taken.sum()) - active
    taken[np.arange(active), deck] = False
    rows, columns = np.nonzero(taken)
    strength = np.ones(len(rows)) if equal else rng.random(len(rows)) ** -_TAIL
    strength = np.minimum(strength, MAX_STRENGTH).astype(np.int32)
    return members[deck[rows]], members[columns], strength


def _with_groups(
    background: Links, members: list[np.ndarray], planted: Sequence[tuple[np.ndarray, ...]]
) -> Links:
    """Replace the background's links inside each group by the planted ones."""
    if not members:
        return background
    n = len(background.indptr) - 1
    group = np.full(n, -1, np.int32)
    for number, chosen in enumerate(members):
        group[chosen] = number
    source, target = background.sources, background.indices
    inside = (group[source] >= 0) & (group[source] == group[target])
    source = np.concatenate([source[~inside], *[part[0].astype(np.int32) for part in planted]])
    target = np.concatenate([target[~inside], *[part[1].astype(np.int32) for part in planted]])
    strength = background.strength
    if strength is not None:
        strength = np.concatenate([strength[~inside], *[part[2] for part in planted]])
    return build_links(source, target, strength, n, n)


def earlier_snapshot(
    network: Network, members: np.ndarray, *, growth: float = 0.1, seed: int = 0
) -> Network:
    """Return a group as it was before the network grew.

    Parameters
    ----------
    network : Network
        As it is now: the auxiliary network.
    members : int array
        Positions of the group.
    growth : float in [0, 1)
        Share of today's links, strength and tweets that came since; 0: nothing changed.
    seed : int
    """
    if not 0 <= growth < 1:
        raise InputError(f"growth is {growth}, expected at least 0 and less than 1.")
    rng = np.random.default_rng(seed)
    part = induced(network, {"user": members})
    table = part.nodes["user"]
    tweets = rng.binomial(table.column("tweets").to_numpy(), 1 - growth).astype(np.int32)
    table = table.set_column(table.column_names.index("tweets"), "tweets", pa.array(tweets))
    links = {}
    for name, old in part.links.items():
        amount = np.ones(len(old), np.int64) if old.strength is None else old.strength
        left = rng.binomial(amount, 1 - growth).astype(np.int32)
        keep = left > 0
        strength = None if old.strength is None else left[keep]
        n = len(members)
        links[name] = build_links(old.sources[keep], old.indices[keep], strength, n, n)
    return Network(network.schema, {"user": table}, links)
