"""What servers report about themselves, if all that share a store are in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

LATELY_SECONDS = 60.0
"""A server that has been silent for this long is gone."""


class Announced(NamedTuple):
    """A server.

    Attributes:
        server: its unique name.
        seconds: how long ago it announced itself.
        about: what it reported, for other servers to read.
    """

    server: str
    seconds: float
    about: str


class Announcements:
    """Keeps the latest announcement of each server.

    >>> now = iter([1.0, 2.0, 3.0, 70.0])
    >>> servers = Announcements(lambda: next(now))
    >>> servers.announce("one", "trains")
    >>> servers.announce("two", "")
    >>> servers.heard()
    [Announced(server='one', seconds=2.0, about='trains'), Announced(server='two', ...)]
    >>> servers.heard()
    []
    """

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._heard: dict[str, tuple[float, str]] = {}

    def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, or that it leaves."""
        self._heard.pop(server, None)
        if about is not None:
            self._heard[server] = self._timer(), about

    def heard(self) -> list[Announced]:
        """Return the servers that announced themselves recently, by name."""
        now = self._timer()
        found = [Announced(name, now - then, about) for name, (then, about) in self._heard.items()]
        return sorted(one for one in found if one.seconds <= LATELY_SECONDS)
