"""Discrete choice: which candidate was picked, by conditional logit."""

from telic.choice.batch import descend, fit_groups, fit_pooled, leave_one_group_out
from telic.choice.choices import Choices
from telic.choice.online import learn_online

__all__ = [
    "Choices",
    "descend",
    "fit_groups",
    "fit_pooled",
    "learn_online",
    "leave_one_group_out",
]
