"""Each number that a method takes is taken up to its limits, and refused beyond them."""

import math

import numpy as np
import pytest
from scipy import sparse

from telic.errors import InputError
from telic.simulate.hospital_families import simulate_family
from telic.specialty.discovery.by_seeds import group_by_seeds
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.gibbs_lda import MAX_TOPICS, PRIORS, GibbsLDA
from telic.specialty.discovery.pathselclus import fit_pathselclus
from telic.specialty.recognition.recognise import recognise

COUNTS = sparse.csr_array(np.random.default_rng(0).integers(0, 3, (12, 6)))
ONE = sparse.csr_array(([1], ([0], [0])), shape=COUNTS.shape)
LABELS = np.repeat(["a", "b", "c"], 4)


def lda(counts=COUNTS, **options):
    return GibbsLDA(**{"n_topics": 2, "max_iter": 2, "random_state": 0} | options).fit(counts)


def clusters(seeds=-1, n_clusters=2, counts=COUNTS, **options):
    some = np.full(12, -1)
    some[0] = seeds
    options = {"paths": {"p": counts}, "restarts": 1, "finished": 1} | options
    return fit_pathselclus(seeds=some, n_clusters=n_clusters, **options)


def classes(labels):
    return recognise(COUNTS, np.array(labels), method="Naive", every=False)


LIMITS = {
    "topics": (lambda x: lda(n_topics=x), [1, 7, MAX_TOPICS], [0, 2.0, MAX_TOPICS + 1]),
    "rounds": (lambda x: lda(max_iter=x), [1], [0, 1.5]),
    "threads of LDA": (lambda x: lda(n_jobs=x), [1, 2], [0]),
    "alpha": (lambda x: lda(alpha=x), PRIORS, [0.0, 1e-320, -1.0, math.inf, math.nan]),
    "beta": (lambda x: lda(beta=x), PRIORS, [0.0, 1e-320, 1e306, math.inf, math.nan]),
    "counts": (lambda x: lda(np.full((2, 3), x)), [1, 2.0], [0, -1, 0.5]),
    "words": (lambda x: lda().transform(np.ones((2, x))), [6], [5, 7]),
    "seeded cluster": (lambda x: clusters(seeds=x), [-1, 0, 1], [-2, 2]),
    "clusters": (lambda x: clusters(n_clusters=x), [1, 12], [0, 13]),
    "paths": (lambda x: clusters(paths=x), [], [{}]),
    "confidence": (lambda x: clusters(0, confidence=x), [0, 1e9], [-1, math.inf, math.nan]),
    "screened restarts": (lambda x: clusters(restarts=x), [1], [0]),
    "finished restarts": (lambda x: clusters(finished=x), [1, 2], [0]),
    "a count": (lambda x: clusters(counts=COUNTS + x * ONE), [0, 1], [-5, math.inf, math.nan]),
    "a start": (
        lambda x: clusters(start=np.full((12, 2), x)),
        [0.5, 0.5 + 1e-9],
        [0.0, 0.4, math.nan],
    ),
    "a first share": (lambda x: clusters(start=np.tile([x, 1 - x], (12, 1))), [0, 1], [-0.1]),
    "clusters of a start": (lambda x: clusters(start=np.full((12, x), 1 / x)), [2], [3]),
    "rows": (lambda x: clusters(counts=COUNTS[:x]), [12], [11]),
    "links": (lambda x: clusters(counts=COUNTS * 0 + x), [], [0]),
    "classes": (
        classes,
        [LABELS, [*LABELS[:8], *[""] * 4]],
        [["a"] * 12, [""] * 12, [*LABELS[:11], ""], [*LABELS[:4], *[""] * 8]],
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_numbers_are_taken_up_to_their_limits(name):
    call, inside, outside = LIMITS[name]
    for value in inside:
        call(value)
    for value in outside:
        with pytest.raises(InputError):
            call(value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"restarts": 0}, "restarts is 0"),
        ({"threads": 0}, "threads is 0"),
        ({"method": "pathselclus", "free": 0}, "free"),
    ],
)
def test_discovery_needs_a_restart_a_thread_and_a_free_cluster(options, said):
    log = simulate_family("wards", 0).log
    with pytest.raises(InputError, match=said):
        discover(log, **options)
    with pytest.raises(InputError, match="free"):
        group_by_seeds(
            log,
            paths=["U-P-D"],
            view=None,
            free=0,
            restarts=1,
            seed=0,
            threads=1,
            progress=lambda step: None,
        )
