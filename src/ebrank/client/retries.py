"""What is sent again if a request fails, and after which pause.

Pauses double and are shortened at random, so that clients of a server that comes back do not all
call at once. What may be sent again depends on the request:

- `always`: reads, items, withdrawals, and feedback, whose events have an id that is made once.
- `broken`: a ranking. It is sent again if the connection broke, but not if the response is just
  slow; at worst a list is logged that nobody saw.
- `unsent`: what must not happen twice. It is sent again only if the server did not get it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import httpx

Again: TypeAlias = Literal["always", "broken", "unsent"]

REFUSED = (409, 429, 503)
"""Statuses of a server that did nothing."""
LOST = (502, 504)
"""Statuses of a proxy that does not know what the server did."""

# Pauses are not part of any result: they need no seed, and two clients must not share one.
_jitter = random.Random()


@dataclass(frozen=True)
class Retries:
    """How often, and after how long.

    Attributes:
        attempts: the most requests; 1 never retries.
        first: seconds before the second one.
        longest: the longest pause; if the server asks for more, the error is raised at once.
    """

    attempts: int = 4
    first: float = 0.1
    longest: float = 5.0

    def pause(
        self, again: Again, attempt: int, outcome: httpx.Response | Exception
    ) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is none.

        Args:
            again: what the request allows.
            attempt: how many there have been.
            outcome: of the last one.
        """
        if attempt >= self.attempts or not _allowed(again, outcome):
            return None
        asked = _asked_for(outcome)
        if asked > self.longest:
            return None
        pause = min(self.longest, self.first * 2.0 ** (attempt - 1))
        return max(asked, pause * _jitter.uniform(0.5, 1.0))


ONCE = Retries(attempts=1)
"""For callers with a fallback."""


def _allowed(again: Again, outcome: httpx.Response | Exception) -> bool:
    import httpx

    if isinstance(outcome, httpx.Response):
        return outcome.status_code in REFUSED or (again == "always" and outcome.status_code in LOST)
    if unsent(outcome):
        return True
    if isinstance(outcome, httpx.NetworkError | httpx.RemoteProtocolError):
        return again != "unsent"
    return again == "always" and isinstance(outcome, httpx.TimeoutException)


def unsent(problem: Exception) -> bool:
    """Return whether the server did not get the request."""
    import httpx

    return isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _asked_for(outcome: httpx.Response | Exception) -> float:
    """Return the seconds that a response asks to wait."""
    text = "" if isinstance(outcome, Exception) else outcome.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else 0.0
