"""Measures of ranking and classification, paired tests and intervals."""

from telic.evaluate.paired import PairedTest, paired_t_test
from telic.evaluate.ranking import mean_reciprocal_rank, reciprocal_ranks, success_rate
from telic.evaluate.spread import standard_deviations

__all__ = [
    "PairedTest",
    "mean_reciprocal_rank",
    "paired_t_test",
    "reciprocal_ranks",
    "standard_deviations",
    "success_rate",
]
