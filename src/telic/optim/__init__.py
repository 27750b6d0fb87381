"""Finite-sum convex solvers: variance reduction, duality gaps, scikit-learn estimators."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.optim.auto import choose_method
    from telic.optim.estimators.elastic_net_classifier import ElasticNetClassifier
    from telic.optim.estimators.elastic_net_cv import ElasticNetClassifierCV, ElasticNetRegressorCV
    from telic.optim.estimators.elastic_net_regressor import ElasticNetRegressor
    from telic.optim.loop import Record, SolveResult, certify
    from telic.optim.losses import Huber, Logistic, Poisson, Squared, SquaredHinge, Tweedie
    from telic.optim.penalties import ElasticNet, GroupElasticNet
    from telic.optim.problem import Problem, make_problem
    from telic.optim.solver import METHODS, minimize, safe_step, solve, solve_path
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "METHODS",
    "ElasticNet",
    "ElasticNetClassifier",
    "ElasticNetClassifierCV",
    "ElasticNetRegressor",
    "ElasticNetRegressorCV",
    "GroupElasticNet",
    "Huber",
    "Logistic",
    "Poisson",
    "Problem",
    "Record",
    "SolveResult",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "certify",
    "choose_method",
    "make_problem",
    "minimize",
    "safe_step",
    "solve",
    "solve_path",
]
