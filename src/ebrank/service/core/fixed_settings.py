"""Settings that a store was made with: they say what its data means, so they cannot just change."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ebrank.evidence import Behaviors
from ebrank.evidence.forgetting import HalfLife
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.settings import SettingsError

BEHAVIORS, QUERY_NAMES, HALF_LIFE = "behaviors", "query_names", "half_life"


async def fix(
    store: Store, settings: Settings, meta: Mapping[str, str], now: float
) -> dict[str, str]:
    """Note in a store what its data means, or raise if the settings say otherwise.

    Returns what was noted.
    """
    new = {
        BEHAVIORS: _behaviors(settings.events.declared(), meta.get(BEHAVIORS)),
        QUERY_NAMES: _query_names(settings.store.normalize_queries, meta.get(QUERY_NAMES)),
    }
    if settings.events.half_life_days is not None or HALF_LIFE in meta:
        new[HALF_LIFE] = _half_life(settings.events.half_life_days, meta.get(HALF_LIFE), now)
    changed = {key: value for key, value in new.items() if meta.get(key) != value}
    if changed:
        await store.meta.set(changed)
    return changed


def half_life(meta: Mapping[str, str]) -> HalfLife | None:
    """Return by which half-life a store forgets, None if it forgets nothing."""
    return HalfLife(**json.loads(meta[HALF_LIFE])) if HALF_LIFE in meta else None


def _behaviors(declared: Behaviors, stored: str | None) -> str:
    """Return the names of behaviors in the order by which the store counts them.

    More may be declared later if they are worth more: then the numbers of the others stay.
    """
    names = list(declared.names)
    known = names if stored is None else json.loads(stored)
    if names[: len(known)] != known:
        raise SettingsError(
            f"events.behaviors: the store counts {', '.join(known)}, from the least worth to the "
            f"most; the settings have {', '.join(names)}. Declare these and, worth more, others, "
            "or serve another store"
        )
    return json.dumps(names)


def _query_names(normalize: bool, stored: str | None) -> str:
    wanted = "normalized" if normalize else "literal"
    if stored not in (None, wanted):
        raise SettingsError(
            f"store.normalize_queries: the names of queries in this store are {stored}. "
            f"Set it to {str(not normalize).lower()}, or serve another store"
        )
    return wanted


def _half_life(days: float | None, stored: str | None, now: float) -> str:
    """Return the half-life with which a store began to forget; it may begin later, from then on."""
    if stored is None:
        return json.dumps({"days": days, "since": now})
    began = json.loads(stored)["days"]
    if days != began:
        raise SettingsError(
            f"events.half_life_days: this store forgets by a half-life of {began:g} days; what it "
            f"has forgotten does not come back. Set it to {began:g}, or serve another store"
        )
    return stored
