"""Servers of one store agree on everything that decides what counts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ebrank.environment.config import SettingsError
from ebrank.service.core.fleet import Fleet, check_rules, rules
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import settings

COUNTS = dict.fromkeys(
    ("model", "lists", "events", "from_memory", "from_store", "stale", "clock_lag"), 0
)


@pytest.mark.parametrize(
    "other",
    [
        {"ranking": {"seed": 7}},
        {"events": {"impressions": "confirmed"}},
        {"events": {"half_life_days": 7.0}},
        {"store": {"retention_seconds": 7 * 86400.0}},
        {"examination": {"cutoff": 3}},
    ],
)
def test_a_server_with_other_rules_does_not_start_beside_others(other: dict[str, Any]) -> None:
    [(section, values)] = other.items()
    [name] = values

    async def scene() -> None:
        store = MemoryStore()
        ours = settings()
        await Fleet(store, lambda: {**COUNTS, "rules": rules(ours)}).beat()
        await check_rules(store, ours)
        with pytest.raises(SettingsError, match=rf"{section}\.{name} is .* stop the others first"):
            await check_rules(store, settings(**other))

    asyncio.run(scene())
