"""Multinomial elastic nets: Newton's models class by class, accelerated, to a certified gap."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice

import numpy as np
from scipy.linalg import qr

from telic.errors import warn_unconverged
from telic.optim.design import Design
from telic.optim.loop import Record
from telic.optim.losses import Squared
from telic.optim.methods.gram_descent import descend, descend_together
from telic.optim.methods.prox_newton_anderson import mixture
from telic.optim.methods.sampled_gram import sampled, weighted_gram
from telic.optim.penalties import ElasticNet, soft
from telic.optim.problem import Problem
from telic.optim.recentring import exact_intercept
from telic.optim.softmax import SoftmaxProblem, best_intercepts
from telic.optim.softmax_lbfgs import descend_ridge

LARGEST = 40_000_000
"""Numbers that the models of all classes may hold; beyond it they know the diagonal only."""
_ROWS = 10
"""Rows of the models' sample, times the features."""
_MEMORY = 5
"""Steps between two extrapolations, as in Bertrand and Massias (2021)."""
_STALE = 8
"""Steps after which slow models are formed anew."""
_SMALL = 50_000
"""Numbers of the data, times the classes, below which L-BFGS takes longer than Newton's models."""
_FIRST = 4
"""Steps by diagonal models before L-BFGS: under a strong penalty they are enough."""


@dataclass(frozen=True, slots=True)
class SoftmaxResult:
    """What was found, and how sure it is; the terms are those of `telic.optim.SolveResult`."""

    coef: np.ndarray
    """Shape (K, d)."""
    intercept: np.ndarray
    """Shape (K,)."""
    objective: float
    gap: float
    passes: float
    converged: bool
    history: list[Record] = field(repr=False)


def solve_softmax(
    problem: SoftmaxProblem,
    *,
    tol: float,
    max_passes: float,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    quiet: bool = False,
) -> SoftmaxResult:
    """Minimise a `SoftmaxProblem` to a duality gap of tol times its objective at W = 0.

    The Hessian of softmax in the scores of a row, diag(p) − p pᵀ, lies below twice its diagonal, so
    a model of each class of its own, up to twice as curved as that class alone, bounds them all.
    Each is minimised by coordinate descent on the Gram matrix of a sample of the rows; a line
    search makes up for what the sample missed, and every five steps Anderson's extrapolation, kept
    where it lowers the objective, for what the classes do not know of each other. A ridge is
    brought there by L-BFGS, unless that takes longer than the models.

    Parameters
    ----------
    problem : SoftmaxProblem
    tol, max_passes
        As in `telic.optim.minimize`.
    start : tuple of arrays, optional
        Coefficients of shape (K, d) and intercepts of shape (K,) to start at.
    quiet : bool
        Whether not to warn of a tolerance that was not reached.
    """
    began = time.perf_counter()
    alone, zero = _intercepts_alone(problem)
    passes = 0.0
    start = start or (np.zeros((problem.classes, problem.design.d)), alone)
    if _rows_span_less(problem):
        start, passes = _solved_in_the_span(problem, tol, max_passes, start)
    state = _State.of(problem, start)
    bounded = problem.penalty.l1 > 0 or problem.penalty.l2 > 0
    lower, history = -np.inf, []
    slope0 = np.nan
    converged = False
    for gradient, read in _way(problem, state, tol * zero, max_passes - passes):
        passes += read
        objective = state.risk + problem.value(state.W)
        if bounded:
            lower = max(lower, problem.lower_bound(state.p, gradient + problem.own))
            measure = gap = max(objective - lower, 0.0)
            target = tol * zero
        else:
            gap, measure = np.nan, float(np.abs(gradient).max())
            slope0 = measure if np.isnan(slope0) else slope0
            target = tol * slope0
        history.append(Record(passes, 0, time.perf_counter() - began, objective, gap))
        converged = measure <= max(target, 4e-15 * zero)
        if converged or passes >= max_passes:
            break
    if not converged and not quiet:
        warn_unconverged(
            f"softmax stopped after {passes:.4g} passes with a "
            f"{'duality gap' if bounded else 'gradient'} of {measure:.3g}, above the {target:.3g} "
            "asked for. Raise max_iter or tol, or scale the features.",
            stacklevel=3,
        )
    if not bounded and not quiet and _separates(problem, state):
        warn_unconverged(
            "the classes are separated, so without l1 and l2 the softmax loss has no minimum and "
            "the coefficients only grow. Set l1 or l2.",
            stacklevel=3,
        )
    b, rounding = _for_the_data(problem, state)
    return SoftmaxResult(
        coef=state.W,
        intercept=b,
        objective=objective + rounding,
        gap=max(gap + rounding, 0.0) if bounded else gap,
        passes=passes,
        converged=converged,
        history=history,
    )


def _separates(problem: SoftmaxProblem, state: "_State") -> bool:
    """Whether each row that counts has its highest score, without the offset, in its own class."""
    scores = problem.predict(state.W, state.b)[problem.mass > 0]
    rows, labels = np.arange(len(scores)), problem.labels[problem.mass > 0]
    own = scores[rows, labels]
    scores[rows, labels] = -np.inf
    return bool((own > scores.max(axis=1)).all())


def softmax_path(
    problem: SoftmaxProblem, penalties: Iterable[ElasticNet], *, tol: float, max_passes: float
) -> Iterator[SoftmaxResult]:
    """Solve under the λ₁ and λ₂ of one penalty after another, each from the last one's solution."""
    start = None
    for each in penalties:
        penalty = replace(problem.penalty, l1=each.l1, l2=each.l2)
        result = solve_softmax(
            replace(problem, penalty=penalty), tol=tol, max_passes=max_passes, start=start
        )
        start = result.coef, result.intercept
        yield result


def _begins_smoothly(problem: SoftmaxProblem) -> bool:
    """Whether L-BFGS is tried: on ridges that are not small."""
    size = problem.design.n * problem.design.d * problem.classes
    return problem.penalty.l1 == 0 < problem.penalty.l2 and size >= _SMALL


def _cost_of_models(problem: SoftmaxProblem) -> float:
    """Gradients that could be computed while Newton's models are formed once."""
    n, d = problem.design.n, problem.design.d
    return np.inf if _knows_little(problem) else min(n, _ROWS * d) * d / (4 * n)


def _knows_little(problem: SoftmaxProblem) -> bool:
    """Whether the models would be too large, and are diagonals."""
    return problem.classes * problem.design.d**2 > LARGEST


def _rows_span_less(problem: SoftmaxProblem) -> bool:
    """Whether the optimum, a combination of few dense rows, is found sooner by their products."""
    n, d = problem.design.n, problem.design.d
    few = 2 * n <= d and problem.classes * n * n <= LARGEST
    return few and not problem.design.is_sparse and problem.penalty.l1 == 0 < problem.penalty.l2


def _solved_in_the_span(
    problem: SoftmaxProblem, tol: float, max_passes: float, start: tuple[np.ndarray, np.ndarray]
) -> tuple[tuple[np.ndarray, np.ndarray], float]:
    """Coefficients and intercepts of a ridge with fewer rows than features, and the passes.

    With X = L Qᵀ, Q of orthonormal columns, W = V Qᵀ has the scores L Vᵀ and the norm of V: L takes
    the place of the data. Where V is within 0.9 tol of the optimum, rounding leaves W within tol.
    """
    Q, R = qr(np.asarray(problem.design.matrix.T, np.float64), mode="economic")
    few = replace(
        problem,
        design=Design(np.ascontiguousarray(R.T)),
        own=problem.own @ Q,
        penalty=ElasticNet(0.0, problem.penalty.l2),
        columns=problem.columns[:0],
        centres=problem.centres[:0],
    )
    W, b = start
    there = W @ Q, b + W[:, problem.columns] @ problem.centres
    # Rounding may hold it up where scales differ; the caller goes on with the features then.
    most = max_passes / 2
    found = solve_softmax(few, tol=0.9 * tol, max_passes=most, start=there, quiet=True)
    W = found.coef @ Q.T
    return (W, found.intercept - W[:, problem.columns] @ problem.centres), found.passes


def _intercepts_alone(problem: SoftmaxProblem) -> tuple[np.ndarray, float]:
    """Best intercepts of a model without coefficients, for the columns as they came; its loss."""
    b, shares = np.zeros(problem.classes), problem.shares
    if problem.fit_intercept:
        b = np.log(shares)
        b -= b.mean()
    offset = problem.offset
    if offset is None:
        return b, float(-(shares * b).sum() + np.log(np.exp(b).sum()))
    return best_intercepts(problem, offset, b)


def _for_the_data(problem: SoftmaxProblem, state: "_State") -> tuple[np.ndarray, float]:
    """Intercepts for the columns as they came, and what their rounding adds to the loss.

    No probability changes when all of them move alike: seen from the columns' centres they add up
    to nothing.
    """
    if not problem.fit_intercept:
        return state.b, 0.0
    own = state.b - state.b.mean()
    b, off = np.empty_like(own), np.empty_like(own)
    for k, row in enumerate(state.W[:, problem.columns]):
        exact = exact_intercept(own[k], problem.centres, row)
        b[k] = float(exact)
        off[k] = float(Fraction(b[k]) - exact)
    scores = state.z + (own - state.b + off)
    return b, problem.risk(scores, np.empty_like(state.p)) - state.risk


@dataclass(slots=True)
class _State:
    """Where the solver is."""

    W: np.ndarray
    b: np.ndarray
    z: np.ndarray
    p: np.ndarray
    risk: float

    @classmethod
    def of(cls, problem: SoftmaxProblem, start: tuple[np.ndarray, np.ndarray]) -> "_State":
        W, b = start
        b = b + W[:, problem.columns] @ problem.centres
        z = problem.predict(W, b)
        if problem.offset is not None:
            z += problem.offset
        p = np.empty_like(z)
        return cls(W.copy(), b, z, p, problem.risk(z, p))

    def try_at(
        self, problem: SoftmaxProblem, W: np.ndarray, b: np.ndarray, z: np.ndarray, most: float
    ) -> bool:
        """Go there if the objective is at most that; whether it was."""
        p = np.empty_like(self.p)
        risk = problem.risk(z, p)
        if not risk + problem.value(W) <= most:
            return False
        self.W, self.b, self.z, self.p, self.risk = W, b, z, p, risk
        return True


@dataclass(slots=True)
class _Models:
    """Quadratic models of the loss, one for each class, with the intercepts eliminated."""

    problem: SoftmaxProblem
    rows: int
    full: bool
    matrices: np.ndarray = field(default_factory=lambda: np.empty(0))
    means: np.ndarray = field(default_factory=lambda: np.empty(0))
    weights: np.ndarray = field(default_factory=lambda: np.empty(0))

    def form(self, p: np.ndarray) -> None:
        """Take the curvatures p (1 − p) of a sample of the rows."""
        K, d = self.problem.classes, self.problem.design.d
        design, mass = self.problem.design, self.problem.mass
        data = Problem(
            *(design, mass, Squared(), self.problem.penalty, mass, self.problem.fit_intercept)
        )
        self.means, self.weights = np.zeros((K, d)), np.ones(K)
        if not self.full:
            matrix = design.matrix
            squares = matrix.multiply(matrix) if design.is_sparse else np.square(matrix)
            curved = (p * (1.0 - p) + 1e-12) * mass[:, None]
            self.matrices = np.ascontiguousarray((squares.T @ curved).T, dtype=np.float64)
            self.weights = curved.sum(axis=0)
            return
        part, some = sampled(data, self.rows)
        self.rows = min(design.n, 4 * self.rows)
        self.matrices = np.empty((K, d, d))
        for k in range(K):
            q = p[some, k]
            curved = np.ascontiguousarray((q * (1.0 - q) + 1e-12) * part.mass)
            self.means[k], self.weights[k] = weighted_gram(part, curved, self.matrices[k])

    def minimum(
        self, W: np.ndarray, gradient: np.ndarray, slope_b: np.ndarray, bend: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where models that much more curved are least: coefficients, and moves of intercepts."""
        K = len(W)
        l1, l2 = self.problem.penalty.l1, self.problem.penalty.l2
        target = W.copy()
        if not self.full:
            # The line search finds how much more curved the diagonal alone has to be.
            h = bend * np.maximum(self.matrices, 1e-300) + l2
            if self.problem.is_grouped:
                h = h.max(axis=0)
            at = W - (gradient + l2 * W) / h
            shrunk = _shrunk(at, l1 * K**0.5 / h) if self.problem.is_grouped else soft(at, l1 / h)
            return shrunk, -slope_b / (bend * self.weights)
        slopes = (gradient - self.means * slope_b[:, None]) / bend
        if self.problem.is_grouped:
            descend_together(
                *(self.matrices, slopes, target, np.empty(K)),
                *(l1 * K**0.5 / bend, l2 / bend, 1e-2, 100),
            )
        else:
            for k in range(K):
                descend(
                    *(self.matrices[k], slopes[k], target[k]),
                    *(l1 / bend, l1 / bend, l2 / bend, 1e-2, 0.0, 100),
                )
        move = target - W
        return target, -(self.means * move).sum(axis=1) - slope_b / (bend * self.weights)


def _shrunk(at: np.ndarray, cut: np.ndarray) -> np.ndarray:
    """Columns shortened by `cut`, or zero."""
    norms = np.linalg.norm(at, axis=0)
    return at * (np.maximum(norms - cut, 0.0) / np.where(norms > 0.0, norms, 1.0))


def _way(
    problem: SoftmaxProblem, state: _State, gap: float, most: float
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield as `_steps` does, after L-BFGS where it is tried."""
    steps, read = _steps(problem, state), 0.0
    if _begins_smoothly(problem):
        if _knows_little(problem):
            yield from islice(steps, _FIRST)
        W, b, z, read = descend_ridge(
            *(problem, state.W, state.b),
            gap=gap,
            max_passes=most * (0.9 if _knows_little(problem) else 0.5),  # the rest is the models'
            patience=50 + 5 * _cost_of_models(problem),
        )
        state.try_at(problem, W, b, z, state.risk + problem.value(state.W))
        steps = _steps(problem, state)
    for gradient, passes in steps:
        yield gradient, passes + read
        read = 0.0


def _steps(problem: SoftmaxProblem, state: _State) -> Iterator[tuple[np.ndarray, float]]:
    """Yield the gradient of the loss at each state, and the passes over the data it took."""
    n, d = problem.design.n, problem.design.d
    models = _Models(problem, min(n, _ROWS * d), not _knows_little(problem))
    bend, age, last, slow = 1.2, 0, np.inf, True
    trail: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    while True:
        gradient = problem.back(state.p) - problem.own
        yield gradient, 2.0
        if age == 0 or (slow and age >= _STALE):
            models.form(state.p)
            age = 0
        age += 1
        slope_b = np.zeros(problem.classes)
        if problem.fit_intercept:
            slope_b = problem.mass @ state.p - problem.shares
        objective = state.risk + problem.value(state.W)
        for _ in range(60):
            target, move_b = models.minimum(state.W, gradient, slope_b, bend)
            if not problem.fit_intercept:
                move_b = np.zeros(problem.classes)
            move = target - state.W
            slope = float((gradient * move).sum() + slope_b @ move_b)
            promised = objective - state.risk - problem.value(target) - slope
            z = state.z + problem.predict(move, move_b)
            # Of a small loss, too, the sum has the rounding of scores that are not small.
            slack = 1e-14 * max(abs(objective), 1.0)
            if state.try_at(
                problem, target, state.b + move_b, z, objective - 0.1 * promised + slack
            ):
                break
            bend *= 1.5
        bend = max(1.0, 0.9 * bend)
        slow = promised > 0.5 * last
        last = promised
        _centre(problem, state)
        trail.append((state.W, state.b, state.z))
        if len(trail) > _MEMORY:
            _extrapolate(problem, state, trail)
            trail = []


def _centre(problem: SoftmaxProblem, state: _State) -> None:
    """Move all classes' coefficients of a feature together to where the penalty is least.

    The loss does not see it: the scores of a row all move by the same. Squares and norms of groups
    are least around the mean. With λ₁ the least lies between two coefficients, or at one: of the
    candidates the best is taken.
    """
    l1, l2 = problem.penalty.l1, problem.penalty.l2
    if l1 == 0.0 or problem.is_grouped:
        shift = state.W.mean(axis=0)
    else:
        # Subgradient of Σ_k l1 |w_k − c| + l2/2 (w_k − c)² at each c = w_j, in order.
        ordered = np.sort(state.W, axis=0)
        K = ordered.shape[0]
        if l2 == 0.0:
            low, high = ordered[(K - 1) // 2], ordered[K // 2]
            # A median: the one nearest to zero keeps what is zero.
            shift = np.clip(0.0, low, high)
        else:
            mean = ordered.mean(axis=0)
            counts = np.arange(K + 1)[:, None]
            # With m coefficients below c: K l2 (c − mean) + l1 (2 m − K) = 0.
            free = mean - l1 * (2 * counts - K) / (K * l2)
            edges = np.vstack([np.full_like(mean, -np.inf), ordered, np.full_like(mean, np.inf)])
            inside = np.clip(free, edges[:-1], edges[1:])
            apart = ordered[None] - inside[:, None]
            costs = l1 * np.abs(apart).sum(axis=1) + 0.5 * l2 * (apart**2).sum(axis=1)
            shift = np.take_along_axis(inside, costs.argmin(axis=0)[None], axis=0)[0]
    if shift.any():
        W = state.W - shift
        if problem.value(W) < problem.value(state.W):
            common = np.asarray(problem.design.matrix @ shift).ravel()
            state.W, state.z = W, state.z - common[:, None]


def _extrapolate(
    problem: SoftmaxProblem,
    state: _State,
    trail: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> None:
    """Go to the combination of the last states whose differences nearly cancel, if it is better."""
    flat = np.array([np.concatenate([W.ravel(), b]) for W, b, _ in trail])
    shares = mixture(flat)
    if shares is not None:
        W, b, z = (
            sum(share * part for share, part in zip(shares, parts, strict=True))
            for parts in zip(*trail[1:], strict=True)
        )
        state.try_at(problem, W, b, z, state.risk + problem.value(state.W))
