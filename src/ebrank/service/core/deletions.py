"""Permanent deletion of an item everywhere, a query, or a user's name, each with a proof.

A proof holds a digest of the name, salted by the store: anyone who knows the name can tell that it
was deleted, and nobody else learns it.

>>> import asyncio
>>> from ebrank.service.store.memory import MemoryStore
>>> from ebrank.service.store.records import NewItem
>>> async def session() -> None:
...     store = MemoryStore()
...     await store.items.put("tea", [NewItem("green", (1.0,)), NewItem("black", (2.0,))], time=1.0)
...     request = api.DeletionRequest("item", "green")
...     proof, queries = await delete(store, request, "salt", str, now=2.0)
...     print(proof.kind, queries, (await store.items.load("tea")).active)
>>> asyncio.run(session())
item ['tea'] [False  True]
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable

import msgspec

from ebrank.service import api
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.serving.feedback import seconds
from ebrank.service.store.base import Store, hashed
from ebrank.service.store.records import Deletion, Wanted

STAND_IN = "ebrank:deleted:"
"""The prefix of the placeholder names of deleted items."""


async def delete(
    store: Store, request: api.DeletionRequest, salt: str, named: Callable[[str], str], now: float
) -> tuple[api.DeletionOut, list[str]]:
    """Delete what a request names; return the proof, and the queries that changed.

    Args:
        store: to delete from.
        request: names an item, a query or a user.
        salt: of the store.
        named: turns the name in a request into that of a query.
        now: the time.

    Raises:
        NotFound: if there is no such item or query.
    """
    kind = request.kind
    name = named(request.name) if kind == "query" else request.name
    proof = digest(kind, name, salt)
    deleted, queries = None, list[str]()
    if kind == "user":
        deleted = await store.deletions.user(hashed(name, salt), proof, now)
    elif kind == "query":
        deleted, queries = await store.deletions.query(name, proof, now), [name]
    else:
        changed = await store.deletions.item(name, STAND_IN + secrets.token_hex(8), proof, now)
        deleted, queries = changed or (None, [])
    if deleted is None:
        raise NotFound(f"unknown {kind} {name!r}", "name")
    return proof_out(deleted), queries


async def retract(
    store: Store,
    request: api.RetractionRequest,
    salt: str,
    named: Callable[[str], str],
    now: float,
) -> tuple[api.RetractionResponse, list[str]]:
    """Take back what lists and their events added to counters, or say what that would be.

    Also return the queries that changed. Lists that are made meanwhile are not concerned.

    Raises:
        Problem: if the request does not say what to retract.
    """
    if request == api.RetractionRequest(apply=request.apply):
        wanted_by = "since, until, user, query, ranking_id or token"
        raise Problem(f"say what to retract: {wanted_by}", "since")
    since, until = (
        None if time is None else seconds(time) for time in (request.since, request.until)
    )
    end = math.nextafter(now, math.inf)  # the log may hold an entry of this very moment
    until = None if until is None else min(until, end)
    end = end if until is None else until
    if since is not None and since >= end:
        raise Problem("since must be before until, and in the past", "since")
    wanted = Wanted(
        since,
        end,
        None if request.user is None else hashed(request.user, salt),
        None if request.query is None else named(request.query),
        request.ranking_id,
        request.token,
    )
    plan = await store.deletions.retractable(wanted)
    proof, queries = None, list[str]()
    if request.apply:
        what = [since, until, wanted.user, wanted.query, wanted.ranking, wanted.token]
        text = msgspec.json.encode(what).decode()
        proof, queries = await store.deletions.retract(
            wanted, digest("retraction", text, salt), now
        )
    figures = vars(plan) | {"queries": len(plan.queries)}
    proven = None if proof is None else proof_out(proof)
    return api.RetractionResponse(applied=request.apply, proof=proven, **figures), queries


def digest(kind: str, name: str, salt: str) -> str:
    """Return the salted digest of a deleted name; for a user, it differs from the log's hash."""
    return hashed(f"deleted {kind}: {name}", salt)


def proof_out(proof: Deletion) -> api.DeletionOut:
    """Return a proof as in a response."""
    return msgspec.convert(proof, api.DeletionOut, from_attributes=True)
