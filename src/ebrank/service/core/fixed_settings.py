"""Settings that a store was made with: they define what its data means, so they cannot change."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from functools import partial

from ebrank.environment.config import SettingsError
from ebrank.evidence import Behaviors
from ebrank.evidence.forgetting import HalfLife
from ebrank.service.settings import Settings
from ebrank.service.store.base import SALT, Store

BEHAVIORS, QUERY_NAMES, HALF_LIFE = "behaviors", "query_names", "half_life"


async def fix(store: Store, settings: Settings, now: float) -> dict[str, str]:
    """Record in a store what its data means, or raise if the settings differ.

    Return all that the store has settled. If servers start at the same time, the first decides.
    """
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
