"""The service serves every policy that the lab simulates: the same scores, to the bit."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebrank import EBRanker, Examination, policy
from ebrank.evidence import BehaviorStats
from ebrank.features import Scaling
from ebrank.service import api
from ebrank.service.core.engine import Engine
from ebrank.service.settings import ExaminationSettings, RankingSettings, Settings
from ebrank.service.store.memory import MemoryStore

ITEMS = 8
POLICIES = [
    f"ebrank:estimator={estimator},bonus={bonus}"
    for estimator in ("ips", "exposure", "exact")
    for bonus in ("marginal_certainty", "none")
]


async def served(text: str, lists: list[list[bool]]) -> tuple[dict[str, float], BehaviorStats]:
    """Serve some lists to users who click by plan; return the scores then, and the counts."""
    chosen = Settings(
        ranking=RankingSettings(policy=text, k=ITEMS, window=0.0),
        examination=ExaminationSettings(cutoff=6),
    )
    store = MemoryStore()
    engine = await Engine.open(store, chosen)
    await engine.put_items("tea", [api.ItemIn(f"i{n}", [float(n)]) for n in range(ITEMS)])
    for number, clicks in enumerate(lists):
        answer = await engine.rank(api.RankRequest("tea"))
        events = [
            api.EventIn(f"{number}-{item.id}", answer.ranking_id, item.id, "click")
            for item, clicked in zip(answer.items, clicks, strict=False)
            if clicked
        ]
        await engine.feedback(events)
    state = await store.items.load("tea")
    last = await engine.rank(api.RankRequest("tea"))
    await engine.close()
    assert state is not None
    return {item.id: item.score for item in last.items}, BehaviorStats(state.counts)


@pytest.mark.parametrize("text", POLICIES)
@settings(max_examples=5)
@given(st.lists(st.lists(st.booleans(), min_size=ITEMS, max_size=ITEMS), max_size=6))
def test_the_service_scores_as_the_library_does(text: str, lists: list[list[bool]]) -> None:
    scores, stats = asyncio.run(served(text, lists))
    ranker = EBRanker(
        policy.parse(text), examination=Examination(cutoff=6), scaling=Scaling("query")
    )
    features = np.arange(ITEMS, dtype=np.float32).reshape(-1, 1)
    expected = ranker.rank(features, stats).candidates.scores
    assert [scores[f"i{n}"] for n in range(ITEMS)] == expected.tolist()
