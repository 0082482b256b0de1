"""Lines on stderr: text for people, or JSON for log collectors.

The service logs everything through the logger `ebrank`. As JSON every line has the same shape,
requests included: time, level, event and message, then fields of the event.

A caller names the event and its fields with `extra=about("training", seconds=1.5)`.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

OTHER = "service"
"""The event of a line that names none."""

access = logging.getLogger("ebrank.access")
"""Logs requests: always as JSON, and only if that is wanted."""
access.propagate = False


def about(event: str, **fields: object) -> dict[str, Any]:
    """Return the `extra` of a record: what it is about."""
    return {"event": event, "fields": fields}


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON, a traceback included.

    >>> values = {"created": 1.7e9, "levelname": "INFO", "msg": "it goes live"}
    >>> record = logging.makeLogRecord(values | about("training", seconds=1.5))
    >>> print(JsonLines().format(record))
    {"time": "2023-11-14T22:13:20.000+00:00", "level": "info", "event": "training",
     "message": "it goes live", "seconds": 1.5}
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        values = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", OTHER),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            values["traceback"] = self.formatException(record.exc_info)
        return json.dumps(values, default=str)


@contextmanager
def written(
    kind: Literal["text", "json"], stream: TextIO | None = None, *, requests: bool = False
) -> Iterator[None]:
    """Write log lines to a stream, stderr by default; as text, only problems."""
    lines, out = JsonLines(), sys.stderr if stream is None else stream
    text = logging.Formatter("%(message)s"), logging.WARNING
    with (
        _handled("ebrank", *((lines, logging.INFO) if kind == "json" else text), out),
        _handled(access.name, lines, logging.INFO if requests else logging.CRITICAL, out),
    ):
        yield


@contextmanager
def _handled(name: str, form: logging.Formatter, level: int, stream: TextIO) -> Iterator[None]:
    logger, handler = logging.getLogger(name), logging.StreamHandler(stream)
    handler.setFormatter(form)
    before = logger.level
    logger.setLevel(level)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
