"""Behaviors with weights: what is worth more counts more, and an impression keeps its best."""

from __future__ import annotations

from typing import Any

import pytest

from ebrank.environment.config import SettingsError
from ebrank.service.api import EventIn, ItemIn
from tests.service.scenes import BOTH, Scene, click, played, settings

EXPOSURE = {"policy": "ebrank:estimator=exposure"}


WATCHED = {
    "behaviors": ["click=0.2", "dwell>=10=0.3", "dwell>=60=0.8", "purchase"],
    "negative": ["hide", "return"],
    "other": ["bookmark"],
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("impressions", ["served", "confirmed"])
@played(
    lambda impressions: settings(events=WATCHED | {"impressions": impressions}, ranking=EXPOSURE),
    on=BOTH,
)
async def test_an_impression_is_worth_between_nothing_and_one(
    engine: Scene, impressions: str, together: bool
) -> None:
    """Each of ten items has a history of its own; the last event of each counts as said."""
    histories: dict[str, list[tuple[str, float | None]]] = {
        "0.2": [("click", None)],
        "0.3": [("dwell", 12.0), ("dwell", 30.0)],  # the second one is no more than the first
        "0.8": [("click", None), ("dwell", 5.0), ("dwell", 12.0), ("dwell", 70.0), ("click", 1.0)],
        "0.0": [("dwell", 9.99), ("bookmark", None)],
        "1.0": [("purchase", None), ("dwell", 70.0), ("click", None)],
        "-0.0": [("click", None), ("purchase", None), ("return", None)],
        "0": [("hide", None), ("click", None), ("dwell", 99.0)],
        "00": [("dwell", 12.0), ("hide", None), ("return", None), ("purchase", None)],
    }
    await engine.put_items("q", [ItemIn(name, [1.0]) for name in histories])
    answer = await engine.ranked()
    events = [
        EventIn(f"{name} {at}", answer.ranking_id, name, kind, value=value)
        for at in range(5)
        for name, history in histories.items()
        for kind, value in history[at : at + 1]
    ]
    batches = [events] if together else [[event] for event in events]
    fed = [await engine.feedback(batch) for batch in batches]
    # The same behavior again is a duplicate: another dwell of 10 to 60, and a second click.
    assert sum(answer.accepted for answer in fed) == len(events) - 2
    assert sum(answer.duplicate for answer in fed) == 2
    totals = (await engine.insights()).totals
    assert (totals.events, totals.clicks) == (len(events) - 2, 4)
    for item in (await engine.query("q")).items:
        worth = float(item.id)
        seen = impressions == "served" or item.id != "0.0"
        assert (item.shown, item.clicks) == (int(seen), int(worth > 0))
        expected = (worth + item.alpha) / (item.exposure + item.alpha + item.beta)
        assert item.relevance == pytest.approx(expected)
    assert await engine.sound()


@played(settings(events=WATCHED), count=1)
async def test_events_with_a_threshold_need_a_value(engine: Scene) -> None:
    ranking = (await engine.ranked()).ranking_id
    bad = {
        "malformed: dwell needs a value": EventIn("1", ranking, "i0", "dwell"),
        "malformed: value is not a finite": EventIn(
            "2", ranking, "i0", "dwell", value=float("inf")
        ),
        "unknown_type": EventIn("3", ranking, "i0", "dwell>=10", value=20.0),
    }
    for reason, result in zip(bad, (await engine.feedback([*bad.values()])).results, strict=True):
        assert (result.reason or "").startswith(reason)


@played(count=2)
async def test_a_store_counts_the_behaviors_it_began_with_and_better_ones(engine: Scene) -> None:
    """Negative ones may be declared later, too."""
    first = await engine.ranked()
    buys = click("0", first.ranking_id, "i0", "buy")
    [result] = (await engine.feedback([buys])).results
    assert result.reason == "unknown_type: the type must be one of click, impression"
    await engine.clicked(first, "i0", "i1")
    await engine.close()
    more: dict[str, Any] = {"behaviors": ["click=0.3", "purchase"], "negative": ["return"]}
    later = await engine.opened(settings(events=more))
    await later.feedback([click("2", first.ranking_id, "i1", "return")])
    second = await later.ranked()
    await later.feedback([click("3", second.ranking_id, "i0", "purchase")])
    assert await later.counts() == {"i0": (2, 2), "i1": (2, 0)}
    await later.close()
    for behaviors in (["click"], ["like=0.1", "click=0.3", "purchase"], ["purchase=0.5", "click"]):
        with pytest.raises(SettingsError, match="the store counts click, purchase, in order of"):
            await engine.opened(settings(events={"behaviors": behaviors}))
