"""Retraction: counters become what they would be if what was taken back had never counted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ebrank.service.api import ItemIn, RankRequest, RankResponse, RetractionRequest
from ebrank.service.ops.check import check
from ebrank.service.ops.replay import replay
from ebrank.service.store import Store, open, retraction
from ebrank.service.store.base import SALT, hashed
from ebrank.service.store.counting import time_of
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, Operation, RankingEntry, Wanted
from tests.postgres import Postgres
from tests.service.histories import BEHAVIORS, bits, new_items
from tests.service.scenes import Clock, Scene, click, ids, settings
from tests.service.store.blocking import run

QUERIES, USERS, LETTERS = ("p", "q", "r"), ("ann", "bob", None), "abcdef"
KINDS = (*BEHAVIORS, "impression")
HASHED = {user: hashed(user, "salt") for user in USERS if user}


async def lived(seed: int, *, forgets: bool, confirmed: bool) -> list[Operation]:
    """Return the log of a server, one visit a second from 100 on; some lists were retracted."""
    store, clock, chance = MemoryStore(), Clock(100.0), random.Random(seed)
    await store.meta.set({SALT: "salt"})
    events: dict[str, object] = {
        "behaviors": ["click=0.3", "purchase"],
        "negative": ["hide", "return"],
        "impressions": "confirmed" if confirmed else "served",
        "half_life_days": 200.0 / 86400.0 if forgets else None,
    }
    engine = await Scene.open(store, settings(events=events), clock=clock, timer=clock)
    for query in QUERIES:
        await engine.put_items(query, [ItemIn(letter, [1.0]) for letter in LETTERS])
    lists = list[RankResponse]()
    for second in range(120):
        clock.now = 100.0 + second
        if not lists or chance.random() < 0.4:
            user, offset = chance.choice(USERS), chance.choice((0, 0, 2))
            asked = RankRequest(chance.choice(QUERIES), 3, offset, user=user)
            lists.append(await engine.rank(asked, token=chance.choice(("shop", "leaked", None))))
        else:
            cited = chance.choice(lists[-8:])
            item, kind = chance.choice(ids(cited)), chance.choice(KINDS)
            await engine.feedback([click(f"e{second}", cited.ranking_id, item, kind)])
        if chance.random() < 0.05:
            cited = chance.choice(lists)
            await engine.retract(RetractionRequest(ranking_id=cited.ranking_id, apply=True))
    await engine.close()
    return [entry async for entry in store.log.entries()]


async def written(store: Store, entries: Sequence[Operation], until: float = 0.0) -> None:
    for query in QUERIES:
        await store.items.put(query, new_items(*LETTERS), 1.0)
    for entry in entries:
        await store.log.write([entry])
    if until:
        await store.log.roll_up(until)


def follows(cause: Operation, entry: Operation) -> bool:
    """Return whether a later entry is retracted because of an earlier one."""
    if isinstance(cause, EventEntry):
        same = cause.ranking_id, cause.item
        return isinstance(entry, EventEntry) and (entry.ranking_id, entry.item) == same
    view = cause.continues or cause.id
    if isinstance(entry, RankingEntry):
        return (entry.continues or entry.id) == view
    seen = dict(zip(cause.items, cause.seen or (0, 0, 0), strict=True))
    return entry.ranking_id == view and seen.get(entry.item) == 0


def fallen(log: Sequence[Operation], wanted: Wanted) -> set[int]:
    """Return the places of what is retracted, by the definition: until nothing more follows."""
    timed = wanted.since is not None or wanted.until != float("inf")

    def theirs(entry: RankingEntry) -> bool:
        return wanted.user in (None, entry.user) and wanted.token in (None, entry.token)

    def named(at: int, entry: Operation) -> bool:
        time = time_of(entry)
        if not (wanted.since or 0.0) <= time < wanted.until or wanted.query not in (
            None,
            entry.query,
        ):
            return False
        if isinstance(entry, RankingEntry):
            return theirs(entry) and wanted.ranking in (None, entry.id)
        if wanted.ranking is not None or not timed:
            return False
        before = (each for each in log[:at] if isinstance(each, RankingEntry))
        view = (each for each in before if entry.ranking_id in (each.continues, each.id))
        return any(map(theirs, view)) or wanted.user is wanted.token is None

    gone = {at for at, entry in enumerate(log) if named(at, entry)}
    while True:
        more = set(gone)
        for at in gone:
            cause = log[at]
            for later, entry in enumerate(log[at + 1 :], at + 1):
                if follows(cause, entry):
                    more.add(later)
        if more == gone:
            return gone
        gone = more


def uncounted(entry: Operation) -> Operation:
    """Return an entry as if it had never counted."""
    if isinstance(entry, RankingEntry):
        return replace(entry, retracted=True, counted=False)
    return replace(entry, retracted=True, outcome=0, shows=False, replaces=0)


async def states(store: Store) -> list[object]:
    return [bits(await store.items.load(query)) for query in QUERIES]


async def compared(
    store: Store, history: Sequence[Operation], wanted: Wanted, rolled: float
) -> int:
    """Retract from a store, and compare with one in which that never counted."""
    await written(store, history, rolled)
    log = [entry async for entry in store.log.entries()]
    places = fallen(log, wanted)
    expected = MemoryStore()
    await written(expected, [entry for entry in history if time_of(entry) < rolled], rolled)
    for at, entry in enumerate(log):
        await expected.log.write([uncounted(entry) if at in places else entry])
    new = {at for at in places if not log[at].retracted}
    plan = await store.deletions.retractable(wanted)
    assert plan.rankings + plan.events == len(new)
    proof, names = await store.deletions.retract(wanted, "digest", 999.0)
    assert await states(store) == await states(expected)
    assert (await replay(store)).equal
    assert await check(store, 1000.0) == []
    after = [entry async for entry in store.log.entries()]
    assert after == [uncounted(entry) if at in places else entry for at, entry in enumerate(log)]
    if new:
        assert proof is not None
        assert (proof.rankings + proof.events, proof.queries) == (len(new), len(names))
        assert await store.deletions.all() == [proof]
    assert await store.deletions.retract(wanted, "digest", 999.0) == (None, [])
    for at in places:  # what is sent again is still a duplicate
        entry = log[at]
        if isinstance(entry, EventEntry):
            [again] = (await store.log.write([entry])).written
            assert again.status == "duplicate"
    await store.log.roll_up(2000.0)
    assert (await replay(store)).equal
    return len(new)


WANTED = (
    Wanted(since=150.0, until=200.0),
    Wanted(until=170.0),
    Wanted(user=HASHED["ann"]),
    Wanted(user=HASHED["bob"], since=180.0),
    Wanted(token="leaked"),
    Wanted(token="leaked", user=HASHED["ann"], since=130.0, until=190.0),
    Wanted(query="q"),
    Wanted(query="p", since=160.0, until=165.0),
)


@pytest.mark.slow
@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("confirmed", [False, True])
def test_counters_are_those_of_a_log_in_which_it_never_counted(
    forgets: bool, confirmed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retraction, "AT_ONCE", 1)
    monkeypatch.setattr(retraction, "MOST_HELD", 50)
    changed = 0
    for seed in range(2):
        history = run(lived(seed, forgets=forgets, confirmed=confirmed))
        lists = [entry for entry in history if isinstance(entry, RankingEntry)]
        one = next(each for each in lists[len(lists) // 3 :] if each.continues)
        for wanted in (*WANTED, Wanted(ranking=one.id)):
            for rolled in (0.0, 140.0):
                changed += run(compared(MemoryStore(), history, wanted, rolled))
    assert changed > 200


@pytest.mark.parametrize("forgets", [False, True])
async def test_postgresql_agrees(database: Postgres, forgets: bool) -> None:
    for number, wanted in enumerate(WANTED):
        history = await lived(number, forgets=forgets, confirmed=number % 2 == 1)
        async with open(database.url(f"retract{number}{forgets}")) as store:
            await compared(store, history, wanted, 140.0)


async def test_rolled_up_impressions_are_reported(tmp_path: Path) -> None:
    async with open(str(tmp_path / "store")) as store:
        await written(store, await lived(7, forgets=False, confirmed=False), 150.0)
        plan = await store.deletions.retractable(Wanted(until=140.0))
        assert (plan.rankings, plan.events, plan.log_begins) == (0, 0, 150.0)
        assert plan.rolled_up > 0
        assert (await store.deletions.retractable(Wanted(since=155.0))).rolled_up == 0
