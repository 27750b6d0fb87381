"""Finite sums with a penalty on a linear map of the weights: the stochastic ADMM family."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.optim.admm.consensus import ConsensusResult, consensus_admm
    from telic.optim.admm.defaults import safe_step
    from telic.optim.admm.duality_gap import certificate
    from telic.optim.admm.estimators.generalized_lasso import GeneralizedLasso, TrendFilter
    from telic.optim.admm.estimators.graph_fused import GraphFusedClassifier, GraphFusedRegressor
    from telic.optim.admm.feature_graphs import Graph, as_graph
    from telic.optim.admm.loop import AdmmResult
    from telic.optim.admm.optimum import Optimum
    from telic.optim.admm.problem import AdmmProblem, make_admm_problem
    from telic.optim.admm.separable_penalty import Separable, separable
    from telic.optim.admm.solve import METHODS, PRINTED, minimize_admm, solve_admm
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "METHODS",
    "PRINTED",
    "AdmmProblem",
    "AdmmResult",
    "ConsensusResult",
    "GeneralizedLasso",
    "Graph",
    "GraphFusedClassifier",
    "GraphFusedRegressor",
    "Optimum",
    "Separable",
    "TrendFilter",
    "as_graph",
    "certificate",
    "consensus_admm",
    "make_admm_problem",
    "minimize_admm",
    "safe_step",
    "separable",
    "solve_admm",
]
