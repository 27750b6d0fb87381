"""The search box as an HTTP service, and its page."""

from typing import TYPE_CHECKING

from telic.lazy_names import lazy_names

if TYPE_CHECKING:
    from telic.serve.app import create_app
    from telic.serve.operation.settings import Settings
    from telic.serve.process.server import run, serving
    from telic.serve.process.workers import run_workers
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Settings", "create_app", "run", "run_workers", "serving"]
