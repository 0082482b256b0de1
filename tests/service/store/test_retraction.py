"""Retraction: counters become what they would be if what was taken back had never counted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ebrank.service.ops.check import check
from ebrank.service.ops.replay import replay
from ebrank.service.store import Store, open, retraction
from ebrank.service.store.counting import time_of
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, Operation, RankingEntry, Wanted
from ebrank.testing.histories import BEHAVIORS, bits, event, new_items
from tests.postgres import Postgres
from tests.service.store.blocking import run

QUERIES, USERS, LETTERS = ("p", "q", "r"), ("ann", "bob", None), "abcdef"
TOKENS = ("shop", "leaked", None)


@dataclass
class History:
    """A made-up history, entry by entry, one second apart."""

    entries: list[Operation]

    @classmethod
    def drawn(cls, seed: int, *, forgets: bool, confirmed: bool) -> History:
        chance, entries, views = random.Random(seed), list[Operation](), list[RankingEntry]()
        for second in range(120):
            epoch, time = (second // 50 if forgets else 0), 100.0 + second
            if not views or chance.random() < 0.4:
                query, user = chance.choice(QUERIES), chance.choice(USERS)
                taken_back, first = chance.random() < 0.15, None
                seen: tuple[int, ...] = ()
                items = tuple(chance.sample(LETTERS, 3))
                before = [
                    each for each in views if (each.query, each.user) == (query, user) and user
                ]
                if before and not before[-1].retracted and chance.random() < 0.6:
                    view = [each for each in before if each.continues or each.id]
                    first = before[-1].continues or before[-1].id
                    ranks = _ranks(view, first)
                    seen = tuple(ranks.get(item, 0) for item in items)
                listed = RankingEntry(
                    f"l{second}",
                    query,
                    time,
                    1,
                    items,
                    counted=not (taken_back or confirmed),
                    user=user,
                    continues=first,
                    seen=seen if any(seen) else (),
                    retracted=taken_back,
                    epoch=epoch,
                    token=chance.choice(TOKENS),
                )
                views.append(listed)
                entries.append(listed)
                continue
            cited = chance.choice(views[-8:])
            at = chance.randrange(3)
            kind = chance.choice([*BEHAVIORS, "impression"])
            shows = not (cited.counted or cited.retracted)
            logged = event(f"e{second}", cited, cited.items[at], kind, shows=shows, time=time)
            logged = replace(
                logged,
                ranking_id=cited.continues or cited.id,
                rank=(cited.seen[at] if cited.seen else 0) or at + 1,
                epoch=epoch,
                retracted=cited.retracted,
                outcome=0 if cited.retracted else logged.outcome,
            )
            entries.append(logged)
        return cls(entries)

    async def written(self, store: Store, until: float = 0.0) -> None:
        for query in QUERIES:
            await store.items.put(query, new_items(*LETTERS), 1.0)
        for entry in self.entries:
            await store.log.write([entry])
        if until:
            await store.log.roll_up(until)


def _ranks(lists: Sequence[RankingEntry], view: str) -> dict[str, int]:
    """Return at which ranks the impressions of a view count."""
    ranks: dict[str, int] = {}
    for each in lists:
        if view in (each.continues, each.id) and not each.retracted:
            for rank, item in enumerate(each.items, 1):
                ranks.setdefault(item, rank)
    return ranks


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


async def compared(store: Store, history: History, wanted: Wanted, rolled: float) -> int:
    """Retract from a store, and compare with one in which that never counted."""
    await history.written(store, rolled)
    log = [entry async for entry in store.log.entries()]
    places = fallen(log, wanted)
    expected = MemoryStore()
    old = [entry for entry in history.entries if time_of(entry) < rolled]
    await History(old).written(expected, rolled)
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
            [written] = (await store.log.write([replace(entry, hint=None)])).written
            assert written.status == "duplicate"
    await store.log.roll_up(2000.0)
    assert (await replay(store)).equal
    return len(new)


WANTED = (
    Wanted(since=150.0, until=200.0),
    Wanted(until=170.0),
    Wanted(user="ann"),
    Wanted(user="bob", since=180.0),
    Wanted(token="leaked"),
    Wanted(token="leaked", user="ann", since=130.0, until=190.0),
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
        history = History.drawn(seed, forgets=forgets, confirmed=confirmed)
        lists = [entry for entry in history.entries if isinstance(entry, RankingEntry)]
        one = next(each for each in lists[len(lists) // 3 :] if each.continues)
        for wanted in (*WANTED, Wanted(ranking=one.id)):
            for rolled in (0.0, 140.0):
                changed += run(compared(MemoryStore(), history, wanted, rolled))
    assert changed > 200


@pytest.mark.parametrize("forgets", [False, True])
async def test_postgresql_agrees(database: Postgres, forgets: bool) -> None:
    for number, wanted in enumerate(WANTED):
        history = History.drawn(number, forgets=forgets, confirmed=number % 2 == 1)
        async with open(database.url(f"retract{number}{forgets}")) as store:
            await compared(store, history, wanted, 140.0)


async def test_rolled_up_impressions_are_reported(tmp_path: Path) -> None:
    async with open(str(tmp_path / "store")) as store:
        await History.drawn(7, forgets=False, confirmed=False).written(store, 150.0)
        plan = await store.deletions.retractable(Wanted(until=140.0))
        assert (plan.rankings, plan.events, plan.log_begins) == (0, 0, 150.0)
        assert plan.rolled_up > 0
        assert (await store.deletions.retractable(Wanted(since=155.0))).rolled_up == 0
