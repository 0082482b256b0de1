"""Checks that every plugin should pass: the same that ebrank's own parts pass.

Each raises an `AssertionError` that says what is wrong, and needs no test framework:

>>> from ebrank.rankers import registry
>>> from ebrank.testing import check_ranker
>>> check_ranker(registry.parse("bm25"))

`check_policy` takes a policy, `check_users` a user model, `check_store` a store of the service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ebrank.testing.policies import check_policy
    from ebrank.testing.rankers import check_ranker
    from ebrank.testing.stores import check_store
    from ebrank.testing.users import check_users

_HOMES = {
    "check_policy": "ebrank.testing.policies",
    "check_ranker": "ebrank.testing.rankers",
    "check_store": "ebrank.testing.stores",
    "check_users": "ebrank.testing.users",
}

__all__ = ["check_policy", "check_ranker", "check_store", "check_users"]


def __getattr__(name: str) -> object:
    """Import a check on first use: those of the service need more packages than the lab's."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ebrank.testing' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
