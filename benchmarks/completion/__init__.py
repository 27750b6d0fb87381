"""Completion: keystrokes, AppAware beside rivals, other engines, the service over HTTP."""
