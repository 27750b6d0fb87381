from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from telic.errors import InputError
from telic.optim.admm import consensus_admm, minimize_admm
from telic.optim.admm.shard_files import shard_files
from telic.scale import Local

D = np.diff(np.eye(6), axis=0)


def shards(loss, *, sizes=(60, 90, 150), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(sizes), 6)) * [1, 1, 3, 1, 1, 0.3]
    score = X @ [1, 1, 1, -1, -1, -1] + rng.normal(size=len(X))
    y = np.where(score > 0, 1.0, -1.0) if loss == "logistic" else score
    # The shards are not alike: sorted by the first feature.
    order = np.argsort(X[:, 0] + rng.normal(size=len(X)))
    X, y = X[order], y[order]
    cuts = np.cumsum(sizes)[:-1]
    return X, y, list(zip(np.split(X, cuts), np.split(y, cuts), strict=True))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_shards_agree_on_the_pooled_optimum(loss, fit_intercept):
    X, y, parts = shards(loss)
    terms = {"A": D, "l1": 0.03, "l2": 0.01, "loss": loss, "fit_intercept": fit_intercept}
    pooled = minimize_admm(X, y, method="batch-admm", tol=1e-12, max_passes=9000, **terms)
    found = consensus_admm(parts, tol=1e-7, **terms)
    assert found.converged
    assert abs(found.objective - pooled.objective) < 1e-6
    assert found.objective - pooled.objective <= found.gap + 1e-9
    np.testing.assert_allclose(found.coef, pooled.coef, atol=1e-3)
    assert found.intercept == pytest.approx(pooled.intercept, abs=1e-3)


def test_the_executor_does_not_change_the_result():
    _, _, parts = shards("logistic")
    alone = consensus_admm(parts, A=D, l1=0.03, tol=1e-2)
    with ThreadPoolExecutor(1) as one:
        given = consensus_admm(parts, A=D, l1=0.03, tol=1e-2, executor=one)
    assert alone.rounds > 1
    np.testing.assert_array_equal(alone.coef, given.coef)
    single = consensus_admm(parts[:1], A=D, l1=0.03, tol=1e-6)
    assert single.converged


def test_shards_of_one_class_each():
    X, y, _ = shards("logistic")
    parts = [(X[y == label], y[y == label]) for label in (-1.0, 1.0)]
    pooled = minimize_admm(X, y, A=D, l1=0.03, method="batch-admm", tol=1e-9)
    assert consensus_admm(parts, A=D, l1=0.03).objective == pytest.approx(
        pooled.objective, abs=1e-4
    )
    with pytest.raises(InputError, match="one class only in all shards"):
        consensus_admm(parts[:1], A=D, l1=0.03)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_shard_of_few_rows_leaves_the_others_together(loss):
    """Of one row that was fitted in a few steps the shards never agreed; one class was refused."""
    X, y, parts = shards(loss, sizes=(1, 9, 9, 1))
    terms = {"A": D, "l1": 0.03, "l2": 0.01, "loss": loss}
    pooled = minimize_admm(X, y, method="batch-admm", tol=1e-10, max_passes=9000, **terms)
    found = consensus_admm(parts, tol=1e-5, max_rounds=200, **terms)
    assert found.converged
    assert found.objective == pytest.approx(pooled.objective, abs=1e-4)


def test_a_consensus_that_is_stopped_returns_its_last_round():
    _, _, parts = shards("squared")
    seen = []

    def interrupt(record, x):
        seen.append(x)
        if record.round == 3:
            raise KeyboardInterrupt

    terms = {"A": D, "l1": 0.03, "loss": "squared", "tol": 0.0}
    with pytest.warns(ConvergenceWarning, match=r"consensus stopped \(interrupted\) after 3"):
        found = consensus_admm(parts, callback=interrupt, **terms)
    assert (found.stopped, found.rounds, found.converged) == ("interrupted", 3, False)
    np.testing.assert_array_equal(found.coef, seen[-1])
    with pytest.warns(ConvergenceWarning, match="rounds"):
        assert consensus_admm(parts, max_rounds=1, **terms).stopped == "rounds"
    stop = consensus_admm(parts, callback=lambda record, x: True, **terms)
    assert (stop.stopped, stop.rounds) == ("callback", 1)


def test_bad_shards_are_named():
    X, y, _ = shards("squared")
    terms = {"A": D, "l1": 0.1, "loss": "squared"}
    for shard in ((np.eye(2),), (5, 6), ("rows.npy", "labels.npy"), 5):
        with pytest.raises(InputError, match=r"shard 0: expected rows and labels \(X, y\)"):
            consensus_admm([shard], A=np.eye(2), l1=0.1)
    with pytest.raises(InputError, match="A has 0 dimension"):
        consensus_admm([(np.eye(2), [1.0, -1.0])], A=5, l1=0.1)
    with pytest.raises(InputError, match="no shard"):
        consensus_admm([], **terms)
    with pytest.raises(InputError, match="shard 1 has 5 features, shard 0 has 6"):
        consensus_admm([(X, y), (X[:, :5], y)], **terms)
    broken = X.copy()
    broken[4, 2] = np.nan
    with pytest.raises(InputError, match="shard 1: X contains NaN or infinity at row 4, column 2"):
        consensus_admm([(X, y), (broken, y)], **terms)
    for name, value, kind in (
        ("tol", -1.0, "finite"),
        ("max_rounds", np.nan, "whole"),
        ("max_rounds", 2.5, "whole"),
        ("passes", np.inf, "finite"),
    ):
        with pytest.raises(InputError, match=f"{name} is {value!r}, expected a {kind} number >= 0"):
            consensus_admm([(X, y)], **terms, **{name: value})
    wide = sparse.csr_matrix((2, 2001))
    with pytest.raises(InputError, match="2001 features; the consensus form takes up to 2000"):
        consensus_admm([(wide, [0.0, 1.0])], **terms | {"A": sparse.eye_array(1, 2001)})
    with pytest.raises(InputError, match="A has 3 columns"):
        consensus_admm([(X, y)], **terms | {"A": np.ones((1, 3))})


def test_sparse_shards_in_files_are_those_in_memory(tmp_path):
    X, y, _ = shards("squared")
    halves = [(sparse.csr_matrix(X[:150]), y[:150]), (sparse.csr_matrix(X[150:]), y[150:])]
    terms = {"A": D, "l1": 0.03, "l2": 0.01, "loss": "squared", "tol": 0.1}
    whole = consensus_admm(halves, **terms)
    sent = consensus_admm(halves, executor=Local(threads=1), work=tmp_path / "sent", **terms)
    files = [
        (next(path.glob("X-*.npz")), next(path.glob("y-*.npy")))
        for path in sorted((tmp_path / "sent").glob("shard-*"))
    ]
    read = consensus_admm(files, executor=Local(threads=1), work=tmp_path / "read", **terms)
    for found in (sent, read):
        np.testing.assert_array_equal(found.coef, whole.coef)
    missing = [files[0], (tmp_path / "no.npz", files[1][1])]
    with pytest.raises(InputError, match=r"shard 1: .*no.npz: No such file .*Check the path"):
        consensus_admm(missing, executor=Local(threads=1), work=tmp_path / "other", **terms)


@pytest.mark.parametrize("name", ["X.npy", "y.npy"])
def test_a_shard_that_changes_during_the_job_is_refused(tmp_path, name):
    np.save(tmp_path / "X.npy", np.ones((4, 2)))
    np.save(tmp_path / "y.npy", np.ones(4))
    (file,) = shard_files([(tmp_path / "X.npy", tmp_path / "y.npy")], tmp_path, None)
    np.testing.assert_array_equal(file.read()[0], np.ones((4, 2)))
    np.save(tmp_path / name, np.ones((5, 2)))
    with pytest.raises(InputError, match=rf"{name}: changed since the job began"):
        file.read()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, "files"])
@pytest.mark.parametrize("changed", [0, 1])
def test_the_folder_of_other_rows_or_labels_is_refused(tmp_path, form, changed):
    shard = [np.eye(4), np.array([1.0, 1.2, 4.0, 4.0])]
    other = [2 * part if i == changed else part for i, part in enumerate(shard)]

    def fitted(X, y):
        if form == "files":
            for name, part in (("X.npy", X), ("y.npy", y)):
                np.save(tmp_path / name, part)
            pair = tmp_path / "X.npy", tmp_path / "y.npy"
        else:
            pair = form(X), y
        terms = {"A": np.diff(np.eye(4), axis=0), "l1": 0.1, "loss": "squared"}
        consensus_admm([pair], executor=Local(threads=1), work=tmp_path / "job", **terms)

    fitted(*shard)
    with pytest.raises(InputError, match="holds results of another job"):
        fitted(*other)
