"""Random links that are not there yet, and fewer of those that are."""

import numpy as np

from telic.hin import Links, Network
from telic.hin.links import build_links


def kept_links(old: Links, keep: np.ndarray, columns: int) -> Links:
    """Keep some of the links."""
    strength = None if old.strength is None else old.strength[keep]
    return build_links(old.sources[keep], old.indices[keep], strength, len(old.indptr) - 1, columns)


def more_links(
    old: Links, source: np.ndarray, target: np.ndarray, strength: np.ndarray, columns: int
) -> Links:
    """Add links to those that are there; strengths count where these have some."""
    source, target, strength = (x.astype(np.int32) for x in (source, target, strength))
    return build_links(
        np.append(old.sources, source),
        np.append(old.indices, target),
        None if old.strength is None else np.append(old.strength, strength),
        len(old.indptr) - 1,
        columns,
    )


def real_strengths(old: Links, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw strengths of links that are there, 1 if there is none."""
    if old.strength is None:
        return np.ones(size, np.int32)
    return rng.choice(old.strength if len(old) else np.ones(1, np.int32), size)


def add_random_links(
    network: Network, name: str, missing: np.ndarray, rng: np.random.Generator
) -> Links:
    """Add `missing[v]` links from each node to random others, with strengths of real links."""
    link, old = network.schema.link(name), network.links[name]
    n, columns = network.size(link.source), network.size(link.target)
    taken = old.sources * np.int64(columns) + old.indices
    if link.source == link.target and not link.self_links:
        loops = np.setdiff1d(np.arange(n) * np.int64(n + 1), taken, assume_unique=True)
        taken = _merge(taken, loops)
    new = _draw_free(taken, missing, columns, rng)
    rows, ends = np.divmod(new, max(columns, 1))
    return more_links(old, rows, ends, real_strengths(old, len(new), rng), columns)


def _draw_free(
    taken: np.ndarray, missing: np.ndarray, columns: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw `missing[v]` places of row v, v·columns …, not in the sorted `taken`; all if fewer."""
    # Draws that hit a taken place are repeated; where few are free, they are listed instead.
    n = len(missing)
    used = np.bincount(taken // max(columns, 1), minlength=n)
    left = np.minimum(missing, columns - used)
    crowded = np.flatnonzero((left > 0) & (used + left > columns // 2))
    drawn = [np.empty(0, np.int64)]
    for v in crowded:
        free = np.ones(columns, bool)
        inside = slice(*np.searchsorted(taken, [v * columns, (v + 1) * columns]))
        free[taken[inside] - v * columns] = False
        drawn.append(v * columns + rng.choice(np.flatnonzero(free), left[v], replace=False))
    left[crowded] = 0
    while left.any():
        source = np.repeat(np.arange(n, dtype=np.int64), left)
        new = np.sort(source * columns + rng.integers(columns, size=len(source)))
        place = np.searchsorted(taken, new)
        fresh = np.append(taken, -1)[place] != new
        fresh[1:] &= new[1:] != new[:-1]
        new = new[fresh]
        drawn.append(new)
        taken = _merge(taken, new)
        left -= np.bincount(new // columns, minlength=n)
    return np.concatenate(drawn)


def _merge(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sort(np.concatenate([a, b]), kind="stable")  # quick on two sorted runs
