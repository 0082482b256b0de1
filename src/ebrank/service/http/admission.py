"""Who is let in: known tokens with the right scope, at a bearable rate.

Without tokens everybody is let in, which is why such a server is bound to a loopback address. Pages
of other sites, which a browser on the same machine may show, are not let in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from ebrank.service.auth import Guard, is_loopback
from ebrank.service.http.messages import Scope, header
from ebrank.service.http.problems import Forbidden, TooMany, Unauthorized
from ebrank.service.http.route import Route
from ebrank.service.limits import Limiter
from ebrank.service.settings import Settings, Token


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
