"""Settings that a store was made with: they define what its data means, so they cannot change."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from ebrank.environment.config import SettingsError
from ebrank.evidence import Behaviors
from ebrank.evidence.forgetting import HalfLife
from ebrank.service.settings import Settings
from ebrank.service.store.base import SALT, Store

BEHAVIORS, QUERY_NAMES, HALF_LIFE = "behaviors", "query_names", "half_life"


async def fix(store: Store, settings: Settings, now: float) -> None:
    """Record in a store what its data means, or raise if the settings differ.

    If servers start at the same time, the first decides.
    """
    declared, normalize = settings.events.declared(), settings.store.normalize_queries
    days = settings.events.half_life_days
    first = {
        SALT: secrets.token_hex(16),  # what users' names are hashed with
        BEHAVIORS: counted_behaviors(declared, None),
        QUERY_NAMES: _query_names(normalize, None),
    }
    if days is not None:
        first[HALF_LIFE] = _half_life(days, None, now)
    kept = await store.meta.settle(first)
    _query_names(normalize, kept[QUERY_NAMES])
    wanted = {BEHAVIORS: counted_behaviors(declared, kept[BEHAVIORS])}
    half_life_kept = await store.meta.get(HALF_LIFE)
    if half_life_kept is not None:
        kept[HALF_LIFE] = half_life_kept
        wanted[HALF_LIFE] = _half_life(days, half_life_kept, now)
    changed = {key: value for key, value in wanted.items() if kept[key] != value}
    if changed:
        await store.meta.set(changed)


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


def _query_names(normalize: bool, stored: str | None) -> str:
    wanted = "normalized" if normalize else "literal"
    if stored not in (None, wanted):
        raise SettingsError(
            f"store.normalize_queries: query names in this store are {stored}. "
            f"Set it to {str(not normalize).lower()}, or use another store"
        )
    return wanted


def _half_life(days: float | None, stored: str | None, now: float) -> str:
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
