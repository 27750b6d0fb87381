"""Discrete choice: which candidate was picked, by conditional logit."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.choice.accelerated_gradient import fit_accelerated
    from telic.choice.chapter3_algorithm import fit_printed
    from telic.choice.choices import Choices
    from telic.choice.elastic_net import Elastic, Fit
    from telic.choice.factored_choices import FactoredChoices
    from telic.choice.minibatch_saga import fit_saga
    from telic.choice.newton import (
        descend,
        fit_groups,
        fit_pooled,
        gap_bound,
        leave_one_group_out,
    )
    from telic.choice.online import learn_online
    from telic.choice.sdca import fit_sdca
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Choices",
    "Elastic",
    "FactoredChoices",
    "Fit",
    "descend",
    "fit_accelerated",
    "fit_groups",
    "fit_pooled",
    "fit_printed",
    "fit_saga",
    "fit_sdca",
    "gap_bound",
    "learn_online",
    "leave_one_group_out",
]
