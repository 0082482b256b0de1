"""Lines on stderr: text for people, or JSON for log collectors.

The service logs everything through the logger `ebrank`. As JSON every line has the same shape,
requests included: time, level, event and message, then fields of the event.

>>> print(line(1700000000.0, "info", "training", "it goes live", seconds=1.5))
{"time": "2023-11-14T22:13:20.000+00:00", "level": "info", "event": "training",
 "message": "it goes live", "seconds": 1.5}

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


def about(event: str, **fields: object) -> dict[str, Any]:
    """Return the `extra` of a record: what it is about."""
    return {"event": event, "fields": fields}


def line(time: float, level: str, event: str, message: str, **fields: object) -> str:
    """Return one line of JSON."""
    when = datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
    values = {"time": when, "level": level, "event": event, "message": message, **fields}
    return json.dumps(values, ensure_ascii=True, default=str)


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON, a traceback included."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = dict(getattr(record, "fields", {}))
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        event = getattr(record, "event", OTHER)
        return line(record.created, record.levelname.lower(), event, record.getMessage(), **fields)


@contextmanager
def written(kind: Literal["text", "json"], stream: TextIO | None = None) -> Iterator[None]:
    """Write log lines to a stream, stderr by default; as text, only problems."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines() if kind == "json" else logging.Formatter("%(message)s"))
    logger = logging.getLogger("ebrank")
    before = logger.level
    logger.setLevel(logging.INFO if kind == "json" else logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
