"""Each solver as a function of (objective, effort): more effort, a smaller gap, a longer run.

`EFFORTS` lists, for each, what it is called with until the wanted gap is reached. A solver whose
package is not installed is left out.
"""

from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import LogisticRegression

from telic.optim import solve

TOLERANCES = [10.0**-k for k in range(1, 13)]
LIBLINEAR = {"solver": "liblinear", "max_iter": 10_000}
EPOCHS = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]


def telic(objective, effort):
    """Our own; the step from one gap to the next is its tol."""
    return solve(objective.problem, tol=effort, max_passes=100_000).coef


def telic_asbcd(objective, effort):
    """ASBCD with optimal sampling and one block, stopped by passes as scikit-learn's saga is."""
    return solve(
        objective.problem, method="asbcd", tol=0.0, max_passes=effort, check_every=10**9
    ).coef


def _logistic(objective, **options):
    n, alpha = objective.y.size, objective.l1 + objective.l2
    model = LogisticRegression(
        C=1 / (n * alpha),
        l1_ratio=objective.l1 / alpha,
        fit_intercept=False,
        **options,
    )
    return model.fit(objective.X, objective.y).coef_.ravel()


def sklearn_saga(objective, effort):
    """scikit-learn's saga, stopped by epochs."""
    return _logistic(objective, solver="saga", max_iter=effort, tol=0.0, random_state=0)


def liblinear(objective, effort):
    """LIBLINEAR through scikit-learn: newGLMNET for ℓ₁."""
    return _logistic(objective, **LIBLINEAR, tol=effort)


def liblinear_dual(objective, effort):
    """LIBLINEAR through scikit-learn: dual coordinate descent for ℓ₂."""
    return _logistic(objective, **LIBLINEAR, tol=effort, dual=True, random_state=0)


def snapml(objective, effort):
    """IBM Snap ML's stochastic dual coordinate descent, stopped by epochs."""
    from snapml import LogisticRegression as Snap

    model = Snap(
        regularizer=objective.y.size * objective.l2,
        fit_intercept=False,
        dual=True,
        tol=0.0,
        max_iter=effort,
        n_jobs=1,
    )
    return np.asarray(model.fit(objective.X, objective.y).coef_).ravel()


def celer(objective, effort):
    """celer: working sets with dual extrapolation."""
    from celer import ElasticNet
    from celer import LogisticRegression as Celer

    options = {"fit_intercept": False, "tol": effort, "max_iter": 100}
    if objective.loss == "logistic":
        C = 1 / (objective.y.size * objective.l1)
        model = Celer(C=C, **options)
    else:
        alpha = objective.l1 + objective.l2
        model = ElasticNet(alpha=alpha, l1_ratio=objective.l1 / alpha, **options)
    return np.ravel(model.fit(objective.columns, objective.y).coef_)


def skglm(objective, effort):
    """skglm: ProxNewton for logistic loss, AndersonCD for squared loss."""
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Logistic, Quadratic
    from skglm.penalties import L1, L1_plus_L2
    from skglm.solvers import AndersonCD, ProxNewton

    alpha = objective.l1 + objective.l2
    penalty = L1_plus_L2(alpha, objective.l1 / alpha) if objective.l2 else L1(alpha)
    newton = objective.loss == "logistic"
    solver = (ProxNewton if newton else AndersonCD)(tol=effort, max_iter=200, fit_intercept=False)
    model = GeneralizedLinearEstimator(Logistic() if newton else Quadratic(), penalty, solver)
    return np.ravel(model.fit(objective.columns, objective.y).coef_)


EFFORTS = {
    "telic": (telic, TOLERANCES),
    "telic asbcd": (telic_asbcd, EPOCHS),
    "sklearn saga": (sklearn_saga, EPOCHS),
    "liblinear": (liblinear, TOLERANCES),
    "liblinear dual": (liblinear_dual, [10.0, 1.0, *TOLERANCES]),
    "snapml": (snapml, EPOCHS),
    "celer": (celer, TOLERANCES),
    "skglm": (skglm, TOLERANCES),
}


def installed(name: str) -> bool:
    """Whether the solver's package is there."""
    return name not in ("snapml", "celer", "skglm") or find_spec(name) is not None
