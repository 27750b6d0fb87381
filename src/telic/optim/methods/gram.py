"""Newton's method with a d × d model of the loss, for few features."""

from collections import deque
from collections.abc import Generator

import numpy as np
from scipy.linalg import lapack

from telic.errors import InputError
from telic.optim.loop import Iterate
from telic.optim.method_facts import Method
from telic.optim.methods.gram_descent import add_two, minimise
from telic.optim.methods.line_search import backtrack
from telic.optim.methods.sampled_gram import sampled, weighted_diagonal, weighted_gram
from telic.optim.problem import Problem

LARGEST_D = 4096
"""Features beyond which d² numbers are not worth their memory (134 MB at this size)."""
_ROWS = 10
"""Rows of the first sample, times the features: enough for a step to be nearly Newton's."""
_MORE = 4
"""How many times as many rows the next sample has."""
_SLOW = 0.3
"""Share of the last step's promise above which the model is formed anew, of more rows."""
_STUCK = 0.5
"""The same where it already was of all rows: then its curvatures only have aged."""
_CARE = 1e-3, 0.1
"""Least and largest part of its first round that a model is minimised to."""
_MEMORY = 20
"""Steps that the Cholesky model remembers."""
_PASS = {True: 16.0, False: 10.0}
"""Features at which a row's part of the matrix costs a pass over it, by whether loss is squared."""
_STEP = 8
"""Rows per feature over which a pass costs as much as to minimise a model that has learned."""
_WORTH = 7.0
"""Steps that a matrix must cost for its diagonal to be tried before it."""
_GLANCE = 8, 256
"""Rows that are looked at before that: one of so many, and how many at least."""
_BENT = 2.0
"""How many times as much as the diagonal says the loss may bend along a step for it to decrease."""
_FAR = 1e-7
"""Share of the first step's promise at which the steps are expected to end."""
_TREADING = 0.9
"""Share of the last step's promise above which a diagonal leads nowhere."""


def gram(
    problem: Problem,
    *,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Generator[Iterate, Problem | None]:
    """Run proximal Newton with a d × d model of the loss, one iterate per step.

    The model of squared loss is Xᵀ D X, formed once. That of another loss starts from a sample of
    the rows, which costs less than a pass over all of them, and learns from every step: by the
    rule of BFGS it agrees with the change of the gradient along it. It is formed anew, from four
    times as many rows at their latest curvatures, when a step promises more than three tenths of
    what the one before did. With an intercept it is centred: features far from zero slow nothing.

    Where the first matrix would cost many passes over dense rows, its diagonal is tried before it,
    and learns in the same way: features that hardly depend on each other need no matrix. `_Trial`
    says when to begin and when to end that.

    Under λ₂ alone the model is minimised by a Cholesky factor, otherwise by coordinate descent,
    with a factor for the coordinates in use where descent takes long (`gram_descent.minimise`).
    Groups are handled as blocks, by proximal gradient steps with the block's own Lipschitz
    constant.

    `problem`, `coef` and `intercept` are as in `telic.optim.methods.asbcd.asbcd`.

    Raises
    ------
    InputError
        If there are more than `LARGEST_D` features.
    """
    n, d = problem.design.n, problem.design.d
    if d > LARGEST_D:
        raise InputError(f"gram keeps {d}² numbers. Use prox_newton or auto.")
    squared = problem.loss.code == 0
    rows = n if squared else min(n, _ROWS * d)
    trial = _Trial.before(problem, rows)
    model: _Descent | _Cholesky | None = None
    z, a = problem.predict(coef, intercept), np.empty(n)
    before = move = target = coef
    slow = _SLOW
    spent, risk, step, last, promised = n, None, 1.0, 0.0, 0.0
    while True:
        intercept, risk = problem.settle(z, intercept, risk)
        problem.slopes(z, out=a)
        gradient = problem.back(a)
        # Zeros are seldom the answer, and for squared loss the next step often is.
        if model is not None or not squared or coef.any():
            other = yield Iterate(coef, intercept, spent, z, a, gradient, risk)
            spent = 0
            if other is not None:
                # A Cholesky factor is a model of smooth problems only. A finished matrix serves
                # every penalty, so that none is put off any longer.
                if trial is not None or other.is_smooth != problem.is_smooth:
                    model = trial = None
                problem, last = other, np.inf
                if model is not None:
                    model.take(problem)
        spent += n
        slope_b = a.sum() if problem.fit_intercept else 0.0
        if model is not None:
            if not model.exact and step > 0.0:
                model.learn(step * move, gradient - before)
            target, promised = _minimum(problem, model, coef, gradient)
            if trial is not None and not trial.pays(step, promised, last):
                model = None
        elif trial is not None:
            model = _begun(problem, coef, z, gradient)
            spent += n
            if model is not None:
                target, promised = _minimum(problem, model, coef, gradient)
        enough = model is not None and (model.exact or trial is not None or promised <= slow * last)
        if model is None or step == 0.0 or not enough:
            # A factor that does not even decrease the objective is rounding.
            known = type(model) if model is not None and step > 0.0 else _Descent
            model = (_Cholesky if model is None and problem.is_smooth else known)(problem)
            trial = None
            part, some = sampled(problem, rows)
            # The slopes are done with: their array takes the curvatures, then the move's.
            model.form(part, part.curvatures(np.ascontiguousarray(z[some]), out=a[: part.design.n]))
            spent += part.design.n
            slow = _STUCK if part is problem else _SLOW
            rows = min(n, _MORE * rows)
            target, promised = _minimum(problem, model, coef, gradient)
        # The model need not be solved much better than it foretold: Eisenstat and Walker's rule.
        model.care = float(np.clip(promised / last, *_CARE)) if 0.0 < last < np.inf else _CARE[1]
        before, move, last = gradient, target - coef, promised
        # The intercept's best move, as in `WorkingGram`.
        move_b = -(model.means @ move) - slope_b / model.weight if problem.fit_intercept else 0.0
        move_z = problem.predict(move, move_b, out=a)
        total = gradient @ move + slope_b * move_b
        step, risk = backtrack(problem, problem.penalty, z, move_z, coef, move, total, risk)
        # A move of nothing but rounding may be infinite.
        if step > 0.0:
            coef += step * move
            intercept += step * move_b
            move_z *= step
            z += move_z


METHOD = Method("gram", gram, random=False, resumes=True, offsets=True)


class _Trial:
    """Whether steps without a matrix cost less than the matrix and the steps with it would.

    The diagonal is not worth another step in three cases: a full one does not decrease the
    objective enough, as where features resemble each other; its steps come to nothing; or those
    that are left at the rate so far cost more than a matrix does.
    """

    def __init__(self, price: float) -> None:
        self.price, self.steps, self.first = price, 0, 0.0

    @classmethod
    def before(cls, problem: Problem, rows: int) -> "_Trial | None":
        """Return a trial if the matrix of so many rows costs as much as several steps."""
        n, d = problem.design.n, problem.design.d
        price = d / _PASS[problem.loss.code == 0] * rows / (n + _STEP * d)
        return None if problem.design.is_sparse or price < _WORTH else cls(price)

    def pays(self, step: float, promised: float, last: float) -> bool:
        """Say whether to take one more step, which promises so much, after one that did `last`."""
        self.first = self.first or last
        self.steps += 1
        if step < 1.0 or not 0.0 < promised < _TREADING * last:
            return False
        rate = np.log(self.first / promised) / self.steps
        return bool(np.log(promised / (_FAR * self.first)) <= self.price * rate)


class _Model:
    """A quadratic model of the loss in the features, with the intercept at its best."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        d = problem.design.d
        self.diagonal, self.means, self.weight = np.zeros(d), np.zeros(d), 1.0
        self.matrix = np.empty((0, 0))
        self.care = _CARE[1]
        self.formed = self.exact = False
        """Whether the matrix is of rows, and whether there is nothing that it could learn."""

    def begin(self, part: Problem, curvatures: np.ndarray) -> None:
        """Take the curvatures of the rows of a part of the problem, each feature by itself."""
        self.diagonal, self.means, self.weight = weighted_diagonal(part, curvatures)
        self.formed = self.exact = False

    def form(self, part: Problem, curvatures: np.ndarray) -> None:
        """Take the curvatures of the rows of a part of the problem."""
        self.matrix = np.empty((part.design.d, part.design.d))
        self.means, self.weight = weighted_gram(part, curvatures, self.matrix)
        self.diagonal = self.matrix.diagonal().copy()
        self.formed, self.exact = True, part.loss.code == 0

    def take(self, problem: Problem) -> None:
        """Go on with another penalty."""
        self.problem = problem


class _Descent(_Model):
    """By coordinate descent, or descent by blocks."""

    def begin(self, part: Problem, curvatures: np.ndarray) -> None:
        """Take the curvatures, into a matrix that will learn the rest."""
        super().begin(part, curvatures)
        self.matrix = np.diag(self.diagonal)

    def learn(self, move: np.ndarray, change: np.ndarray) -> None:
        """Update the matrix by the rule of BFGS, which keeps it positive."""
        product, along = self.matrix @ move, change @ move
        bend = move @ product
        if along > 1e-10 * bend > 0.0:
            add_two(self.matrix, change, 1.0 / along, product, -1.0 / bend)

    def minimum(self, coef: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Coefficients at which the model, with the penalty, is nearly least."""
        target, slope = coef.copy(), gradient.copy()
        # An exact model is worth more rounds.
        tol = 1e-6 if self.exact else self.care
        minimise(self.matrix, slope, target, self.problem.penalty, tol=tol, rounds=1000)
        return target


class _Cholesky(_Model):
    """By a Cholesky factor, and by the two loops of L-BFGS around it; under λ₂ alone."""

    def begin(self, part: Problem, curvatures: np.ndarray) -> None:
        """Take the curvatures: a diagonal is divided by."""
        super().begin(part, curvatures)
        self._factorise()

    def form(self, part: Problem, curvatures: np.ndarray) -> None:
        """Take the curvatures, and factorise."""
        super().form(part, curvatures)
        self._factorise()

    def take(self, problem: Problem) -> None:
        """Go on with another penalty: λ₂ is part of the factor."""
        super().take(problem)
        self._factorise()

    def _factorise(self) -> None:
        diagonal = self.diagonal + self.problem.l2
        # Where nothing bends nothing moves; where rounding has the last word it may not have signs.
        self.bends = np.where(diagonal > 0.0, diagonal * (1.0 + 1e-13), 1.0)
        self.factor = None
        if self.formed:
            np.fill_diagonal(self.matrix, self.bends)
            # LAPACK reads by columns, and the matrix is symmetric: its transpose is no copy.
            factor, info = lapack.dpotrf(self.matrix.T, lower=1)
            self.factor = factor if info == 0 else None
        self.pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=_MEMORY)

    def learn(self, move: np.ndarray, change: np.ndarray) -> None:
        """Remember the pair."""
        change = change + self.problem.l2 * move
        along = float(change @ move)
        if along > 0.0:
            self.pairs.append((move, change, along))

    def minimum(self, coef: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Coefficients at which the model, with the penalty, is least."""
        slope, shares = gradient + self.problem.l2 * coef, []
        for move, change, along in reversed(self.pairs):
            shares.append((move @ slope) / along)
            slope -= shares[-1] * change
        if self.factor is None:
            way = slope / self.bends
        else:
            way, _ = lapack.dpotrs(self.factor, slope, lower=1)
        for move, change, along in self.pairs:
            way += (shares.pop() - (change @ way) / along) * move
        return coef - way


def _begun(
    problem: Problem, coef: np.ndarray, z: np.ndarray, gradient: np.ndarray
) -> _Descent | _Cholesky | None:
    """Return a model of the diagonal, or None where a part of the rows says that it misleads."""
    share, least = _GLANCE
    part, some = sampled(problem, max(problem.design.n // share, least))
    model = (_Cholesky if problem.is_smooth else _Descent)(problem)
    bends = part.curvatures(np.ascontiguousarray(z[some]))
    model.begin(part, bends)
    move = _minimum(problem, model, coef, gradient)[0] - coef
    bent = bends @ part.predict(move, -(model.means @ move)) ** 2
    if not bent <= _BENT * (model.diagonal @ move**2):
        return None
    if part is not problem:
        model.begin(problem, problem.curvatures(z))
    return model


def _minimum(
    problem: Problem, model: _Descent | _Cholesky, coef: np.ndarray, gradient: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return where the model is least, and the decrease that its slope promises."""
    target = model.minimum(coef, gradient)
    promised = gradient @ (target - coef) + problem.penalty.value(target)
    return target, problem.penalty.value(coef) - promised
