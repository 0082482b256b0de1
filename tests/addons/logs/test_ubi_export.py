"""A store's log as User Behavior Insights: what OpenSearch takes, and what comes back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ebrank.addons.logs import UBI, aggregate
from ebrank.addons.logs.ubi_export import FILE, export_ubi
from ebrank.evidence import Behaviors
from ebrank.service.api import EventIn, ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.settings import EventsSettings, Settings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import NewItem, RankingEntry
from tests.addons.logs.replaying import file_counts

DECLARED = ("click=0.3", "dwell>=30=0.6", "purchase")
KINDS = (
    ("impression", None),
    ("click", None),
    ("dwell", 40.0),
    ("dwell", 3.0),
    ("purchase", None),
    ("hide", None),
)
USUAL = {"application", "query_id", "user_query", "timestamp"}
FIELDS = {
    "ubi_queries": USUAL
    | {"query_response_id", "query_response_hit_ids", "query_attributes", "client_id"},
    "ubi_events": USUAL | {"action_name", "event_attributes"},
}
"""What we write of the fields that OpenSearch's mappings have; others would be dynamic."""
STRICT_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.parametrize("impressions", ["served", "confirmed"])
async def test_what_the_store_counted_comes_back(
    impressions: Literal["served", "confirmed"], tmp_path: Path
) -> None:
    """Users come back within the window and turn pages; some click twice, or only hover."""
    rng, store = np.random.default_rng(8), MemoryStore()
    events = EventsSettings(impressions=impressions, behaviors=DECLARED, negative=("hide",))
    engine = await Engine.open(store, Settings(events=events))
    for query in ("tea", "käse, 'alt'"):
        items = [ItemIn(f"i{at}", [float(at)]) for at in range(12)]
        await engine.put_items(query, items)
        for number in range(30) if query == "tea" else range(30, 60):
            request = RankRequest(query, k=4, offset=4 * (number % 3 == 2), user=f"u{number // 3}")
            answer = await engine.rank(request)
            sent = [
                EventIn(
                    f"{number}{item.id}{kind}{value}", answer.ranking_id, item.id, kind, value=value
                )
                for item in answer.items
                for kind, value in KINDS
                if rng.random() < 0.2
            ]
            await engine.feedback(sent)
    await engine.close()
    written = await export_ubi(store, tmp_path / "ubi")
    lines = (tmp_path / "ubi" / FILE).read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines[1::2]]
    indexes = [json.loads(line)["index"]["_index"] for line in lines[::2]]
    assert written == {name: indexes.count(name) for name in ("ubi_queries", "ubi_events")}
    assert written["ubi_queries"] == 60
    assert all(set(each) <= FIELDS[index] for index, each in zip(indexes, documents, strict=True))
    assert all(STRICT_DATE_TIME.fullmatch(document["timestamp"]) for document in documents)
    texts = [text for each in documents for text in each.get("query_attributes", {}).values()]
    assert texts
    assert all(isinstance(text, str) for text in texts)
    out = tmp_path / "evidence.parquet"
    behaviors = Behaviors.parse(DECLARED, negative=["hide"])
    aggregate([tmp_path / "ubi" / FILE], out, fields=UBI, behaviors=behaviors)
    found = {key: count for key, (count, _) in file_counts(out).items()}
    expected = {}
    for query in await store.items.queries():
        state = await store.items.load(query)
        assert state is not None
        for at, outcome, slot in np.argwhere(state.counts).tolist():
            expected[query, state.ids[at], outcome, slot] = int(state.counts[at, outcome, slot])
    assert found == expected


async def test_an_experiment_and_its_arm_are_told(tmp_path: Path) -> None:
    store = MemoryStore()
    await store.items.put("tea", [NewItem("a", (1.0,))], 1.0)
    await store.log.write([RankingEntry("r", "tea", 2.0, 3, ("a",), arm="holdout:new:2")])
    await export_ubi(store, tmp_path / "ubi")
    listed = json.loads((tmp_path / "ubi" / FILE).read_text().splitlines()[1])
    told = {"ebrank.model": "3", "ebrank.experiment": "holdout", "ebrank.arm": "new"}
    assert listed["query_attributes"] == told
