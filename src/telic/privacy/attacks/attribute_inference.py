"""What can be learnt of a person's attribute, by finding the row, and without finding it."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import t as student

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
SHUFFLES = 20, 200
"""Least and most shuffles of the control: as many as make a million guesses, within these."""


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
        The mean gain where the published values are shuffled among the users, again and again, with
        its 95 % interval over the shuffles: any gain there would be the method's own. Of one
        shuffle chance would decide, since all who look the same share a guess.
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
    guesses the commonest value among the rows that each of `WAYS` names. Where there is no such
    row, it is the commonest value of all. Of equally common ones it is one at random.

    Parameters
    ----------
    release : Network
    attribute : str
        Of the protected node type, published.
    adversary : Adversary, optional
        Default one who sees everything.
    seed : int
        For the control's shuffles.

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
    counts = np.bincount(truth)
    commonest = (counts == counts.max())[truth] / (counts == counts.max()).sum()

    def gained(shown: np.ndarray) -> dict[str, np.ndarray]:
        hits = _hits(truth, shown, alike, linked, commonest)
        return {way: each - commonest for way, each in hits.items()}

    gains = {way: (float(d.mean()), *difference_interval(d)) for way, d in gained(truth).items()}
    rng, (least, most) = np.random.default_rng(seed), SHUFFLES
    shuffles = int(np.clip(10**6 // len(truth), least, most))
    means = [
        {way: d.mean() for way, d in gained(rng.permutation(truth)).items()}
        for _ in range(shuffles)
    ]
    control = {way: _mean_interval(np.array([one[way] for one in means])) for way in gains}
    return Inference(attribute, float(commonest.mean()), gains, control)


def _mean_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean and its 95 % interval by Student's t."""
    half = float(student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)
    mean = float(values.mean())
    return mean, mean - half, mean + half


def _linked(release: Network, adversary: Adversary) -> csr_array:
    """Return with whom else each user is linked, as far as the adversary sees it: 1 for each."""
    n = release.size(adversary.node_type)
    around = csr_array((n, n), dtype=np.int64)
    for name in own_links(release.schema, adversary.node_type):
        if name in adversary.links:
            matrix = release.links[name].matrix(n)
            around = around + (matrix + matrix.T if adversary.in_links else matrix)
    graph = csr_array(csr_array(around) > 0).astype(float)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


def _hits(
    truth: np.ndarray,
    shown: np.ndarray,
    alike: np.ndarray,
    linked: csr_array,
    commonest: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return each user's chance to be guessed rightly, by way; `alike` numbers who look the same.

    Without the person's own row a value has one less. If it was alone the commonest, it stays so,
    beside those that had one less.
    """
    n, values = len(truth), int(truth.max()) + 1
    told = csr_array((np.ones(n), (alike, shown)), (int(alike.max()) + 1, values))
    rows = _Votes(told)
    most, ties, next_most = rows.most[alike], rows.ties[alike], rows.having(rows.most - 1)[alike]
    asked, own = rows.of(alike, truth), rows.of(alike, shown)
    row = (asked == most) / ties
    alone = (own == most) & (ties == 1)
    ties = np.where(alone, 1 + next_most, ties - (own == most))
    right = asked - (truth == shown) == most - alone
    others = np.where(rows.size[alike] > 1, right / np.maximum(ties, 1), commonest)
    shown_by = csr_array((np.ones(n), (np.arange(n), shown)), (n, values))
    friends = _Votes(csr_array(linked @ shown_by))
    right = friends.of(np.arange(n), truth) == friends.most
    linked_hits = np.where(friends.size > 0, right / np.maximum(friends.ties, 1), commonest)
    return {"row": row, "alike": others, "linked": linked_hits}


class _Votes:
    """How often each row of a sparse matrix names each value."""

    def __init__(self, counts: csr_array) -> None:
        counts.sum_duplicates()
        self._row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        self._key = self._row * counts.shape[1] + counts.indices
        self._count, self._values = counts.data, counts.shape[1]
        self.size = np.bincount(self._row, self._count, counts.shape[0])
        self.most = counts.max(axis=1).toarray().ravel()
        self.ties = self.having(self.most)
        """How many values each row names most often."""

    def having(self, times: np.ndarray) -> np.ndarray:
        """Count the values that each row names so many times, but those that it never names."""
        return np.bincount(self._row[self._count == times[self._row]], minlength=len(times))

    def of(self, row: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Return how often rows name values."""
        wanted = row * self._values + value
        at = np.searchsorted(self._key, wanted).clip(max=max(len(self._key) - 1, 0))
        found = self._key[at] == wanted if len(self._key) else np.zeros(len(wanted), bool)
        return np.where(found, self._count[at] if len(self._key) else 0.0, 0.0)
