"""Entries of the log as rows of tables, and back. Rows name items by their places."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ebrank.evidence.slots import slot_of
from ebrank.service.store.postgresql.database import decoded, encoded
from ebrank.service.store.records import EventEntry, RankingEntry

Row: TypeAlias = Any
Names: TypeAlias = Mapping[int, str]
"""Of items, by their places."""

RANKINGS = """SELECT r.query, seq, r.id, q.name, time, model, items, counted, explored, relevance,
    cost, user_hash, would_rank, ranks_above, continues, seen, bot, epoch, contexts
    FROM rankings AS r JOIN queries AS q ON r.query = q.number"""
EVENTS = """SELECT e.query, seq, event_id, ranking_id, q.name, place, type, rank, outcome, shows,
    time, received, replaces, bot, value, epoch
    FROM events AS e JOIN queries AS q ON e.query = q.number"""


def ranking_row(seq: int, entry: RankingEntry, query: int, places: Sequence[int]) -> Row:
    """Return the row of a list, given where its items stand, and then those it would have had."""
    length = len(entry.items)
    return (
        query,
        seq,
        entry.id.encode(),
        entry.time,
        entry.model,
        _text(places[:length]),
        entry.counted,
        bytes(entry.explored),
        struct.pack(f"<{len(entry.relevance)}d", *entry.relevance),
        entry.cost,
        encoded(entry.user),
        _text(places[length:]) if entry.would_rank else None,
        entry.offset,
        encoded(entry.continues),
        _text(entry.seen) if entry.seen else None,
        entry.bot,
        entry.epoch,
        _text(entry.contexts) if entry.contexts else None,
    )


def event_row(seq: int, entry: EventEntry, query: int, place: int, turn: int) -> Row:
    """Return the row of an event, as a write in rounds gives it."""
    return (
        query,
        seq,
        entry.event_id.encode(),
        entry.ranking_id.encode(),
        place,
        entry.type.encode(),
        entry.rank,
        entry.outcome,
        entry.shows,
        entry.time,
        entry.received,
        entry.bot,
        entry.value,
        entry.epoch,
        entry.replaces,
        slot_of(entry.rank),
        turn,
    )


def ranking(row: Row, names: Names) -> RankingEntry:
    """Return the list of a row of `RANKINGS`."""
    _, _, name, query, time, model, items, counted, explored, relevance, *rest = row
    cost, user, would_rank, offset, continues, seen, bot, epoch, contexts = rest
    return RankingEntry(
        id=name.decode(),
        query=query.decode(),
        time=time,
        model=model,
        items=tuple(names[place] for place in listed(items)),
        counted=counted,
        explored=tuple(map(bool, explored)),
        relevance=struct.unpack(f"<{len(relevance) // 8}d", relevance),
        cost=cost,
        user=decoded(user),
        would_rank=tuple(names[place] for place in listed(would_rank)),
        offset=offset,
        continues=decoded(continues),
        seen=tuple(listed(seen)),
        bot=bot,
        epoch=epoch,
        contexts=tuple(listed(contexts)),
    )


def event(row: Row, names: Names) -> EventEntry:
    """Return the event of a row of `EVENTS`."""
    _, _, event_id, ranking_id, query, place, kind, rank, outcome, shows, *rest = row
    time, received, replaces, bot, value, epoch = rest
    return EventEntry(
        event_id=event_id.decode(),
        ranking_id=ranking_id.decode(),
        query=query.decode(),
        item=names[place],
        type=kind.decode(),
        rank=rank,
        outcome=outcome,
        shows=shows,
        time=time,
        received=received,
        replaces=replaces,
        bot=bot,
        value=value,
        epoch=epoch,
    )


def _text(numbers: Iterable[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


def listed(numbers: str | None) -> Sequence[int]:
    """Return the numbers of a list, none if there is no list."""
    found: list[int] = [] if numbers is None else json.loads(numbers)
    return found
