"""Problem (5.7.3) on chapter 5's three sets, and its certified optimum."""

from telic.data.data_sets import labelled_set
from telic.optim.admm import (
    AdmmProblem,
    Optimum,
    feature_graphs,
    make_admm_problem,
    separable,
    solve_admm,
)

SETS = {"20news": ("20news_comp_talk", None), "a9a": ("a9a", None), "ijcnn1": ("ijcnn1", 49_990)}
"""File and number of leading rows (None: all), as in the study of chapter 5."""


def load(name: str) -> AdmmProblem:
    """Return a set as graph-guided fused logistic regression with γ = 1e-3, no intercept."""
    file, rows = SETS[name]
    X, y, _ = labelled_set(file)
    graph = feature_graphs.inverse_covariance(X[:rows])
    penalty = separable(len(graph.edges), l1=1e-3)
    return make_admm_problem(X[:rows], y[:rows], A=graph.incidence, g=penalty)


def optimum(problem: AdmmProblem) -> Optimum:
    """Return the optimum, which batch ADMM's gap certifies to twelve digits."""
    result = solve_admm(
        problem, method="batch-admm", x_step="curvature", tol=1e-13, max_passes=100_000
    )
    return Optimum(problem, result.coef, result.dual)
