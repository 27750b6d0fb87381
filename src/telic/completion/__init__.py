"""Query completion that adapts while the user types: adaQAC, AppAware and their rivals."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.completion.box.completer import Completer
    from telic.completion.box.composition import Composition, Lesson
    from telic.completion.box.suggestion import Explanation, Suggestion
    from telic.completion.box.user_state import UserState
    from telic.completion.engine.folding import fold
    from telic.completion.engine.index_in_pieces import index_in_pieces
    from telic.completion.engine.prefix_index import PrefixIndex
    from telic.completion.engine.rules import DenyList, Synonyms
    from telic.completion.evaluation.adaqac_evaluation import Result, evaluate
    from telic.completion.evaluation.compare import compare_completers
    from telic.completion.fit.from_compositions import fit_completer
    from telic.completion.fit.from_files import fit_files
    from telic.completion.learning.adaqac import BOUNDED, CAREFUL, PAPER, PROTOCOLS, Protocol
    from telic.completion.learning.phone_ranker import Phone, PhoneRanker
    from telic.completion.learning.relevance import Relevance
    from telic.completion.learning.replayed_log import Replay
    from telic.completion.learning.saturation import Saturation
else:
    __getattr__, __dir__ = lazy_names(__name__)

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
    "index_in_pieces",
]
