"""The demo's world is a pure function of its seed, and its users click as the lab's do."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome

import ebrank
from ebrank.addons import demo
from ebrank.addons.demo import PRESENT, DemoWorld, demo_settings
from ebrank.equations import relevance_probability
from ebrank.service.api import Arrival, EventIn, ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryStore
from tests.service.dashboard.page import Page
from tests.service.scenes import Clock
from tests.serving import serving
from tests.threaded import Threaded


@pytest.fixture(scope="module")
def data() -> ebrank.Dataset:
    return ebrank.load("mq2007-like", scale=0.005)


def test_the_seed_decides_everything(data: ebrank.Dataset) -> None:
    def told(seed: int) -> list[object]:
        world = DemoWorld(data, seed)
        query = world.queries[0]
        names = [item.name for item in world.candidates(query)]
        return [
            names,
            [world.arrival(number) for number in range(20)],
            [world.asks(session) for session in range(20)],
            [world.clicks(session, query, names[-5:]) for session in range(20)],
        ]

    assert told(1) == told(1)
    assert all(one != other for one, other in zip(told(1), told(2), strict=True))


def test_there_is_always_someone_to_arrive_and_every_arrival_is_new(data: ebrank.Dataset) -> None:
    world = DemoWorld(data, seed=3)
    seen = {(query, item.name) for query in world.queries for item in world.candidates(query)}
    editions = set()
    for number in range(40 * len(world.queries)):
        before = {query: world.candidates(query) for query in world.queries}
        arrival = world.arrival(number)
        assert (arrival.query, arrival.enters.name) not in seen
        assert before[arrival.query][0] == arrival.leaves
        assert world.candidates(arrival.query) == [*before[arrival.query][1:], arrival.enters]
        seen.add((arrival.query, arrival.enters.name))
        editions.add(arrival.enters.edition)
    assert editions >= {1, 2}
    assert all(len(world.candidates(query)) == PRESENT for query in world.queries)


def test_users_click_with_probability_of_examination_times_relevance(data: ebrank.Dataset) -> None:
    world = DemoWorld(data, seed=3)
    query = world.queries[0]
    items = sorted(world.candidates(query), key=lambda item: -item.stars)[:4]
    names, rows = [item.name for item in items], [item.row for item in items]
    assert [name.count("★") for name in names] == data.labels[rows].tolist()
    assert list(world.features(items).values()) == data.features[rows].tolist()
    sessions = 4000
    clicks = np.zeros(len(names))
    for session in range(sessions):
        clicked = world.clicks(session, query, names)
        clicks += [name in clicked for name in names]
    labels = np.array([item.stars for item in items], dtype=float)
    expected = relevance_probability(labels, 2) / np.log2([2, 3, 4, 5])
    spread = np.sqrt(expected * (1 - expected) / sessions)
    assert labels[0] > 0
    np.testing.assert_array_less(np.abs(clicks / sessions - expected), 4 * spread + 1e-9)


def test_the_demo_keeps_where_to_listen_and_how_to_store_and_nothing_else() -> None:
    plain = Settings()
    given = replace(
        plain,
        server=replace(plain.server, port=8123),
        store=replace(plain.store, durability="disk"),
        ranking=replace(plain.ranking, k=7),
    )
    made = demo_settings(given, "somewhere")
    assert (made.server.port, made.store.durability) == (8123, "disk")
    assert made.store.url == "somewhere"
    assert not made.server.access_log
    assert made.ranking.k == Settings().ranking.k
    assert made.insights.new_seconds <= 60


# --- served by clicks alone --------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_users_really_served_by_clicks_alone_see_none_of_what_is_new(
    data: ebrank.Dataset,
) -> None:
    """What the dashboard says of an order by clicks alone is what becomes of that order."""
    sessions = 2200
    world = DemoWorld(data, seed=1)
    said = asyncio.run(arrivals_as_told(world, sessions))
    assert len(said) > 20
    assert sum(min(one.ranks) <= demo.K for one in said) > 0.8 * len(said)
    assert sum(min(one.ranks_by_clicks) <= demo.K for one in said) == 0
    assert really_listed(DemoWorld(data, seed=1), sessions) == set()


async def arrivals_as_told(world: DemoWorld, sessions: int) -> list[Arrival]:
    """Return what the service says of arrivals, after a hundred sessions a second."""
    clock = Clock()
    chosen = demo_settings(Settings(), "memory:")
    engine = await Engine.open(MemoryStore(), chosen, clock=clock, timer=clock)
    for query in world.queries:
        await engine.put_items(query, as_items(world, world.candidates(query)))
    for session in range(sessions):
        query = world.asks(session)
        served = await engine.rank(RankRequest(query, k=demo.K))
        clicked = world.clicks(session, query, [item.id for item in served.items])
        await engine.feedback(
            [EventIn(f"{session} {item}", served.ranking_id, item, "click") for item in clicked]
        )
        clock.now += 1 / demo.SESSIONS_PER_SECOND
        if session % demo.SESSIONS_PER_ARRIVAL == 0:
            arrival = world.arrival(session // demo.SESSIONS_PER_ARRIVAL)
            await engine.put_items(arrival.query, as_items(world, [arrival.enters]))
            await engine.withdraw(arrival.query, arrival.leaves.name)
            await engine.insights()
    told = await engine.insights()
    assert told.totals.rankings == sessions
    assert told.totals.items == PRESENT * len(world.queries) + sessions / demo.SESSIONS_PER_ARRIVAL
    stars: list[list[int]] = []
    for query in world.queries:
        items = (await engine.query(query)).items
        assert {item.id for item in items} == {item.name for item in world.candidates(query)}
        items.sort(key=lambda item: item.rank_by_relevance)
        stars.append([item.id.count("★") for item in items])
    assert np.mean([first[:5] for first in stars]) > 2 * np.mean(stars), "the good ones rise"
    await engine.close()
    return told.arrivals


def as_items(world: DemoWorld, items: Iterable[demo.Item]) -> list[ItemIn]:
    return [ItemIn(name, [*values]) for name, values in world.features(items).items()]


def really_listed(world: DemoWorld, sessions: int) -> set[tuple[str, str]]:
    """Return the arrivals that made the top ten where lists are made by clicks alone."""
    weight = np.log2(np.arange(2, demo.K + 2))
    clicks: defaultdict[tuple[str, str], float] = defaultdict(float)
    shown: Counter[tuple[str, str]] = Counter()
    arrived: set[tuple[str, str]] = set()
    listed: set[tuple[str, str]] = set()
    for session in range(sessions):
        query = world.asks(session)
        names = [item.name for item in world.candidates(query)]  # those that came first in front
        names.sort(key=lambda name: -clicks[query, name] / max(shown[query, name], 1))
        for name in names[: demo.K]:
            shown[query, name] += 1
        for name in world.clicks(session, query, names[: demo.K]):
            clicks[query, name] += weight[names.index(name)]
        listed |= arrived & {(query, name) for name in names[: demo.K]}
        if session % demo.SESSIONS_PER_ARRIVAL == 0:
            arrival = world.arrival(session // demo.SESSIONS_PER_ARRIVAL)
            arrived.add((arrival.query, arrival.enters.name))
    return listed


# --- users of a real server --------------------------------------------------------------------


@pytest.mark.slow
def test_users_come_in_a_process_of_their_own_that_ends_with_them(tmp_path: Path) -> None:
    async def visited(server: Threaded) -> int:
        visit = asyncio.create_task(demo.users(server.url))
        async with ebrank.AsyncClient(server.url) as client:
            while (seen := await client.insights()).totals.clicks == 0:
                assert not visit.done()
                await asyncio.sleep(0.1)
            visit.cancel()
            await asyncio.gather(visit, return_exceptions=True)
            before = (await client.insights()).totals.rankings
            await asyncio.sleep(0.5)
            assert (await client.insights()).totals.rankings == before
        return seen.totals.rankings

    with Threaded(tmp_path) as server:
        assert asyncio.run(asyncio.wait_for(visited(server), 60)) > 0


@pytest.mark.slow
def test_the_command_shows_its_point_soon_and_leaves_nothing(
    tmp_path: Path, browser: Chrome
) -> None:
    (tmp_path / "tmp").mkdir()
    place = {"TMPDIR": str(tmp_path / "tmp")}
    with serving(tmp_path / "store", "--demo", variables=place) as server:
        server.printed(f"Open {server.url}/")
        page = Page(browser, server.url)
        page.emulate()
        page.open()
        page.wait(lambda: page.count("#panel-newest svg:first-child path.rising") >= 5, "arrivals")
        assert page.shows(".ribbon")

        def labels() -> list[str]:
            return page.attributes("#panel-newest svg", "aria-label")

        page.wait(lambda: not labels()[0].startswith("As served: 0 "), "a new item in the top ten")
        assert labels()[2].startswith("By clicks alone: 0 ")
        assert page.complaints() == []
        code, errors = server.stop()
    assert (code, "Traceback" in errors) == (0, False)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "store").exists()
