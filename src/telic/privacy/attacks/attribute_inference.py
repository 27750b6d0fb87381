"""What can be learnt of a person's attribute, by finding the row, and without finding it."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from telic.errors import InputError
from telic.evaluate.paired import difference_interval
from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.protected import attribute_codes, own_links
from telic.privacy.risk.views import farthest

WAYS = {
    "row": "the person's row and those that look the same",
    "alike": "the others who look the same",
    "linked": "those whom the person is linked with",
}
"""From what the intruder guesses; the last two leave out the person's own row."""


@dataclass(frozen=True)
class Inference:
    """How often an attribute is guessed rightly, beyond what guessing the commonest value gives.

    Parameters
    ----------
    attribute : str
    baseline : float
        Share of the users who have the commonest value.
    gains : dict of str to (gain, low, high)
        By `WAYS`: the share guessed rightly minus the baseline, with its 95 % interval over users.
    control : dict of str to (gain, low, high)
        The same where the published values are shuffled among the users: any gain there would be
        the method's own.
    """

    attribute: str
    baseline: float
    gains: dict[str, tuple[float, float, float]]
    control: dict[str, tuple[float, float, float]]


def inference(
    release: Network, attribute: str, *, adversary: Adversary | None = None, seed: int = 0
) -> Inference:
    """Guess an attribute of every user from a release that publishes it.

    The intruder knows of a person everything that the adversary sees but this attribute, and
    guesses the commonest value among the rows that each of `WAYS` names; of equally common ones,
    one at random. Where there is no such row, it is the commonest value of all.

    Parameters
    ----------
    release : Network
    attribute : str
        Of the protected node type, published.
    adversary : Adversary, optional
        Default one who sees everything.
    seed : int
        For the control's shuffle.

    Examples
    --------
    Two groups, told apart by city, in which everybody votes alike:

    >>> from telic.hin import Schema, network_from_arrays
    >>> fields = {"city": "exact", "vote": "exact"}
    >>> schema = Schema.parse({"nodes": {"user": {"attributes": fields}}, "links": []})
    >>> people = {"id": range(6), "city": [1, 1, 1, 2, 2, 2], "vote": [0, 0, 0, 1, 1, 1]}
    >>> network = network_from_arrays(schema, {"user": people}, {})
    >>> inference(network, "vote").gains["alike"][0]
    0.5
    """
    adversary = Adversary.of(release) if adversary is None else adversary
    kind = adversary.node_type
    if attribute == "id" or attribute not in release.nodes[kind].column_names:
        known = [name for name in release.nodes[kind].column_names if name != "id"]
        raise InputError(f"attribute {attribute!r} is not published. Attributes are {known}.")
    truth = attribute_codes(release.nodes[kind].column(attribute))
    if not len(truth):
        raise InputError(f"node type {kind!r} is empty: there is nobody to guess of.")
    left = {name: rule for name, rule in adversary.attributes[kind].items() if name != attribute}
    blind = replace(adversary, attributes={**adversary.attributes, kind: left})
    view = farthest(release, blind)[: len(truth)]
    alike = np.unique(view, return_inverse=True)[1]
    linked = _linked(release, adversary)
    commonest = (truth == np.bincount(truth).argmax()).astype(float)
    shuffled = np.random.default_rng(seed).permutation(truth)
    gains, control = (
        {
            way: (float((hits - commonest).mean()), *difference_interval(hits - commonest))
            for way, hits in _hits(truth, shown, alike, linked, commonest).items()
        }
        for shown in (truth, shuffled)
    )
    return Inference(attribute, float(commonest.mean()), gains, control)


def _linked(release: Network, adversary: Adversary) -> csr_array:
    """Return with whom each user is linked, as far as the adversary sees it."""
    n = release.size(adversary.node_type)
    around = csr_array((n, n), dtype=np.int64)
    for name in own_links(release.schema, adversary.node_type):
        if name in adversary.links:
            matrix = release.links[name].matrix(n)
            around = around + (matrix + matrix.T if adversary.in_links else matrix)
    return csr_array(around)


def _hits(
    truth: np.ndarray,
    shown: np.ndarray,
    alike: np.ndarray,
    linked: csr_array,
    commonest: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return each user's chance to be guessed rightly, by way."""
    row, others = np.empty(len(truth)), commonest.copy()
    order = np.argsort(alike, kind="stable")
    for members in np.split(order, np.cumsum(np.bincount(alike))[:-1]):
        values, own = np.unique(shown[members], return_inverse=True)
        counts = np.bincount(own)
        asked = np.searchsorted(values, truth[members]).clip(max=len(values) - 1)
        is_there = values[asked] == truth[members]
        most = counts == counts.max()
        row[members] = np.where(is_there & most[asked], 1 / most.sum(), 0.0)
        if len(members) > 1:
            pairs, back = np.unique(
                np.stack([own, np.where(is_there, asked, -1)]), axis=1, return_inverse=True
            )
            left = counts - np.eye(len(counts), dtype=int)[pairs[0]]
            others[members] = _guessed(left, pairs[1])[back.ravel()]
    friends = commonest.copy()
    graph = csr_array(linked > 0).astype(float)
    graph.setdiag(0)
    graph.eliminate_zeros()
    values = shown.max(initial=0) + 1
    told = csr_array((np.ones(len(shown)), (np.arange(len(shown)), shown)), (len(shown), values))
    votes = csr_array(graph @ told)
    for start in range(0, len(truth), 2000):
        rows = np.arange(start, min(start + 2000, len(truth)))
        counts = votes[rows].toarray()
        some = counts.any(axis=1)
        friends[rows[some]] = _guessed(counts[some], truth[rows[some]])
    return {"row": row, "alike": others, "linked": friends}


def _guessed(counts: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Give the chance that the commonest value of each row is the one asked for (−1: not there)."""
    best = counts.max(axis=1)
    mine = np.where(asked >= 0, counts[np.arange(len(asked)), asked], -1)
    return np.where(mine == best, 1 / (counts == best[:, None]).sum(axis=1), 0.0)
