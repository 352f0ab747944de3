"""Logs as JSON Lines: what happened, and nothing of what was said.

Neither messages nor headers nor queries are ever handed to the log. Of an exception only its type and the places it
came through are written: its text could quote what was being read.
"""

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

__all__ = ["JsonFormatter", "configuration"]


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; the dict in its `fields` is added."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            line["exception"] = record.exc_info[0].__name__
            line["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
        return json.dumps(line, ensure_ascii=False, default=str)


def configuration(level: str) -> dict[str, Any]:
    """For `logging.config`: everything to standard error, as JSON."""
    logger = {"handlers": ["stderr"], "level": level, "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": f"{__name__}.{JsonFormatter.__name__}"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "loggers": {"dialects": logger, "uvicorn": logger},
    }
