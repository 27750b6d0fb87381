"""The service's log: lines for people or for machines, neither with queries or ids."""

import json
import logging
import re
import traceback
from types import TracebackType
from typing import Any

from telic.serve.operation.settings import Settings


class PlainLines(logging.Formatter):
    """Lines for people; of an error its type and places alone: its own text may quote a request."""

    def formatException(self, ei: Any) -> str:
        """Return what is said of an error, if there is one."""
        if ei[0] is None:
            return ""
        return "\n".join([ei[0].__name__, *(f"  at {place}" for place in _places(ei[2]))])


class JsonLines(logging.Formatter):
    """A JSON object a line: time, level, logger, message; of an error its type and places alone."""

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
            said["at"] = _places(record.exc_info[2])
        return json.dumps(said)


class BeforeDetails(logging.Filter):
    """Ends a message before the first object that it shows, whose text may quote a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the record, with less in it."""
        record.msg, record.args = re.split(r"[\n(<]", record.getMessage())[0].rstrip(": "), ()
        return True


def _places(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def log_config(settings: Settings) -> dict[str, Any]:
    """Return `logging.config.dictConfig`'s settings: everything to standard error."""
    kind: dict[str, Any] = {"()": PlainLines, "fmt": "%(asctime)s %(levelname)s %(message)s"}
    if settings.log_json:
        kind = {"()": JsonLines}
    others = {"handlers": ["stderr"], "level": "WARNING", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": kind},
        "filters": {"before details": {"()": BeforeDetails}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "loggers": {
            "telic.serve": {"handlers": ["stderr"], "level": "INFO"},
            **dict.fromkeys(("uvicorn", "sqlalchemy"), others),
            "asyncio": others | {"filters": ["before details"]},
        },
    }
