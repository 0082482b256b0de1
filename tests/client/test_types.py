"""Both clients have one set of methods, with the types that a user's type checker sees.

mypy reads this file with the rest: `assert_type` states what methods return, and each
`type: ignore` is an error that a checker has to find, or mypy reports the comment as unused.
"""

from __future__ import annotations

import inspect
from typing import assert_type

import ebrank
from ebrank.client.methods import Methods
from ebrank.service import api


def check_client(client: ebrank.Client) -> None:
    assert_type(client.rank("tea", k=3), api.RankResponse)
    assert_type(client.click("r1", "a", event_id="e"), api.FeedbackResponse)
    assert_type(client.load_catalog({"a": [1.0]}), api.BulkResponse)
    client.rank("tea", top=3)  # type: ignore[call-arg]
    client.rank(3)  # type: ignore[arg-type]
    client.delete("shop", "a")  # type: ignore[arg-type]


async def check_async_client(client: ebrank.AsyncClient) -> None:
    assert_type(await client.rank("tea", k=3), api.RankResponse)
    assert_type(await client.models(), api.ModelsResponse)
    await client.rank("tea", top=3)  # type: ignore[call-arg]


def test_both_have_every_method_with_the_same_signature() -> None:
    for name, method in vars(Methods).items():
        if name.startswith("_"):
            continue
        ours, other = getattr(ebrank.Client, name), getattr(ebrank.AsyncClient, name)
        assert inspect.iscoroutinefunction(other)
        assert not inspect.iscoroutinefunction(ours)
        assert inspect.signature(ours) == inspect.signature(other)
        assert ours.__doc__ == method.__doc__
