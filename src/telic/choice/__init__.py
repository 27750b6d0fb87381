"""Discrete choice: which candidate was picked, by conditional logit."""

from telic.choice.accelerated import fit_accelerated
from telic.choice.batch import descend, fit_groups, fit_pooled, leave_one_group_out
from telic.choice.choices import Choices
from telic.choice.elastic import Elastic, Fit
from telic.choice.factored import FactoredChoices
from telic.choice.online import learn_online
from telic.choice.printed import fit_printed
from telic.choice.saga import fit_saga
from telic.choice.sdca import fit_sdca

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
    "learn_online",
    "leave_one_group_out",
]
