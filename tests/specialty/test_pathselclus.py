import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln

from telic.errors import InputError
from telic.specialty.pathselclus import Path, _em, _random_start, fit_pathselclus, path_contrast


@pytest.fixture(scope="module")
def planted():
    """90 users in three groups; one path shows the groups, one is noise."""
    rng = np.random.default_rng(1)
    group = np.repeat([0, 1, 2], 30)
    profile = rng.dirichlet(np.full(25, 0.1), size=3)
    strong = np.stack([rng.multinomial(60, profile[g]) for g in group])
    noise = np.stack([rng.multinomial(60, np.full(25, 1 / 25)) for _ in group])
    return group, {"strong": sparse.csr_array(strong), "noise": sparse.csr_array(noise)}


def reference_objective(W, theta, B, alpha):
    """J of one path by its definition, densely."""
    W = W.toarray()
    pi = theta @ B
    return sum(
        gammaln(alpha * W[i].sum() + W.shape[1])
        - gammaln(alpha * W[i] + 1).sum()
        + alpha * (W[i] * np.log(pi[i] + 1e-12)).sum()
        for i in range(len(W))
    )


def test_em_never_lowers_the_objective(planted):
    _, counts = planted
    paths = {name: Path.of(W) for name, W in counts.items()}
    guidance = np.zeros((90, 3))
    guidance[:5, 0] = 50.0
    quality = {"strong": 30.0, "noise": 5.0}
    theta, feature = _random_start(paths, guidance, 3, np.random.default_rng(0))
    values = []
    for _ in range(15):
        total = (guidance * np.log(theta + 1e-12)).sum()
        for name, path in paths.items():
            total += reference_objective(path.weight, theta, feature[name].T, quality[name])
        values.append(total)
        theta, feature, likelihood = _em(paths, guidance, theta, feature, quality, rounds=1)
    assert (np.diff(values) >= -1e-6 * abs(values[0])).all()
    # The kernel's likelihood is of the parameters it started from.
    assert np.isfinite(list(likelihood.values())).all()


def test_objective_and_its_derivative_in_alpha(planted):
    path = Path.of(planted[1]["strong"])
    rng = np.random.default_rng(2)
    theta = rng.dirichlet(np.ones(3), size=90)
    B = rng.dirichlet(np.ones(path.weight.shape[1]), size=3)
    likelihood = (path.weight.toarray() * np.log(theta @ B + 1e-12)).sum()
    expected = reference_objective(path.weight, theta, B, 4.0)
    assert path.objective(4.0, likelihood) == pytest.approx(expected)
    best = path.refit_quality(1.0, likelihood)
    slope = path.objective(best + 1e-3, likelihood) - path.objective(best - 1e-3, likelihood)
    assert abs(slope / 2e-3) < 1e-2 * path.row_sum.sum()


def test_unseeded_cluster_takes_the_group_without_seeds(planted):
    group, counts = planted
    seeds = np.full(90, -1)
    seeds[:5], seeds[30:35] = 0, 1
    model = fit_pathselclus(counts, seeds, n_clusters=3)
    np.testing.assert_array_equal(model.labels, group)
    np.testing.assert_allclose(model.theta.sum(axis=1), 1.0)
    contrast = path_contrast(counts, model)
    assert contrast["strong"] > 2
    assert contrast["noise"] < 1.3


def test_restarts_do_not_depend_on_threads(planted):
    seeds = np.full(90, -1)
    seeds[0] = 0
    one, two = (fit_pathselclus(planted[1], seeds, n_clusters=3, threads=t) for t in (1, 2))
    np.testing.assert_array_equal(one.theta, two.theta)


def test_a_user_without_links_keeps_equal_shares(planted):
    counts = planted[1]["strong"].toarray()
    counts[40] = 0
    model = fit_pathselclus({"p": sparse.csr_array(counts)}, np.full(90, -1), n_clusters=3)
    assert np.isfinite(model.theta).all()
    np.testing.assert_allclose(model.theta[40].sum(), 1.0)


def test_bad_input_is_named(planted):
    counts = planted[1]
    with pytest.raises(InputError, match="only 90 users"):
        fit_pathselclus(counts, np.full(90, -1), n_clusters=91)
    with pytest.raises(InputError, match="seeds must lie"):
        fit_pathselclus(counts, np.full(90, 3), n_clusters=3)
    with pytest.raises(InputError, match="path 'empty'"):
        fit_pathselclus({"empty": sparse.csr_array((90, 4))}, np.full(90, -1), n_clusters=3)
