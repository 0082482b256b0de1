"""Bot detection by request rate: what bots see and do is logged, but does not count.

A visitor over a limit is a bot until the end of the next minute, so one that continues stays one.
The decision is logged with each list and event: a replay needs no clock.

>>> bots = Bots(BotsSettings(lists_per_minute=2))
>>> [bots.suspects("a crawler", now=60.0 + second, lists=1) for second in range(4)]
[False, False, True, True]
>>> bots.suspects("a crawler", now=179.0, lists=1), bots.suspects("a crawler", now=180.0, lists=1)
(True, False)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from cachetools import LRUCache

from ebrank.service.core.memory import encode
from ebrank.service.settings import BotsSettings

MOST_VISITORS = 100_000
MINUTE = 60.0


@dataclass(slots=True)
class _Visitor:
    """What a visitor has done in a minute, and whether it was over a limit the minute before."""

    minute: float
    lists: int = 0
    events: int = 0
    was_over: bool = False


class Bots:
    """Counts the lists and events of each visitor, minute by minute.

    Attributes:
        on_bot: called with `list` or `event` for each that a bot requested or sent.
        on: whether any limit is set.
    """

    def __init__(self, settings: BotsSettings) -> None:
        self.on_bot: Callable[[str], None] = lambda kind: None
        self._most_lists = settings.lists_per_minute or math.inf
        self._most_events = settings.events_per_minute or math.inf
        self.on = settings.lists_per_minute > 0 or settings.events_per_minute > 0
        self._by_session = settings.visitor == "session"
        self._visitors: LRUCache[Hashable, _Visitor] = LRUCache(MOST_VISITORS)

    def visitor(self, user: str | None, session: str | None = None) -> bytes | None:
        """Return the visitor of a list, given the hash of its user; None if it names none.

        The log has no sessions.
        """
        name = session if self._by_session else user
        return encode(name) if self.on and name is not None else None

    def suspects(self, visitor: Hashable, now: float, *, lists: int = 0, events: int = 0) -> bool:
        """Add to what a visitor has done, and return whether it is a bot now."""
        minute, done = now // MINUTE, self._visitors.get(visitor)
        if done is None:
            done = self._visitors[visitor] = _Visitor(minute)
        if minute != done.minute:
            done.was_over = minute == done.minute + 1 and self._over(done)
            done.minute, done.lists, done.events = minute, 0, 0
        done.lists += lists
        done.events += events
        return done.was_over or self._over(done)

    def take_back(self, visitor: Hashable, now: float, *, lists: int = 0, events: int = 0) -> None:
        """Undo part of a visitor's count, such as for an event that was a duplicate."""
        done = self._visitors.get(visitor)
        if done is not None and done.minute == now // MINUTE:
            done.lists -= lists
            done.events -= events

    def _over(self, done: _Visitor) -> bool:
        return done.lists > self._most_lists or done.events > self._most_events
