"""Features that queries share: one write, and all queries see it."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest

from ebrank.environment.config import SettingsError
from ebrank.service.api import ITEMS_AT_ONCE, ChangeFeaturesRequest, ItemIn, NewFeature
from ebrank.service.core import catalog as bulk
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.learning.fitting import TrainingJob, gather
from ebrank.service.store.memory import MemoryStore
from ebrank.typing import Features
from tests.service.core.test_features import change, priors, scored, trained
from tests.service.faulty import FaultyStore
from tests.service.scenes import Scene, ids, played, settings

TEAS = [
    ItemIn("green", {"price": 1.0, "stock": 5.0}),
    ItemIn("black", {"price": 2.0, "stock": 6.0}),
    ItemIn("white", {"price": 3.0, "stock": 7.0}),
]


GREEN_BLACK = [ItemIn("green"), ItemIn("black")]


async def turns(count: int) -> None:
    """Let others run so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


@played(on=FaultyStore)
async def test_what_queries_share_is_written_once_and_seen_by_all(engine: Scene) -> None:
    assert (await engine.put_catalog(TEAS)).changed == 3
    for query in ("tea", "drinks"):
        put = await engine.put_items(query, GREEN_BLACK)
        assert (put.added, put.candidates) == (2, 2)
    await engine._adopt(trained(1.0, features=("s0",)), against=0)
    for query in ("tea", "drinks"):
        assert await priors(engine, query) == scored(green=1.0, black=2.0)
    writes = engine.store.puts, engine.store.writes
    changed = ItemIn("green", {"price": 4.0, "stock": 5.0})
    assert (await engine.put_catalog([changed, *TEAS[1:]])).changed == 1
    for query in ("tea", "drinks"):
        assert await priors(engine, query) == scored(green=4.0, black=2.0)
    assert (engine.store.puts, engine.store.writes) == writes
    assert (await engine.put_catalog([changed, *TEAS[1:]])).changed == 0
    assert (await engine.catalog_item("green")).features == {"price": 4.0, "stock": 5.0}
    with pytest.raises(NotFound, match="'mate' is not in the catalog"):
        await engine.catalog_item("mate")


@played()
async def test_a_query_names_its_candidates_by_id(engine: Scene) -> None:
    await engine.put_catalog(TEAS)
    answer = await engine.ranked("new", items=["green", "white"])
    assert sorted(ids(answer)) == ["green", "white"]
    assert sorted(ids(await engine.ranked("new"))) == ["green", "white"]
    answer = await engine.ranked("new", items=["green", "black"])
    assert sorted(ids(answer)) == ["black", "green"]
    with pytest.raises(Problem, match="not candidates of this query: 'mate'"):
        await engine.ranked("new", items=["green", "mate"])
    await engine.withdraw("new", "black")
    with pytest.raises(Problem, match="withdrawn from this query: 'black'"):
        await engine.ranked("new", items=["black"])
    with pytest.raises(Problem, match="item 'mate' is not in the catalog: PUT /v1/items"):
        await engine.put_items("new", [ItemIn("mate")])
    assert (await engine.put_items("new", [ItemIn("black")])).candidates == 3


@played()
async def test_features_of_query_and_item_come_on_top(engine: Scene) -> None:
    await engine.put_catalog(TEAS)
    await engine.put_items("tea", [ItemIn("green", {"match": 0.5}), ItemIn("black")])
    assert [(one.name, one.shared) for one in (await engine.features()).features] == [
        ("price", True),
        ("stock", True),
        ("match", False),
    ]
    await engine._adopt(trained(10.0, 1.0, features=("p0", "s0")), against=0)
    assert await priors(engine, "tea") == scored(green=6.0, black=7.0)  # .5 is the mean
    await engine.put_items("tea", [ItemIn("green"), ItemIn("black", {"match": 0.7})])
    assert await priors(engine, "tea") == scored(green=6.0, black=9.0)
    await engine.ranked("tea", items=[ItemIn("green", {"match": 0.1}), "black"])
    await engine.put_catalog([ItemIn("black", [3.0, 1.0])])
    assert await priors(engine, "tea") == scored(green=2.0, black=10.0)
    with pytest.raises(Problem, match="'match', which depends on the query"):
        await engine.put_catalog([ItemIn("green", {"match": 1.0})])
    with pytest.raises(Problem, match="item 'green' appears 2 times"):
        await engine.put_catalog([TEAS[0], TEAS[0]])


@played(settings(features={"missing": "zero"}))
async def test_items_of_queries_may_come_before_the_catalog(engine: Scene) -> None:
    await engine.put_items("tea", [ItemIn("green", {"match": 1.0})])
    await engine.put_catalog(TEAS[1:])
    await engine._adopt(trained(1.0, features=("s0",)), against=0)
    assert await priors(engine, "tea") == scored(green=0.0)
    await engine.put_items("tea", [ItemIn("black", {"match": 1.0})])
    await engine.put_items("tea", [ItemIn("mate", {"match": 1.0})])  # not known yet
    assert await priors(engine, "tea") == scored(green=0.0, black=2.0, mate=0.0)
    await engine.put_catalog([TEAS[0], ItemIn("mate", {"price": 8.0})])
    assert await priors(engine, "tea") == scored(green=1.0, black=2.0, mate=8.0)


@played()
async def test_packed_queries_see_changes_too(engine: Scene) -> None:
    await engine.put_catalog(TEAS)
    for number in range(50):
        await engine.put_items(f"q{number}", GREEN_BLACK)
    await engine._adopt(trained(1.0, features=("s0",)), against=0)
    engine._queries.room = 20_000
    engine._queries.trim()
    assert len(engine._queries._live) < 50
    await engine.put_catalog([ItemIn("green", {"price": 4.0, "stock": 5.0})])
    for number in range(50):
        assert await priors(engine, f"q{number}") == scored(green=4.0, black=2.0)


@played(pair=True)
async def test_another_server_notices_by_its_next_write(engine: Scene) -> None:
    await engine.put_catalog(TEAS)
    await engine.put_items("tea", GREEN_BLACK)
    await engine._adopt(trained(1.0, features=("s0",)), against=0)
    for _ in range(2):
        await engine.other.ranked("tea")
    assert await priors(engine.other, "tea") == scored(green=1.0, black=2.0)
    await engine.put_catalog([ItemIn("green", {"price": 4.0, "stock": 5.0})])
    await engine.other.ranked("tea")
    assert await priors(engine.other, "tea") == scored(green=4.0, black=2.0)
    await engine.put_catalog([ItemIn("green", {"price": 5.0, "stock": 5.0})])
    await engine.other.put_catalog([ItemIn("black", {"price": 6.0, "stock": 5.0})])
    assert await priors(engine.other, "tea") == scored(green=5.0, black=6.0)
    await change(engine, add_shared="new")
    await engine.other.ranked("tea")
    await engine.other.put_catalog([ItemIn("black", [6.0, 5.0, 4.0])])
    assert await priors(engine.other, "tea") == scored(green=5.0, black=6.0)


@played()
async def test_the_trainer_joins_both(engine: Scene) -> None:
    await engine.put_catalog(TEAS)
    await engine.put_items("a", [ItemIn("green", {"match": 0.5}), ItemIn("black")])
    await engine.put_items("b", [ItemIn("white", {"match": 0.7})])
    await engine.put_catalog([ItemIn("green", {"price": 4.0, "stock": 5.0})])
    await change(engine, remove="stock")
    table = await gather(engine.store, TrainingJob(active=0, fill_by_mean=True))
    assert table is not None
    assert table.keys == ("s0", "p0")
    np.testing.assert_array_equal(table.features, np.array([[4, 0.5], [2, 0.5], [3, 0.7]], "f4"))


NAMED = settings(features={"names": ["match"], "shared": ["price", "stock"]})


@played(NAMED)
async def test_names_of_shared_features_may_be_set(engine: Scene) -> None:
    for each in (engine, await engine.opened()):
        await each.put_catalog([ItemIn("green", [1.0, 2.0])])
        await each.put_items("tea", [ItemIn("green", [0.5])])
        assert (await each.catalog_item("green")).features == {"price": 1.0, "stock": 2.0}
        await each.close()
    with pytest.raises(SettingsError, match=r"features.shared: .* \(match, price, stock\)"):
        await engine.opened(settings(features={"shared": ["price"]}))


@played()
async def test_many_items_are_put_in_portions_if_none_is_wrong(engine: Scene) -> None:
    many = [ItemIn(f"i{number}", {"x": float(number)}) for number in range(250)]
    with pytest.raises(Problem, match="item 'last' has an unknown feature 'y'"):
        await engine.put_catalog([*many, ItemIn("last", {"y": 1.0})])
    assert await engine.store.catalog.version() == 0
    assert (await engine.put_catalog(many)).changed == 250
    assert await engine.store.catalog.version() == math.ceil(250 / ITEMS_AT_ONCE)
    assert (await engine.put_catalog([*many[:-1], ItemIn("new", [1.0])])).changed == 1


# --- lines ---------------------------------------------------------------------------------------


def lines(items: Sequence[object]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


async def cut(data: bytes, size: int) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]


@pytest.mark.parametrize("size", [1, 2, 7, 50, 10_000])
@played()
async def test_each_line_is_judged_by_itself_however_it_is_cut(engine: Scene, size: int) -> None:
    good = {"id": "a", "features": {"x": 1.0}}
    data = lines(
        [
            {"id": "list", "features": [1.0]},
            good,
            {"id": "b", "features": {"x": 2.0, "y": 1.0}},
            {"id": "", "features": {"x": 2.0}},
            {"id": "c", "features": {"x": 1e300}},
        ]
    )
    data += b'\n  \r\nnot JSON\n{"id": "\xff"}\n' + lines([good, {"id": "é", "features": [3]}])
    answer = await engine.load_catalog(cut(data.rstrip(b"\n"), size))
    assert (answer.lines, answer.changed, answer.unchanged, answer.rejected) == (9, 2, 1, 6)
    assert [error.line for error in answer.errors] == [1, 3, 4, 5, 8, 9]
    assert answer.errors[1].reason.startswith("item 'b' has an unknown feature 'y' (known: x)")
    assert await engine.store.catalog.tally() == (2, (2,))


@played()
async def test_many_lines_are_many_transactions(
    engine: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "AT_ONCE", 10)
    items = [{"id": f"i{number}", "features": {"x": number}} for number in range(95)]
    answer = await engine.load_catalog(cut(lines(items), 100_000))
    assert (answer.lines, answer.changed, answer.errors) == (95, 95, [])
    assert await engine.store.catalog.version() == 10
    more = [*items, {"id": "i3", "features": {"x": 0.5}}]
    again = await engine.load_catalog(cut(lines(more), 1000))
    assert (again.changed, again.unchanged) == (1, 95)


@played()
async def test_errors_are_counted_and_the_first_are_told(engine: Scene) -> None:
    answer = await engine.load_catalog(cut(b"[]\n" * 1000, 1000))
    assert (answer.lines, answer.rejected, len(answer.errors)) == (1000, 1000, bulk.MOST_ERRORS)
    with pytest.raises(Problem, match="line 2 is longer than"):
        await engine.load_catalog(cut(b"\n" + b" " * (bulk.LONGEST_LINE + 2000), 1000))


@played()
async def test_others_are_served_while_lines_are_read(engine: Scene) -> None:
    await engine.put_items("q", [ItemIn("a", [1.0])])
    data = lines([{"id": f"i{number}", "features": {"x": number}} for number in range(5000)])
    loading = asyncio.create_task(engine.load_catalog(cut(data, 100_000)))
    served = 0
    while not loading.done():
        await engine.ranked()
        await asyncio.sleep(0)
        served += 1
    assert (await loading).changed == 5000
    assert served >= 10


# --- at the same time ----------------------------------------------------------------------------


class SlowCatalog(MemoryStore):
    """Takes a while to read rows, in which others have turns."""

    def __init__(self) -> None:
        super().__init__()
        read = self.catalog.read

        async def slowly(names: Sequence[str], since: int = 0) -> dict[str, Features]:
            found = await read(names, since)
            for _ in range(3):
                await asyncio.sleep(0)
            return found

        self.catalog.read = slowly  # type: ignore[method-assign]


@pytest.mark.parametrize("later", range(6))
@played(on=SlowCatalog)
async def test_the_first_items_do_not_undo_a_change_of_features_made_meanwhile(
    engine: Scene, later: int
) -> None:
    await engine.put_catalog(TEAS)
    teas = [ItemIn("green", {"match": 1.0}), ItemIn("black")]
    first = asyncio.create_task(engine.put_items("tea", teas))
    await turns(later)
    await change(engine, add_shared="age")
    await first
    names = [feature.name for feature in (await engine.features()).features]
    assert sorted(filter(None, names)) == ["age", "match", "price", "stock"]
    await engine._adopt(trained(1.0, features=("p0",)), against=0)
    assert await priors(engine, "tea") == scored(green=1.0, black=1.0)


@played(on=SlowCatalog)
async def test_changes_while_a_query_is_read_are_not_missed(engine: Scene) -> None:
    """Neither of items, nor of features."""
    await engine.put_catalog(TEAS)
    await engine.put_items("tea", [ItemIn("green", {"m": 1.0}), ItemIn("black", {"m": 2.0})])
    await engine._adopt(trained(1.0, 10.0, features=("s0", "p0")), against=0)
    for turn in range(20):
        engine._queries.forget("tea")
        item = ItemIn("green", {"price": float(turn), "stock": 1.0})
        reading = asyncio.create_task(priors(engine, "tea"))
        await turns(turn % 7)
        await asyncio.gather(engine.put_catalog([item]), reading)
        assert await priors(engine, "tea") == scored(green=turn + 10.0, black=22.0)
    for turn in range(20):
        engine._queries.forget("tea")
        old, new = ("m", "n") if turn % 2 == 0 else ("n", "m")
        added = [NewFeature(f"x{turn}", shared=turn % 3 == 0)]
        reading = asyncio.create_task(priors(engine, "tea"))
        await turns(turn % 7)
        await engine.change_features(ChangeFeaturesRequest(rename={old: new}, add=added))
        await engine._queries.get("another", 0.0)
        await reading
        assert await priors(engine, "tea") == scored(green=29.0, black=22.0)
        live = await engine.live("tea")
        assert live.keys == engine._catalog.schema.keys


@played(pair=True)
async def test_withdrawn_items_stay_away_in_packed_queries_on_other_servers_and_after_a_restart(
    engine: Scene,
) -> None:
    await engine.put_catalog(TEAS)
    for query in ("tea", "drinks"):
        await engine.put_items(query, GREEN_BLACK)
    engine._queries.room = 0  # packs all but the latest
    for each in (engine, engine.other):
        await each.ranked("tea")
        await each.ranked("drinks")
    await engine.withdraw_from_all("green")
    for each in (engine, engine.other):
        await each.ranked("drinks")  # the second server notices by this write
        for query in ("tea", "drinks"):
            assert ids(await each.ranked(query)) == ["black"]
    third = await engine.opened()
    assert ids(await third.ranked("tea")) == ["black"]
    await change(third, add_shared="size")
    await change(third, remove="price stock")
    assert ids(await third.ranked("tea")) == ["black"]
    await third.put_items("new", [ItemIn("green"), ItemIn("white")])
    assert ids(await third.ranked("new")) == ["white"]
    await third.put_catalog([ItemIn("green", {"size": 1.0})])
    assert sorted(ids(await third.ranked("new"))) == ["green", "white"]


@played()
async def test_the_trainer_learns_from_withdrawn_items_but_does_not_scale_by_them(
    engine: Scene,
) -> None:
    await engine.put_catalog(TEAS)
    await engine.put_items("tea", [ItemIn(item.id) for item in TEAS])
    await engine.ranked("tea")
    await engine.withdraw_from_all("white")
    table = await gather(engine.store, TrainingJob(active=0))
    assert table is not None
    assert table.active.tolist() == [True, True, False]
    assert table.seen.all()
    assert table.features.tolist() == [[1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]


@played(on=SlowCatalog)
async def test_an_item_that_is_withdrawn_while_it_becomes_a_candidate_is_not_listed(
    engine: Scene,
) -> None:
    await engine.put_catalog(TEAS)
    await engine.put_items("old", [ItemIn("white")])
    for turn in range(40):
        query = "old" if turn % 2 else f"query {turn}"
        putting = asyncio.create_task(engine.put_items(query, GREEN_BLACK[::-1]))
        await turns(turn // 2)
        await asyncio.gather(engine.withdraw_from_all("green"), putting)
        assert "green" not in ids(await engine.ranked(query)), turn
        await engine.put_catalog(TEAS)


@played(on=SlowCatalog)
async def test_a_withdrawal_does_not_undo_a_change_of_the_item_made_meanwhile(
    engine: Scene,
) -> None:
    await engine.put_catalog(TEAS)
    await engine.withdraw_from_all("white")
    for turn in range(20):
        price: dict[str, float | None] = {"price": float(turn), "stock": 1.0}
        withdrawing = asyncio.create_task(engine.withdraw_from_all("green"))
        await turns(turn)
        await asyncio.gather(engine.put_catalog([ItemIn("green", price)]), withdrawing)
        assert (await engine.catalog_item("green")).features == price, turn


@played(settings(features={"missing": "mean"}), on=SlowCatalog)
async def test_changes_in_part_at_the_same_time_both_count_and_none_makes_no_version(
    engine: Scene,
) -> None:
    await engine.put_catalog(TEAS)
    await asyncio.gather(
        engine.put_catalog([ItemIn("green", {"price": 8.0})]),
        engine.put_catalog([ItemIn("green", {"stock": 9.0})]),
    )
    assert (await engine.catalog_item("green")).features == {"price": 8.0, "stock": 9.0}
    for _ in range(2):
        await engine.put_catalog([ItemIn("black", {"price": 2.0, "stock": None})])
    assert await engine.store.catalog.version() == 4
