"""Who is admitted: callers with a known token of the right scope, below a maximum rate.

Without tokens everybody is admitted, so such a server is bound to a loopback address. It rejects
pages of other sites, which a browser on the same machine may show.

Only the hash of a token is kept. A token is 256 random bits, so nobody can guess it and one round
of SHA-256 is enough. The secret is printed once and never stored:

>>> secret, token = new_token("shop", ["rank", "feedback"])
>>> admission = Admission(Settings(tokens=(token,)))
>>> admission.token(f"Bearer {secret}").name
'shop'
>>> admission.token("Bearer something else") is None
True
"""

from __future__ import annotations

import hmac
import ipaddress
import math
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, get_args
from urllib.parse import SplitResult, urlsplit

from cachetools import LRUCache

from ebrank.errors import ParameterError
from ebrank.service.endpoints import Endpoint
from ebrank.service.endpoints import Scope as TokenScope
from ebrank.service.http import Scope
from ebrank.service.http.problems import HttpProblem
from ebrank.service.settings import Settings, Token

SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)
PREFIX = "ebrank_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
HOUR = 3600.0
MOST_CALLERS = 10_000
"""Buckets kept; the least recent caller is dropped first."""


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header of a request, None if it has none or several of different values."""
    values = {value for key, value in scope["headers"] if key == name}
    return values.pop().decode("latin-1") if len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request: from which address, with which token, if it is known."""

    address: str
    token: Token | None

    @property
    def name(self) -> str:
        """Its name in the log."""
        return self.address if self.token is None else self.token.name

    @property
    def limited(self) -> str:
        """By what its requests are limited: its token, or its address without a known one."""
        return self.address if self.token is None else f"token {self.token.name}"


class Admission:
    """Admits requests as the settings say."""

    def __init__(self, settings: Settings) -> None:
        self.use(settings.tokens)
        limits = settings.limits
        self._limiter = Limiter(limits.requests_per_second, limits.burst)
        self._new_queries = Limiter(limits.new_queries_per_hour / HOUR, limits.new_queries_per_hour)

    def use(self, tokens: Sequence[Token]) -> None:
        """From now on admit callers with one of these; everybody if there are none."""
        self._tokens = [(token.sha256.lower().encode(), token) for token in tokens]

    def caller(self, scope: Scope) -> Caller:
        """Return who sends a request, whether or not it is admitted."""
        client = scope.get("client")
        address = str(client[0]) if client else "unknown"
        return Caller(address, self.token(header(scope, b"authorization")))

    def token(self, authorization: str | None) -> Token | None:
        """Return whose token a header holds; None if it holds no known one."""
        kind, _, secret = (authorization or "").partition(" ")
        if kind.lower() != "bearer":
            return None
        digest = hashed(secret.strip()).encode()
        found = None
        for expected, token in self._tokens:  # no early exit: timing must not reveal which one
            if hmac.compare_digest(expected, digest):
                found = token
        return found

    def admit(self, caller: Caller, scope: Scope, endpoint: Endpoint[Any]) -> None:
        """Return if the caller may call this endpoint now.

        Raises:
            HttpProblem: 401 without a known token.
            HttpProblem: 403 with one that lacks the scope, or from a page of another site.
            HttpProblem: 429 above the rate.
        """
        if not endpoint.scopes:
            return
        if not self._tokens:
            _same_site(scope)
        _limit(self._limiter, caller, "too many requests;")
        if not self._tokens:
            return
        token = caller.token
        if token is None:
            raise HttpProblem(
                401,
                "this endpoint needs a valid token: send the header Authorization: Bearer TOKEN",
                headers={"www-authenticate": 'Bearer realm="ebrank"'},
            )
        if not set(token.scopes) & set(endpoint.scopes):
            raise HttpProblem(
                403, f"this endpoint needs a token with scope {' or '.join(endpoint.scopes)}"
            )

    def admit_query(self, caller: Caller) -> None:
        """Return if the caller may create one more query by a rank request.

        Raises:
            HttpProblem: 429 above the rate.
        """
        remedy = (
            "too many new queries (limits.new_queries_per_hour); rank a query that exists, put its "
            "items with an admin token, or"
        )
        _limit(self._new_queries, caller, remedy, "query")


def _limit(limiter: Limiter, caller: Caller, message: str, field: str | None = None) -> None:
    """Count a request; raise if the caller has sent too many."""
    wait = limiter.wait(caller.limited)
    if wait:
        seconds = str(math.ceil(wait))
        headers = {"retry-after": seconds}
        raise HttpProblem(429, f"{message} retry in {seconds} s", field, headers)


def _same_site(scope: Scope) -> None:
    """Raise if the page of another site made a browser send the request.

    Such a page names itself as the origin. If its own name resolves to this machine, the browser
    takes the server for a part of that site, and only `host` gives it away.
    """
    host, origin = header(scope, b"host"), header(scope, b"origin")
    if host is None or not _names_us(host):
        raise HttpProblem(
            403,
            "a server without tokens accepts only requests to localhost or a loopback address, "
            "not to the name in the Host header",
        )
    if origin is not None and _parts(origin).netloc != host:
        raise HttpProblem(403, "web pages of other sites may not call a server without tokens")


@lru_cache(maxsize=100)
def _names_us(host: str) -> bool:
    """Return whether a `Host` header names only this machine."""
    return is_loopback(_parts(f"//{host}").hostname or "")


def _parts(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        return SplitResult("", "", "", "", "")  # not an address: of no site


class Limiter:
    """How often a caller may call: each has a bucket of tokens, filled at a steady rate.

    A caller may call `burst` times at once and `rate` times a second in the long run:

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
        """Count a request; return 0, or the seconds after which to retry if there are too many."""
        if not self._interval:
            return 0.0  # a rate of zero means no limit
        now = self._clock()
        full_at = max(now, self._full_at.get(caller, now)) + self._interval
        excess = full_at - now - self._room
        if excess > 1e-9:
            return excess
        self._full_at[caller] = full_at
        return 0.0


def hashed(secret: str) -> str:
    """Return the hash of a secret."""
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def new_token(name: str, scopes: Sequence[str]) -> tuple[str, Token]:
    """Return a new secret and the token to keep.

    Raises:
        ParameterError: if the name is not a plain word, or a scope is unknown.
    """
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"{name!r} is not a valid token name: use 1 to 64 letters, digits, dots, dashes, "
            "underscores"
        )
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        what = f"unknown scope {unknown[0]!r}" if unknown else "a token needs a scope"
        raise ParameterError(f"{what}. Known scopes: {', '.join(SCOPES)}")
    secret = PREFIX + secrets.token_urlsafe(32)
    in_order = tuple(scope for scope in SCOPES if scope in scopes)
    return secret, Token(name, hashed(secret), in_order)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
