"""Checks that every plugin should pass: the same that ebrank's own parts pass.

Each raises an `AssertionError` that says what is wrong, and needs no test framework:

>>> from ebrank.lab.rankers import registry
>>> from ebrank.testing import check_ranker
>>> check_ranker(registry.parse("bm25"))

`check_policy` takes a policy, `check_users` a user model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebrank.environment.exports import on_first_use

if TYPE_CHECKING:
    from ebrank.testing.policies import check_policy as check_policy
    from ebrank.testing.rankers import check_ranker as check_ranker
    from ebrank.testing.users import check_users as check_users

# Imported on first use.
_HOMES = {
    "check_policy": "ebrank.testing.policies",
    "check_ranker": "ebrank.testing.rankers",
    "check_users": "ebrank.testing.users",
}
__all__ = list(_HOMES)

__getattr__, __dir__ = on_first_use(__name__, _HOMES)
