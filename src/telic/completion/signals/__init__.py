"""A conditional logit over candidates; its signals come in groups that can be switched off."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.completion.signals.evaluation import controls, measured, models_of
    from telic.completion.signals.gates import learn, learn_pairs
    from telic.completion.signals.groups import FEATURES, GROUPS
    from telic.completion.signals.log_split import Searches
    from telic.completion.signals.pair_weights import PairLessons, pair_lessons_of
    from telic.completion.signals.ranker import SignalRanker
    from telic.completion.signals.sweep import Shrinkage
    from telic.completion.signals.weights import (
        STATIC,
        Lessons,
        SignalWeights,
        choosing_moments,
        lessons_of,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "FEATURES",
    "GROUPS",
    "STATIC",
    "Lessons",
    "PairLessons",
    "Searches",
    "Shrinkage",
    "SignalRanker",
    "SignalWeights",
    "choosing_moments",
    "controls",
    "learn",
    "learn_pairs",
    "lessons_of",
    "measured",
    "models_of",
    "pair_lessons_of",
]
