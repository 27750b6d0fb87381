"""The search box as an HTTP service, and its page."""

from telic.serve.app import create_app
from telic.serve.server import run, serving
from telic.serve.settings import Settings
from telic.serve.workers import run_workers

__all__ = ["Settings", "create_app", "run", "run_workers", "serving"]
