"""One line of JSON for each request: enough to find trouble, nothing that must stay secret.

It holds the route rather than the address, so that no name of a query, an item or a user gets into
the log; no header, no body, no token.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TextIO


@dataclass(frozen=True, slots=True)
class Access:
    """One request and its answer.

    Attributes:
        time: when it was answered, in seconds since 1970.
        method: such as GET.
        route: the pattern its address matched; empty if none did.
        status: of the answer.
        seconds: from its arrival to the answer.
        caller: the name of its token, or its address.
    """

    time: float
    method: str
    route: str
    status: int
    seconds: float
    caller: str


class AccessLog:
    """Writes requests to a stream, which is a terminal or what collects the logs."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream

    def write(self, access: Access) -> None:
        """Write one line; a log that cannot be written must not stop the service."""
        when = datetime.fromtimestamp(access.time, UTC)
        line = {
            "time": when.isoformat(timespec="milliseconds"),
            "method": access.method,
            "route": access.route,
            "status": access.status,
            "ms": round(access.seconds * 1e3, 3),
            "caller": access.caller,
        }
        try:
            self._stream.write(json.dumps(line, ensure_ascii=True) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return
