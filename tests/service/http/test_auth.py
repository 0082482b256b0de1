"""Tokens: told once, kept as hashes, recognized exactly."""

from __future__ import annotations

import hashlib

import pytest

from ebrank.errors import ParameterError
from ebrank.service.http.auth import SCOPES, Guard, is_loopback, new_token
from ebrank.service.settings import Token


def test_a_token_is_known_by_its_hash_alone() -> None:
    secret, token = new_token("shop", ["feedback", "rank"])
    assert token == Token("shop", hashlib.sha256(secret.encode()).hexdigest(), ("rank", "feedback"))
    assert secret not in repr(token)
    assert len(secret) >= 43  # 256 bits in base64


def test_every_token_is_another() -> None:
    assert new_token("a", ["rank"])[0] != new_token("a", ["rank"])[0]


def test_a_guard_knows_its_tokens_only() -> None:
    (first, one), (second, two) = new_token("one", ["rank"]), new_token("two", ["admin"])
    guard = Guard([one, two])
    assert guard.caller(f"Bearer {first}") is one
    assert guard.caller(f"bearer  {second} ") is two
    assert guard.caller(f"Bearer {new_token('three', ['rank'])[0]}") is None


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic x", "Bearer é\udcff"])
def test_no_token_is_no_caller(header: str | None) -> None:
    assert Guard([new_token("one", ["rank"])[1]]).caller(header) is None


def test_the_secret_without_its_kind_is_no_header() -> None:
    secret, token = new_token("one", ["rank"])
    assert Guard([token]).caller(secret) is None
    assert Guard([token]).caller(f"Basic {secret}") is None
    assert Guard([token]).caller(f"Bearer {token.sha256}") is None  # the hash opens nothing


@pytest.mark.parametrize("name", ["", "a b", "ünï", "-a", "a" * 65, "a\n"])
def test_names_are_plain_words(name: str) -> None:
    with pytest.raises(ParameterError, match="cannot name a token"):
        new_token(name, ["rank"])


def test_scopes_are_known_and_some() -> None:
    with pytest.raises(
        ParameterError, match=r"unknown scope 'root'\. Known scopes: rank, feedback"
    ):
        new_token("a", ["rank", "root"])
    with pytest.raises(ParameterError, match="needs a scope"):
        new_token("a", [])
    assert new_token("a", SCOPES)[1].scopes == ("rank", "feedback", "admin")


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_which_addresses_are_this_machine_only(host: str, local: bool) -> None:
    assert is_loopback(host) is local
