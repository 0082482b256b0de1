"""A store that begins with what logs say: it holds what it would hold had it been there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ebrank.addons.logs import aggregate, read_evidence
from ebrank.addons.logs.importing import import_evidence
from ebrank.environment.config import SettingsError
from ebrank.service.api import EventIn, ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.ops.replay import replay
from ebrank.service.settings import EventsSettings, Settings, StoreSettings
from ebrank.service.store import open
from tests.addons.logs.replaying import BEHAVIORS, Event, confirmed, write

EVENTS = [
    Event("r1", "tea", "a", "impression", 1, 50.0),
    Event("r1", "tea", "b", "impression", 2, 50.0),
    Event("r1", "tea", "b", "purchase", 2, 51.0),
    Event("r2", " TEA", "b", "click", 1, 40.0),
    Event("r3", "milk", "c", "impression", 12, 60.0),
]
DECLARED = ("click=0.3", "dwell>=30=0.6", "purchase")
SETTINGS = Settings(events=EventsSettings(behaviors=DECLARED, negative=("hide",)))


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    log = write(tmp_path / "log.ndjson", EVENTS)
    aggregate([log], tmp_path / "evidence.parquet", behaviors=BEHAVIORS)
    (tmp_path / "items.csv").write_text("item,price\na,1\nb,2\nc,3\n")
    return tmp_path / "evidence.parquet"


async def shown(engine: Engine, query: str) -> dict[str, tuple[float, float]]:
    return {item.id: (item.shown, item.clicks) for item in (await engine.query(query)).items}


@pytest.fixture
def expected() -> dict[tuple[str, int, int], int]:
    """What a store counts that was there."""
    plain = [replace(event, query=event.query.strip().lower()) for event in EVENTS]
    return {key[1:]: count for key, (count, _) in confirmed(plain).items() if key[0] == "tea"}


async def test_with_features_it_ranks_at_once(
    evidence: Path, expected: dict[tuple[str, int, int], int], tmp_path: Path
) -> None:
    url = str(tmp_path / "store")
    read = read_evidence(evidence, features=tmp_path / "items.csv")
    await import_evidence(read, url)
    async with open(url) as store:
        state = await store.items.load("tea")
        assert state is not None
        assert list(state.ids) == ["a", "b"]
        assert state.active.all()
        found = {
            (state.ids[at], outcome, slot): int(state.counts[at, outcome, slot])
            for at, outcome, slot in np.argwhere(state.counts).tolist()
        }
        assert found == expected
        assert state.first_shown.tolist() == state.entered.tolist() == [50.0, 40.0]
        assert (await replay(store)).equal
        engine = await Engine.open(store, SETTINGS)
        answer = await engine.rank(RankRequest("Tea", k=2))
        assert {item.id for item in answer.items} == {"a", "b"}
        click = EventIn("e", answer.ranking_id, "a", "click")
        assert (await engine.feedback([click])).accepted == 1
        assert await shown(engine, "tea") == {"a": (2, 1), "b": (3, 2)}
        await engine.close()
        assert (await replay(store)).equal


async def test_without_features_items_come_back_when_they_are_put(
    evidence: Path, tmp_path: Path
) -> None:
    url = str(tmp_path / "store")
    await import_evidence(read_evidence(evidence), url)
    async with open(url) as store:
        engine = await Engine.open(store, SETTINGS)
        items = [
            ItemIn("b", {"price": 1.0, "age": 2.0}),
            ItemIn("new", {"price": 2.0, "age": 3.0}),
        ]
        await engine.put_items("tea", items)
        answer = await engine.rank(RankRequest("tea", k=5))
        assert {item.id for item in answer.items} == {"b", "new"}
        counts = await shown(engine, "tea")
        assert (counts["b"], counts["new"]) == ((3, 2), (1, 0))
        await engine.close()
        assert (await replay(store)).equal


async def test_names_of_queries_may_stay(evidence: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    read = read_evidence(evidence, features=tmp_path / "items.csv")
    literal = StoreSettings(normalize_queries=False)
    await import_evidence(read, url, settings=Settings(store=literal))
    async with open(url) as store:
        assert await store.items.queries() == [" TEA", "milk", "tea"]
        with pytest.raises(SettingsError, match="normalize_queries"):
            await Engine.open(store, SETTINGS)
        engine = await Engine.open(store, Settings(store=literal, events=SETTINGS.events))
        await engine.close()


async def test_a_store_keeps_what_was_counted(evidence: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    await import_evidence(read_evidence(evidence), url)
    async with open(url) as store:
        with pytest.raises(SettingsError, match="the store counts click, dwell>=30, purchase"):
            await Engine.open(store, Settings())
