"""Tables in, models on disk: the contracts that files must keep, their readers, the model store."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.data.atomic_writes import atomic_path
    from telic.data.compositions import CompositionLog, read_compositions
    from telic.data.own_outputs import check_output, refuse_unwritable
    from telic.data.queries import QueryLog, read_queries
    from telic.data.saved_models import StoredModel, load_model, save_model
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CompositionLog",
    "QueryLog",
    "StoredModel",
    "atomic_path",
    "check_output",
    "load_model",
    "read_compositions",
    "read_queries",
    "refuse_unwritable",
    "save_model",
]
