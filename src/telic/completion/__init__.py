"""Query completion that adapts while the user types: adaQAC, AppAware and their rivals."""

from telic.completion.adaqac import CAREFUL, PAPER, PROTOCOLS, Protocol
from telic.completion.completer import Completer, UserState
from telic.completion.composition import Composition, Explanation, Lesson, Suggestion
from telic.completion.evaluation import Result, evaluate
from telic.completion.fitting import fit_completer
from telic.completion.folding import fold
from telic.completion.index import PrefixIndex
from telic.completion.phones import Phone, PhoneRanker
from telic.completion.relevance import Relevance
from telic.completion.replay import Replay

__all__ = [
    "CAREFUL",
    "PAPER",
    "PROTOCOLS",
    "Completer",
    "Composition",
    "Explanation",
    "Lesson",
    "Phone",
    "PhoneRanker",
    "PrefixIndex",
    "Protocol",
    "Relevance",
    "Replay",
    "Result",
    "Suggestion",
    "UserState",
    "evaluate",
    "fit_completer",
    "fold",
]
