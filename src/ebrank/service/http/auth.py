"""Who may call what: bearer tokens with scopes, of which only hashes are kept.

A token is 256 random bits, so one round of SHA-256 is enough to keep it: nobody can guess what was
hashed. The secret is told once and never stored:

>>> secret, token = new_token("shop", ["rank", "feedback"])
>>> guard = Guard([token])
>>> guard.caller(f"Bearer {secret}").name
'shop'
>>> guard.caller("Bearer something else") is None
True
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import get_args

from ebrank.errors import ParameterError
from ebrank.service.settings import Scope, Token

SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "ebrank_"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Guard:
    """Recognizes callers by the header they send."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._tokens = [(token.sha256.lower().encode(), token) for token in tokens]

    def caller(self, authorization: str | None) -> Token | None:
        """Return whose token a header holds; None if it holds none that is known."""
        kind, _, secret = (authorization or "").partition(" ")
        if kind.lower() != "bearer":
            return None
        digest = hashed(secret.strip()).encode()
        found = None
        for known, token in self._tokens:  # all of them: the time must not tell which one it was
            if hmac.compare_digest(known, digest):
                found = token
        return found


def hashed(secret: str) -> str:
    """Return what is kept of a secret."""
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def new_token(name: str, scopes: Sequence[str]) -> tuple[str, Token]:
    """Return a new secret and what is kept of it.

    Raises:
        ParameterError: if the name is no plain word, or a scope is unknown.
    """
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"{name!r} cannot name a token: use 1 to 64 letters, digits, dots, dashes, underscores"
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
