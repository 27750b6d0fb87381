"""Measures of ranking and classification, paired tests, trials and intervals."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.evaluate.column_spread import standard_deviations
    from telic.evaluate.interleaving import Interleaved, preference, team_draft
    from telic.evaluate.off_policy import Value, doubly_robust, ips, mean_weight, snips
    from telic.evaluate.paired import PairedTest, paired_t_test
    from telic.evaluate.position_bias import examination
    from telic.evaluate.reciprocal_rank import mean_reciprocal_rank, reciprocal_ranks, success_rate
    from telic.evaluate.wilson import wilson_interval
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Interleaved",
    "PairedTest",
    "Value",
    "doubly_robust",
    "examination",
    "ips",
    "mean_reciprocal_rank",
    "mean_weight",
    "paired_t_test",
    "preference",
    "reciprocal_ranks",
    "snips",
    "standard_deviations",
    "success_rate",
    "team_draft",
    "wilson_interval",
]
