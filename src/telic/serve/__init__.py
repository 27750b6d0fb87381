"""The search box as an HTTP service, and its page."""

from telic.serve.app import create_app
from telic.serve.operation.settings import Settings
from telic.serve.process.server import run, serving
from telic.serve.process.workers import run_workers

__all__ = ["Settings", "create_app", "run", "run_workers", "serving"]
