"""Settings on which a store and its servers agree.

Some define what the data of a store mean, so the store keeps them and they cannot change. Others
determine lists and counts, so servers that run at the same time must have the same.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import fields
from functools import partial

import msgspec

from ebrank.environment.config import SettingsError
from ebrank.evidence import Behaviors
from ebrank.evidence.forgetting import HalfLife
from ebrank.service.core.fleet import running
from ebrank.service.settings import Settings
from ebrank.service.store.base import SALT, Store

BEHAVIORS, QUERY_NAMES, HALF_LIFE = "behaviors", "query_names", "half_life"


async def agree(store: Store, settings: Settings, now: float) -> dict[str, str]:
    """Return all that a store has settled, after recording what its data mean if that is new.

    If servers start at the same time, the first decides.

    Raises:
        SettingsError: if the settings are not those of the store, or of a server that uses it.
    """
    await _check_servers(store, settings)
    normalize, days = settings.store.normalize_queries, settings.events.half_life_days
    fixed = {
        BEHAVIORS: partial(counted_behaviors, settings.events.declared()),
        QUERY_NAMES: partial(_query_names, normalize=normalize),
        HALF_LIFE: partial(_half_life, days=days, now=now),
    }
    first = {key: value(None) for key, value in fixed.items() if key != HALF_LIFE or days}
    first[SALT] = secrets.token_hex(16)  # what users' names are hashed with
    await store.meta.settle(first)
    kept = await store.meta.all()
    wanted = {key: value(kept[key]) for key, value in fixed.items() if key in kept}
    changed = {key: value for key, value in wanted.items() if kept[key] != value}
    if changed:
        await store.meta.set(changed)
    return kept | changed


def rules(settings: Settings) -> dict[str, str]:
    """Return the settings that determine lists and counts, and how long events count, as texts."""
    ranking, events = settings.ranking, settings.events
    given: dict[str, object] = {
        "ranking.policy": ranking.policy,
        "ranking.seed": ranking.seed,
        # Clicks on lists that are not noted would mislead.
        "ranking.exploration_budget": ranking.exploration_budget,
        "events.impressions": events.impressions,
        "events.behaviors": events.behaviors,
        "events.negative": events.negative,
        "events.half_life_days": events.half_life_days,
        "store.retention_seconds": settings.store.retention_seconds,
    }
    for section in ("examination", "features"):
        part = getattr(settings, section)
        given |= {f"{section}.{key.name}": getattr(part, key.name) for key in fields(part)}
    return {name: msgspec.json.encode(value).decode() for name, value in given.items()}


async def _check_servers(store: Store, settings: Settings) -> None:
    ours = rules(settings)
    for server in await running(store):
        for name, theirs in server.rules.items():
            if theirs != ours.get(name, theirs):
                raise SettingsError(
                    f"{name} is {ours[name]} here and {theirs} on {server.name}, which serves the "
                    "same store. Give all servers the same settings; to change this one, stop the "
                    "others first"
                )


def half_life(meta: Mapping[str, str]) -> HalfLife | None:
    """Return the half-life with which a store forgets, None if it forgets nothing."""
    return HalfLife(**json.loads(meta[HALF_LIFE])) if HALF_LIFE in meta else None


def counted_behaviors(declared: Behaviors, stored: str | None) -> str:
    """Return the names of behaviors in the order in which the store counts them.

    More may be declared later if they are worth more: then the numbers of the others stay.
    """
    names = list(declared.names)
    counted = names if stored is None else json.loads(stored)
    if names[: len(counted)] != counted:
        raise SettingsError(
            f"events.behaviors: the store counts {', '.join(counted)}, in order of worth, but the "
            f"settings have {', '.join(names)}. Keep these first, add only behaviors that are "
            "worth more, or use another store"
        )
    return json.dumps(names)


def _query_names(stored: str | None, *, normalize: bool) -> str:
    wanted = "normalized" if normalize else "literal"
    if stored not in (None, wanted):
        raise SettingsError(
            f"store.normalize_queries: query names in this store are {stored}. "
            f"Set it to {str(not normalize).lower()}, or use another store"
        )
    return wanted


def _half_life(stored: str | None, *, days: float | None, now: float) -> str:
    """Return the half-life of a store; a store without one may begin to forget now."""
    if stored is None:
        return json.dumps({"days": days, "since": now})
    began = json.loads(stored)["days"]
    if days != began:
        raise SettingsError(
            f"events.half_life_days: this store has a half-life of {began:g} days, and what it has "
            f"forgotten cannot come back. Set it to {began:g}, or use another store"
        )
    return stored
