import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from telic.errors import InputError
from telic.specialty.discovery.pathselclus import _em, fit_pathselclus, path_contrast
from telic.specialty.discovery.pathselclus_path_quality import Path
from telic.specialty.discovery.pathselclus_starts import _choose, _Missed, starts


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
    pi = theta @ B.T
    return sum(
        gammaln(alpha * W[i].sum() + W.shape[1])
        - gammaln(alpha * W[i] + 1).sum()
        + alpha * (W[i] * np.log(pi[i] + 1e-12)).sum()
        for i in range(len(W))
    )


def reference_em(counts, guidance, theta, feature, quality):
    """One EM round, responsibility by responsibility."""
    new = guidance.copy()
    updated = {}
    for name, W in counts.items():
        B = feature[name]
        gain = np.zeros_like(B)
        for i, j in np.argwhere(W > 0):
            responsibility = theta[i] * B[j] / (theta[i] @ B[j])
            new[i] += quality[name] * W[i, j] * responsibility
            gain[j] += W[i, j] * responsibility
        updated[name] = gain / gain.sum(axis=0)
    return new / new.sum(axis=1, keepdims=True), updated


def scaled(W):
    W = W.toarray()
    W = W[:, W.sum(axis=0) > 0].astype(float)
    return W * len(W) / W.sum()


def test_em_is_the_reference_and_never_lowers_the_objective(planted):
    _, counts = planted
    rng = np.random.default_rng(3)
    # One path of each kind of storage: full, by user, by object.
    thin = rng.random((90, 60)) < 0.05
    wide = np.concatenate([rng.random((90, 200)) < 0.03, np.zeros((90, 5), bool)], axis=1)
    counts = {
        "full": counts["strong"],
        "thin": sparse.csr_array(thin * 2.0),
        "wide": sparse.csr_array(wide * 1.0),
    }
    paths = {name: Path.of(W) for name, W in counts.items()}
    assert isinstance(paths["full"].weight, np.ndarray)
    assert [paths[name].by_object for name in ("thin", "wide")] == [False, True]
    dense = {name: scaled(W) for name, W in counts.items()}
    guidance = np.zeros((90, 3))
    guidance[:5, 0] = 50.0
    quality = {"full": 30.0, "thin": 5.0, "wide": 2.0}
    theta = rng.dirichlet(np.ones(3), size=90)
    feature = {name: path.profile(theta) for name, path in paths.items()}
    values = []
    for _ in range(12):
        total = (guidance * np.log(theta + 1e-12)).sum()
        for name, W in dense.items():
            total += reference_objective(W, theta, feature[name], quality[name])
        values.append(total)
        expected = reference_em(dense, guidance, theta, feature, quality)
        theta, feature, likelihood = _em(paths, guidance, theta, feature, quality, rounds=1)
        np.testing.assert_allclose(theta, expected[0], atol=1e-8)
        for name, W in dense.items():
            np.testing.assert_allclose(feature[name], expected[1][name], atol=1e-8)
            explained = (W * np.log(theta @ feature[name].T + 1e-12)).sum()
            assert likelihood[name] == pytest.approx(explained)
    assert (np.diff(values) >= -1e-6 * abs(values[0])).all()


def test_alpha_is_where_the_objective_is_flat(planted):
    path, W = Path.of(planted[1]["strong"]), scaled(planted[1]["strong"])
    rng = np.random.default_rng(2)
    theta = rng.dirichlet(np.ones(3), size=90)
    B = rng.dirichlet(np.ones(path.n_objects), size=3).T
    likelihood = path.likelihood(theta, B)
    assert path.objective(4.0, likelihood) == pytest.approx(reference_objective(W, theta, B, 4.0))

    def value(alpha):
        return reference_objective(W, theta, B, alpha)

    best = minimize_scalar(lambda alpha: -value(alpha), bounds=(0, 1000), method="bounded").x
    assert path.refit_quality(1.0, likelihood) == pytest.approx(best, rel=0.02)


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


@pytest.fixture(scope="module")
def small_group():
    """30 groups of 20 users that are seeded, 300 users of flat profile and a group of 10."""
    rng = np.random.default_rng(0)
    profile = rng.dirichlet(np.full(120, 0.05), size=31)
    own = np.repeat([*range(30), -1, 30], [*[20] * 30, 300, 10])
    flat = profile.mean(axis=0)
    counts = np.stack(
        [rng.multinomial(40, flat if g < 0 else 0.4 * profile[g] + 0.6 * flat) for g in own]
    )
    seeds = np.full(len(own), -1)
    seeds[: 30 * 20 : 4] = own[: 30 * 20 : 4]
    return {"p": sparse.csr_array(counts)}, seeds


def test_starts_find_what_random_ones_miss(small_group):
    counts, seeds = small_group
    found = fit_pathselclus(counts, seeds, n_clusters=31, restarts=4)
    rng = np.random.default_rng(1)
    for _ in range(5):
        theta = rng.dirichlet(np.full(31, 0.1), size=len(seeds))
        theta[seeds >= 0] = np.eye(31)[seeds[seeds >= 0]]
        random = fit_pathselclus(counts, seeds, n_clusters=31, start=theta)
        assert found.objective > random.objective


def test_missed_links_by_definition(planted):
    rng = np.random.default_rng(4)
    thin = sparse.csr_array((rng.random((90, 200)) < 0.05) * 2.0)
    for counts in (planted[1]["strong"], thin):
        path, W = Path.of(counts), scaled(counts)
        theta = rng.dirichlet(np.ones(3), size=90)
        B = rng.dirichlet(np.ones(path.n_objects), size=3).T
        overall = path.profile(np.ones((90, 1)))
        missed, pi = _Missed(path, theta, B, overall), theta @ B.T
        share = W / np.maximum(W.sum(axis=1, keepdims=True), 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(W > 0, W * np.log(share / pi), 0.0)
        np.testing.assert_allclose(missed.deficit(), loss.sum(axis=1))
        profile = 0.5 * share[5] + 0.5 * overall[:, 0]
        np.testing.assert_allclose(missed.profile(5), profile)
        gain = (W * np.log(0.5 + 0.5 * profile / pi)).sum(axis=1)
        np.testing.assert_allclose(missed.gains([5])[:, 0], gain, atol=1e-8)


class Watched:
    """A generator that keeps with what shares it drew."""

    def __init__(self, rng):
        self.rng, self.shares = rng, []

    def choice(self, *given, p, **options):
        self.shares.append(p)
        return self.rng.choice(*given, p=p, **options)


def test_a_start_by_definition(planted):
    counts, (first, second, users) = planted[1], (1, 3, np.arange(90))
    paths = {m: Path.of(one) for m, one in counts.items()}
    guidance = np.zeros((90, 4))  # clusters 1 and 3 have seeds, 0 and 2 are free
    guidance[:6, first], guidance[30:37, second] = 0.5, 5.0
    seed = guidance.any(axis=1)
    overall = {m: one.profile(np.ones((90, 1))) for m, one in paths.items()}
    corner = np.sign(guidance[:, [first, second]])
    B = {m: 0.9 * one.profile(corner) + 0.1 * overall[m] for m, one in paths.items()}
    theta = np.where(seed[:, None], corner, 0.5)
    for _ in range(10):
        gained = sum(theta * (scaled(counts[m]) / (theta @ B[m].T) @ B[m]) for m in paths)
        theta = np.where(seed[:, None], corner, gained / gained.sum(axis=1, keepdims=True))
    alpha = {m: p.refit_quality(1.0, p.likelihood(theta, B[m])) for m, p in paths.items()}
    missed = {m: _Missed(p, theta, B[m], overall[m]) for m, p in paths.items()}
    gain = sum(alpha[m] * one.gains(users) for m, one in missed.items()).clip(0)
    watched = Watched(np.random.default_rng(0))
    for start in starts(paths, guidance, 3, watched):
        assert start.quality == pytest.approx(alpha)
        chosen = {}
        for k in (0, 2):
            fits = [
                all(np.allclose(start.features[m][:, k], missed[m].profile(u)) for m in paths)
                for u in users
            ]
            (chosen[k],) = np.flatnonzero(fits)
        assert not seed[[*chosen.values()]].any()
        for m in paths:
            np.testing.assert_allclose(start.features[m][:, [first, second]], B[m])
        expected = np.full((90, 4), 0.02)
        expected[:, [first, second]] = theta
        best = gain[:, [*chosen.values()]].max(axis=1)
        for k, user in chosen.items():
            expected[(gain[:, user] == best) & (best > 0), k] = 1.0
        expected[seed] = 0.05 / 4 + 0.95 * (guidance[seed] > 0)
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(start.theta, expected, atol=1e-6)
    # Candidates are drawn by what their users lack, seeds never.
    lack = np.where(seed, 0, sum(alpha[m] * one.deficit() for m, one in missed.items()).clip(0))
    np.testing.assert_allclose(watched.shares[0], lack / lack.sum(), atol=1e-8)


def test_a_candidate_is_drawn_by_what_is_gained_beyond_those_before():
    own = np.repeat([0, 1, 2], 5)
    gain = (own[:, None] == own) * np.repeat([1.0, 2.0, 9.0], 5)  # what one gains, others gain too
    drawn = [_choose(gain, 3, np.random.default_rng(seed)) for seed in range(300)]
    assert all(sorted(own[one]) == [0, 1, 2] for one in drawn)
    # Of three draws the best counts: 12 in total, 9 of them of the last group.
    assert np.mean([own[one[0]] == 2 for one in drawn]) == pytest.approx(1 - (1 / 4) ** 3, abs=0.03)
    assert np.mean([own[one[0]] == 0 for one in drawn]) == pytest.approx((1 / 12) ** 3, abs=0.01)


def test_without_free_clusters_or_without_seeds(planted):
    group, counts = planted
    model = fit_pathselclus(counts, np.where(np.arange(90) % 3, -1, group), n_clusters=3)
    np.testing.assert_array_equal(model.labels, group)
    free = fit_pathselclus(counts, np.full(90, -1), n_clusters=3)
    assert len({tuple(np.unique(free.labels[group == g])) for g in range(3)}) == 3


def test_restarts_do_not_depend_on_threads(planted):
    seeds = np.full(90, -1)
    seeds[0] = 0
    told = []
    one, two = (
        fit_pathselclus(planted[1], seeds, n_clusters=3, threads=t, progress=told.append)
        for t in (1, 2)
    )
    assert len(told) > 2
    assert set(told) == {"3 clusters"}
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
