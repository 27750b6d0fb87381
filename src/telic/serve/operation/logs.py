"""The service's log: lines for people or for machines, neither with queries or ids."""

import json
import logging
import traceback
from typing import Any

from telic.serve.operation.settings import Settings


class JsonLines(logging.Formatter):
    """A JSON object a line: time, level, logger, message; of an error its type and places alone.

    An exception's own text may quote a request.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        said: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0]:
            said["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            said["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(said)


def log_config(settings: Settings) -> dict[str, Any]:
    """Return `logging.config.dictConfig`'s settings: everything to standard error."""
    kind: dict[str, Any] = {"format": "%(asctime)s %(levelname)s %(message)s"}
    if settings.log_json:
        kind = {"()": "telic.serve.operation.logs.JsonLines"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": kind},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "loggers": {
            "telic.serve": {"handlers": ["stderr"], "level": "INFO"},
            "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        },
    }
