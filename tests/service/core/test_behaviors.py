"""Behaviors with weights: what is worth more counts more, and an impression keeps its best."""

from __future__ import annotations

import pytest

from ebrank.service.api import RankRequest
from ebrank.service.core.engine import Engine
from ebrank.service.store.memory import MemoryStore
from ebrank.settings import SettingsError
from tests.service.scenes import click, ids, items, play, settings, statuses

SHOP = {"behaviors": ["click=0.3", "purchase"], "other": ["bookmark"]}
EXPOSURE = {"policy": "ebrank:estimator=exposure"}


@pytest.mark.parametrize("together", [True, False])
def test_an_impression_is_worth_its_best_behavior(together: bool) -> None:
    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(4))
        answer = await engine.rank(RankRequest("q"))
        a, b, c, d = ids(answer)
        events = [
            click("1", answer.ranking_id, a),
            click("2", answer.ranking_id, a, "purchase"),
            click("3", answer.ranking_id, b, "purchase"),
            click("4", answer.ranking_id, b),
            click("5", answer.ranking_id, c),
            click("6", answer.ranking_id, d, "bookmark"),
        ]
        for batch in [events] if together else [[event] for event in events]:
            assert set(statuses(await engine.feedback(batch))) == {"accepted"}
        view = {item.id: item for item in (await engine.query("q")).items}
        for item, worth, clicks in ((a, 1.0, 1), (b, 1.0, 1), (c, 0.3, 1), (d, 0.0, 0)):
            known = view[item]
            assert (known.shown, known.clicks) == (1, clicks)
            expected = (worth + known.alpha) / (known.exposure + known.alpha + known.beta)
            assert known.relevance == pytest.approx(expected)
        totals = (await engine.insights()).totals
        assert (totals.events, totals.clicks) == (6, 3)

    play(scene, settings(events=SHOP, ranking=EXPOSURE))


def test_a_type_that_is_not_declared_is_rejected() -> None:
    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(1))
        answer = await engine.rank(RankRequest("q"))
        [result] = (await engine.feedback([click("1", answer.ranking_id, "i0", "buy")])).results
        assert result.reason == "unknown_type: the type is one of click, impression"

    play(scene)


def test_a_store_counts_the_behaviors_it_began_with_and_better_ones() -> None:
    store = MemoryStore()

    async def clicked(engine: Engine) -> None:
        await engine.put_items("q", items(2))
        answer = await engine.rank(RankRequest("q"))
        await engine.feedback([click("1", answer.ranking_id, "i0")])

    async def bought(engine: Engine) -> None:
        answer = await engine.rank(RankRequest("q"))
        await engine.feedback([click("2", answer.ranking_id, "i0", "purchase")])
        [item] = [item for item in (await engine.query("q")).items if item.id == "i0"]
        assert (item.shown, item.clicks) == (2, 2)

    play(clicked, store=store)
    play(bought, settings(events={"behaviors": ["click=0.3", "purchase"]}), store=store)
    for behaviors in (["click"], ["like=0.1", "click=0.3", "purchase"], ["purchase=0.5", "click"]):
        with pytest.raises(SettingsError, match="the store counts click, purchase, from the least"):
            play(bought, settings(events={"behaviors": behaviors}), store=store)


@pytest.mark.parametrize(
    "policy",
    [
        "ebrank",
        "ebrank:estimator=exposure",
        "ebrank:estimator=exact,epsilon=3",
        "ebrank:bonus=none",
        "thompson",
    ],
)
def test_every_policy_is_served(policy: str) -> None:
    async def scene(engine: Engine) -> None:
        await engine.put_items("q", items(6))
        orders = set()
        for number in range(8):
            answer = await engine.rank(RankRequest("q", k=3, explain=True))
            orders.add(tuple(ids(answer)))
            scores = [item.score for item in answer.items]
            assert scores == sorted(scores, reverse=True)
            await engine.feedback([click(f"e{number}", answer.ranking_id, ids(answer)[0])])
        await engine.query("q")
        await engine.insights()
        assert len(orders) > 1 or policy == "ebrank:bonus=none"

    play(scene, settings(ranking={"policy": policy}))
