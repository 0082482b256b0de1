"""Settings that a store was made with: they say what its data means, so they cannot just change."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ebrank.evidence import Behaviors
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.settings import SettingsError

BEHAVIORS, QUERY_NAMES = "behaviors", "query_names"


async def fix(store: Store, settings: Settings, meta: Mapping[str, str]) -> None:
    """Note in a store what its data means, or raise if the settings say otherwise."""
    new = {
        BEHAVIORS: _behaviors(settings.events.declared(), meta.get(BEHAVIORS)),
        QUERY_NAMES: _query_names(settings.store.normalize_queries, meta.get(QUERY_NAMES)),
    }
    changed = {key: value for key, value in new.items() if meta.get(key) != value}
    if changed:
        await store.meta.set(changed)


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
