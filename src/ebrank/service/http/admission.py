"""Who is let in: known tokens with the right scope, at a bearable rate.

Without tokens everybody is let in, which is why such a server is bound to a loopback address. Pages
of other sites, which a browser on the same machine may show, are not let in.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from cachetools import LRUCache

from ebrank.service.http.auth import Guard, is_loopback
from ebrank.service.http.messages import Scope, header
from ebrank.service.http.problems import Forbidden, TooMany, Unauthorized
from ebrank.service.http.route import Route
from ebrank.service.settings import Settings, Token

MOST_CALLERS = 10_000
"""Buckets kept; whoever was not seen for longest is forgotten first."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request: from which address, with which token, if it is a known one."""

    address: str
    token: Token | None

    @property
    def name(self) -> str:
        """What the log calls it."""
        return self.address if self.token is None else self.token.name


class Admission:
    """Decides on requests by the settings."""

    def __init__(self, settings: Settings) -> None:
        self._guard = Guard(settings.tokens) if settings.tokens else None
        self._limiter = Limiter(settings.limits.requests_per_second, settings.limits.burst)

    def caller(self, scope: Scope) -> Caller:
        """Return who sends a request, whether or not it is let in."""
        client = scope.get("client")
        address = str(client[0]) if client else "unknown"
        if self._guard is None:
            return Caller(address, None)
        return Caller(address, self._guard.caller(header(scope, b"authorization")))

    def admit(self, caller: Caller, scope: Scope, route: Route) -> None:
        """Return if the caller may call this route now.

        Raises:
            Unauthorized: without a known token.
            Forbidden: with one that lacks the scope, or from a page of another site.
            TooMany: above the rate.
        """
        if not route.scopes:
            return
        if self._guard is None:
            _same_site(scope)
            self._count(caller.address)
            return
        token = caller.token
        # Attempts with wrong tokens count against the address they come from.
        self._count(caller.address if token is None else f"token {token.name}")
        if token is None:
            raise Unauthorized(
                "this needs a known token: send the header Authorization: Bearer TOKEN",
                headers={"www-authenticate": 'Bearer realm="ebrank"'},
            )
        if not set(token.scopes) & set(route.scopes):
            raise Forbidden(f"this needs a token with scope {' or '.join(route.scopes)}")

    def _count(self, caller: str) -> None:
        wait = self._limiter.wait(caller)
        if wait:
            seconds = math.ceil(wait)
            raise TooMany(
                f"too many requests; ask again in {seconds} s",
                headers={"retry-after": str(seconds)},
            )


def _same_site(scope: Scope) -> None:
    """Refuse what the page of another site makes a browser send.

    Such a page names itself as the origin. If its own name was made to mean this machine, the
    browser takes the server for a part of that site, and only `host` still tells.
    """
    host, origin = header(scope, b"host"), header(scope, b"origin")
    if host is None or not is_loopback(_parts(f"//{host}").hostname or ""):
        raise Forbidden(
            "a server without tokens answers only at localhost or a loopback address, not at the "
            "name in the header Host"
        )
    if origin is not None and _parts(origin).netloc != host:
        raise Forbidden("pages of other sites may not call a server without tokens")


def _parts(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", "", "", "", "")  # no address at all: of no site


class Limiter:
    """How often a caller may ask: a bucket of tokens for each, filled at a steady rate.

    A caller may ask `burst` times at once and `rate` times a second in the long run:

    >>> times = iter([0.0, 0.0, 0.0, 0.5])
    >>> limiter = Limiter(rate=2.0, burst=2, clock=lambda: next(times))
    >>> [limiter.wait("shop") for _ in range(4)]
    [0.0, 0.0, 0.5, 0.0]

    A bucket is one number: the time at which it is full again. Each request moves it by 1/rate,
    and must not move it further than burst/rate ahead.
    """

    def __init__(
        self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = 1.0 / rate if rate > 0 else 0.0
        self._room = burst * self._interval
        self._clock = clock
        self._full_at: LRUCache[str, float] = LRUCache(MOST_CALLERS)

    def wait(self, caller: str) -> float:
        """Count a request; return 0, or the seconds after which to ask again if it is too many."""
        if not self._interval:
            return 0.0  # a rate of zero is no limit
        now = self._clock()
        full_at = max(now, self._full_at.get(caller, now)) + self._interval
        excess = full_at - now - self._room
        if excess > 1e-9:
            return excess
        self._full_at[caller] = full_at
        return 0.0
