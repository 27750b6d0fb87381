"""The search box as an HTTP service, and its page."""

from telic.serve.app import create_app, run, serving
from telic.serve.settings import Settings

__all__ = ["Settings", "create_app", "run", "serving"]
