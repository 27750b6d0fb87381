"""Consensus form: data in shards, SVR-ADMM-D on each, one set of weights for all."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from telic.errors import InputError, expect_at_least, expect_whole, warn_unconverged
from telic.optim import sampling
from telic.optim.admm.defaults import (
    DENSE_UP_TO,
    balanced_rows,
    default_batch,
    default_rho,
)
from telic.optim.admm.duality_gap import Certifier, LocalRows, scale_of
from telic.optim.admm.method_facts import step_of_batches
from telic.optim.admm.methods.steps import State, make_steps
from telic.optim.admm.methods.variance_reduced import svr_d
from telic.optim.admm.problem import AdmmProblem, make_admm_problem
from telic.optim.admm.residual_balancing import FIRST_DUE, balance, next_due, rho_factor
from telic.optim.admm.separable_penalty import Separable, separable
from telic.optim.admm.shard_files import ShardFile, ShardWorkers, shard_files
from telic.optim.admm.x_step_metric import Metric, curvature
from telic.optim.losses import as_loss
from telic.optim.threads import small_products
from telic.scale import Executor as Engine
from telic.scale.job_folder import mapped_folder

FEWEST = 100
"""A shard of fewer rows makes as many steps as one of so many: after one or two that it could
make, it drives the others apart."""


class Round(NamedTuple):
    """One line of the history."""

    round: int
    objective: float
    gap: float
    primal_residual: float
    """√Σ ‖Lᵀ(x_s − x)‖²: how far the shards are from each other."""
    dual_residual: float
    """How far the consensus moved, in the same norm."""


@dataclass(frozen=True, slots=True)
class ConsensusResult:
    """What the shards agree on."""

    coef: np.ndarray
    intercept: float
    dual: np.ndarray
    """u = ρz, shape (k,)."""
    objective: float
    """Of the pooled problem."""
    gap: float
    """Bound on the distance from the pooled optimum, always (`duality_gap.certificate`)."""
    rounds: int
    converged: bool
    stopped: str
    """Why: "tolerance", "rounds", "callback" or "interrupted" (Ctrl-C)."""
    history: list[Round] = field(repr=False)


def consensus_admm(
    shards: Iterable[tuple[Any, Any]],
    *,
    A: Any,
    l1: Any = 0.0,
    g: Separable | None = None,
    c: Any = None,
    loss: Any = "logistic",
    l2: float = 0.0,
    fit_intercept: bool = False,
    executor: Executor | Engine | None = None,
    work: str | Path | None = None,
    passes: float = 5.0,
    tol: float = 1e-4,
    max_rounds: int = 500,
    seed: int = 0,
    callback: Callable[[Round, np.ndarray], bool | None] | None = None,
) -> ConsensusResult:
    """Minimise f(w) + g(Aw − c), f the mean loss over the rows of all shards, shard by shard.

    The constraint of shard s is x_s = x: a round lets every shard minimise its own part of f plus
    (t/2)‖Lᵀ(x_s − x + v_s)‖² by SVR-ADMM-D from where it was, then finds x and y = Ax − c from
    the answers. LLᵀ is a third of the mean of the shards' curvature bounds, exchanged once: in
    this norm the shards are alike. t and ρ are balanced on the way, ever more rarely.

    Parameters
    ----------
    shards : iterable of (X, y)
        Rows of each shard; the features are the same everywhere. With an engine of `telic.scale`
        also paths of ``.npy`` files (float64), or for sparse rows of an ``.npz`` of SciPy's.
    A, l1, g, c, loss, l2, fit_intercept
        As in `minimize_admm`.
    executor : concurrent.futures.Executor or telic.scale.Executor, optional
        Where the shards' work runs; by default a thread for each shard (the kernels release the
        GIL).
    work : path, optional
        Needed with an engine of `telic.scale`: folder of what shards find, by round, which every
        worker reaches. The same call goes on there if it was interrupted.
    passes : float
        Passes over its rows that a shard makes at least in a round; one of fewer than 100 rows
        makes as many steps as if it had 100.
    tol : float
        Stop when the gap is at most tol times the objective at zero.
    max_rounds : int
    seed : int
        The same seed gives the same result, whatever the executor.
    callback : callable, optional
        Called with (round, x) after each round; a true value stops.

    Returns
    -------
    ConsensusResult
        Interrupted, the last complete round's.

    Raises
    ------
    InputError
        Naming the shard if its data cannot be used, or no shard is given.

    Examples
    --------
    >>> X, y = np.eye(4), np.array([1.0, 1.2, 4.0, 4.0])
    >>> D = np.diff(np.eye(4), axis=0)
    >>> shards = [(X[:2], y[:2]), (X[2:], y[2:])]
    >>> consensus_admm(shards, A=D, l1=0.1, loss="squared", tol=1e-8).coef.round(3)
    array([1.3, 1.3, 3.8, 3.8])
    """
    files: list[ShardFile] = []
    if isinstance(executor, Engine):
        work = mapped_folder(work, "the shards")
        make = partial(_problem, loss=loss, l2=l2, fit_intercept=fit_intercept)
        files = shard_files(list(shards), work, make)
        shards = (file.read() for file in files)
    parts = list(_problems(shards, loss, l2, fit_intercept))
    if not parts:
        raise InputError("no shard is given: at least one (X, y) is needed.")
    if parts[0].data.loss.classifies and len({y for part in parts for y in set(part.data.y)}) == 1:
        raise InputError("y holds one class only in all shards: there is nothing to separate.")
    if g is None:
        g = separable(np.shape(A)[0] if np.ndim(A) or sparse.issparse(A) else 0, l1=l1)
    expect_at_least(0, tol=tol, passes=passes)
    expect_whole(0, max_rounds=max_rounds)
    first = parts[0].data
    # One row of zeros carries A, c and g through the checks of the pooled problem.
    whole = make_admm_problem(
        sparse.csr_matrix((2, first.design.d)),
        [-1.0, 1.0],
        A=A,
        g=g,
        c=c,
        loss=loss,
        l2=l2,
        fit_intercept=fit_intercept,
    )
    if whole.size > DENSE_UP_TO:
        raise InputError(f"{whole.size} features; the consensus form takes up to {DENSE_UP_TO}.")
    counts = np.array([part.data.design.n for part in parts])
    share = counts / counts.sum()
    y = np.concatenate([part.data.y for part in parts])
    mass = np.concatenate([s * part.data.mass for s, part in zip(share, parts, strict=True)])
    whole = replace(whole, data=replace(whole.data, y=y, mass=mass))
    with small_products(whole.size), ExitStack() as stack:
        workers: Executor | ShardWorkers
        if isinstance(executor, Engine):
            workers = ShardWorkers(executor, files, Path(work or ""))
        else:
            workers = executor or stack.enter_context(ThreadPoolExecutor(len(parts)))
        certifier = Certifier(whole, _Shards(parts, workers))
        return _run(parts, share, certifier, workers, passes, tol, max_rounds, seed, callback)


@dataclass(frozen=True, slots=True)
class _Shards:
    """`Rows` that lie in shards: numbers of n entries travel, the rows stay."""

    parts: list[AdmmProblem]
    executor: Executor | ShardWorkers

    def predict(self, w: np.ndarray, b: float) -> np.ndarray:
        """⟨w, x_i⟩ + b for every row of all shards."""
        size = len(self.parts)
        return np.concatenate(list(self.executor.map(_predict, self.parts, [w] * size, [b] * size)))

    def back(self, a: np.ndarray) -> np.ndarray:
        """Xᵀa."""
        cuts = np.cumsum([part.data.design.n for part in self.parts])[:-1]
        return np.sum(list(self.executor.map(_back, self.parts, np.split(a, cuts))), axis=0)

    def project(self, N: sparse.csr_matrix) -> np.ndarray:
        """X N."""
        found = self.executor.map(_project, self.parts, [N] * len(self.parts))
        return np.concatenate(list(found))

    def lengths(self) -> np.ndarray:
        """Norms of the columns of X."""
        return np.linalg.norm(list(self.executor.map(_lengths, self.parts)), axis=0)


def _predict(part: AdmmProblem, w: np.ndarray, b: float) -> np.ndarray:
    return part.data.predict(w, b)


def _back(part: AdmmProblem, a: np.ndarray) -> np.ndarray:
    return part.data.back(a)


def _project(part: AdmmProblem, N: sparse.csr_matrix) -> np.ndarray:
    found = LocalRows(part).project(N)
    return found.toarray() if sparse.issparse(found) else found


def _lengths(part: AdmmProblem) -> np.ndarray:
    return LocalRows(part).lengths()


def _problems(shards: Any, loss: Any, l2: float, fit_intercept: bool) -> Iterable[AdmmProblem]:
    size = None
    for number, shard in enumerate(shards):
        try:
            X, y = shard
            d = X.shape[1] if hasattr(X, "shape") and len(X.shape) == 2 else np.shape(X)[-1]
        except (TypeError, ValueError, IndexError):
            raise InputError(
                f"shard {number}: expected rows and labels (X, y), each as an array. Their files' "
                "names go with executor=."
            ) from None
        if size not in (None, d):
            raise InputError(f"shard {number} has {d} features, shard 0 has {size}.")
        size = d
        try:
            yield _problem(X, y, loss=loss, l2=l2, fit_intercept=fit_intercept)
        except InputError as error:
            raise InputError(f"shard {number}: {error}") from None


def _problem(X: Any, y: Any, *, loss: Any, l2: float, fit_intercept: bool) -> AdmmProblem:
    loss, d = as_loss(loss), np.shape(X)[-1]
    # One class is enough for a shard, though not for a problem: the squared loss takes any.
    alone = loss.classifies and np.unique(y).tolist() in ([-1], [1])
    part = make_admm_problem(
        X,
        y,
        A=sparse.eye_array(d),
        g=separable(d, l2=1.0),
        loss="squared" if alone else loss,
        l2=l2,
        fit_intercept=fit_intercept,
    )
    return replace(part, data=replace(part.data, loss=loss))


def _run(
    parts: list[AdmmProblem],
    share: np.ndarray,
    certifier: Certifier,
    executor: Executor | ShardWorkers,
    passes: float,
    tol: float,
    max_rounds: int,
    seed: int,
    callback: Any,
) -> ConsensusResult:
    metrics = list(executor.map(curvature, parts))
    bounds = [metric.P for metric in metrics]
    # The loss bends less than its bound; a third took the fewest rounds on a9a and 20news.
    P = np.tensordot(share, np.array(bounds), 1) / 3.0
    L = np.linalg.cholesky(P)
    # Shard s with the constraint Lᵀx_s − y = c_s and g = ‖y‖²/2; c_s changes with each round.
    held = sparse.csr_matrix(L.T)
    parts = [replace(part, A=held, g=separable(len(P), l2=1.0)) for part in parts]
    unit = np.min([metric.unit for metric in metrics], axis=0)
    largest = float(np.linalg.eigvalsh(P * np.outer(unit, unit))[-1])
    metric = Metric(P, unit, 1.0, 1.0, largest)
    rows = balanced_rows(certifier.problem, metric)
    whole = certifier.problem.with_rows(rows)
    rho = default_rho(whole, metric)
    S, k, d = len(parts), whole.A.shape[0], whole.size
    AA = (whole.A.T @ whole.A).toarray()
    inverse, t, due = np.linalg.inv(P + rho * AA), 1.0, FIRST_DUE
    x, y, z = np.zeros(d), -whole.c, np.zeros(k)
    local, v, u = np.zeros((S, d)), np.zeros((S, d)), np.zeros((S, d))
    zero = scale_of(whole, whole.data.risk(np.zeros(whole.data.y.size)))
    history: list[Round] = []
    stopped, best, dual, gap, objective = "tolerance", x, np.zeros(k), np.inf, zero
    try:
        while gap > tol * zero:
            if len(history) == max_rounds:
                stopped = "rounds"
                break
            seeds = seed + S * len(history) + np.arange(S)
            do = executor.step if isinstance(executor, ShardWorkers) else executor.map
            jobs = do(_step, parts, metrics, (x - v) @ L, local, u, seeds, [passes] * S)
            for s, found in enumerate(jobs):
                local[s], u[s] = found
            old, y = y, whole.g.prox(whole.A @ x - whole.c + z, 1.0 / rho)
            mean = share @ (local + v)
            following = inverse @ (t * P @ mean + rho * (whole.A.T @ (y + whole.c - z)))
            moved, x = following - x, following
            v += local - x
            z += whole.A @ x - whole.c - y
            point = certifier(x, y / rows, rows * rho * z)
            objective, gap = point.objective, point.gap
            apart = float(np.sqrt(share @ np.sum(((local - x) @ L) ** 2, axis=1)))
            went = float(np.linalg.norm(moved @ L))
            history.append(Round(len(history) + 1, objective, gap, apart, went))
            best, dual = point.x, rows * rho * z
            if callback is not None and callback(history[-1], x):
                stopped = "callback"
                break
            if len(history) == due:
                # u = ρz and t P v stay what they are.
                due = next_due(due)
                factor = rho_factor(whole, x, y, old, rho * z, rho)
                rho, z = factor * rho, z / factor
                factor = balance(((local - x) @ L, x @ L), (moved @ L, v @ L))
                t, v = factor * t, v / factor
                parts = [replace(part, g=separable(len(P), l2=t)) for part in parts]
                inverse = np.linalg.inv(t * P + rho * AA)
    except KeyboardInterrupt:
        stopped = "interrupted"
    if stopped in ("rounds", "interrupted"):
        warn_unconverged(
            f"consensus stopped ({stopped}) after {len(history)} rounds with a gap of {gap:.3g}, "
            f"above the {tol * zero:.3g} asked for. Raise max_rounds, passes or tol.",
            stacklevel=3,
        )
    coef, intercept = whole.split(best)
    return ConsensusResult(
        coef,
        intercept,
        dual,
        float(objective),
        float(gap),
        len(history),
        bool(gap <= tol * zero),
        stopped,
        history,
    )


def _step(
    part: AdmmProblem,
    metric: Metric,
    c: np.ndarray,
    x: np.ndarray,
    u: np.ndarray,
    seed: int,
    passes: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Let a shard follow the consensus: whole stages of SVR-ADMM-D, at least `passes` passes."""
    part, n = replace(part, c=c), part.data.design.n
    batch_size, rho = default_batch(part, metric), default_rho(part, metric)
    eta = step_of_batches(metric, n, batch_size)
    steps = make_steps(part, eta=eta, rho=rho, unit=metric.unit, P=metric.P)
    state = State.start(part, x.copy(), u / rho)
    first, done = max(0.5, float(n // (8 * batch_size))), 0
    seeds = sampling.random_state(seed)
    for point in svr_d(part, steps, state, seed=seeds, batch_size=batch_size, first=first):
        done += point.gradients
        if point.complete and done >= passes * max(n, FEWEST):
            break
    return point.x, point.u
