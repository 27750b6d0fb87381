"""Query completion that adapts while the user types: adaQAC, AppAware and their rivals."""

from telic.completion.adaqac import BOUNDED, CAREFUL, PAPER, PROTOCOLS, Protocol
from telic.completion.cold_start import fit_files
from telic.completion.compare import compare_completers
from telic.completion.completer import Completer
from telic.completion.composition import Composition, Lesson
from telic.completion.evaluation import Result, evaluate
from telic.completion.fitting import fit_completer
from telic.completion.folding import fold
from telic.completion.index import PrefixIndex
from telic.completion.phones import Phone, PhoneRanker
from telic.completion.relevance import Relevance
from telic.completion.replay import Replay
from telic.completion.rules import DenyList, Synonyms
from telic.completion.saturation import Saturation
from telic.completion.suggestion import Explanation, Suggestion
from telic.completion.user_state import UserState

__all__ = [
    "BOUNDED",
    "CAREFUL",
    "PAPER",
    "PROTOCOLS",
    "Completer",
    "Composition",
    "DenyList",
    "Explanation",
    "Lesson",
    "Phone",
    "PhoneRanker",
    "PrefixIndex",
    "Protocol",
    "Relevance",
    "Replay",
    "Result",
    "Saturation",
    "Suggestion",
    "Synonyms",
    "UserState",
    "compare_completers",
    "evaluate",
    "fit_completer",
    "fit_files",
    "fold",
]
