"""Tables in, models on disk: the contracts that files must keep, their readers, the model store."""

from telic.data.store import StoredModel, atomic_path, load_model, save_model

__all__ = ["StoredModel", "atomic_path", "load_model", "save_model"]
