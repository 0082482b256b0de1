"""What queries say about items that others list too: evidence that queries share.

Each query's message about an item is derived from its counts and the prior (see
`ebrank.model.prior.item_effects`). A server keeps the messages of all queries it knows, and their
sum for each item. What is left of the sums without a query's messages is the evidence about its
items from elsewhere. The sums always consist of the messages kept, to the bit, so none of a query's
own clicks count twice, whatever its messages have missed and other servers have written. Lists need
not wait for messages that have missed something: they follow within a second.

A sweep derives the messages of queries that nobody has asked for: after a start and a training run,
when another version of the prior is in use, and when any server has deleted an item or a query.
Until then, messages under the version before count.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ebrank.model.formula import ItemPrior
from ebrank.model.prior import item_effects
from ebrank.model.prior.item_effects import Elsewhere
from ebrank.model.scoring import scores
from ebrank.typing import Ints, SmallInts

if TYPE_CHECKING:
    from ebrank.service.core.live import LiveQuery
    from ebrank.service.core.models import Model

MOST_BYTES = 64_000_000
"""Messages take at most this: those of 4 million query-item pairs if queries have 40 candidates.
Queries for which there is no room profit from others, but contribute nothing."""
QUERY_BYTES, PAIR_BYTES = 160, 12
"""What the messages of a query take, and each of its candidates."""
FIRST_ITEMS, SPARE = 1024, 8
"""Items there is room for at first; when it is used up, an eighth is added."""
UNKNOWN = 0
"""The place of items that no query speaks about: its sums stay 0."""
LISTED = 3
"""The column of sums that says in how many queries an item is listed."""
_VERSIONS = struct.Struct("qq")


class QueryMessages(NamedTuple):
    """What a query says about its candidates, in their order.

    Attributes:
        model: the version of the prior that it was derived with.
        query: the version of the query then.
        table: for each candidate, the place of its item in the sums, and its message.
    """

    model: int
    query: int
    table: SmallInts

    def packed(self) -> bytes:
        """Return all of it in one object: a query may have a few items only."""
        return _VERSIONS.pack(self.model, self.query) + self.table.tobytes()

    @classmethod
    def unpacked(cls, data: bytes) -> QueryMessages:
        """Return what was packed."""
        table = np.frombuffer(data, np.int32, offset=_VERSIONS.size).reshape(-1, 3)
        model, query = _VERSIONS.unpack_from(data)
        return cls(model, query, table)

    def covers(self, model: int, query: int) -> bool:
        """Return whether it is that of a version of the prior, and of the query or a later one."""
        return self.model == model and self.query >= query

    @property
    def places(self) -> SmallInts:
        """The place of each candidate's item in the sums."""
        return self.table[:, 0]

    @property
    def counted(self) -> Ints:
        """The messages, as they are in the sums."""
        return item_effects.counted(self.table[:, 1:])


class SharedEvidence:
    """The messages of all queries about their items, and their sums.

    Attributes:
        size: bytes that messages take.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._hashes: Ints = np.zeros(0, np.int64)  # of items' names, ascending
        self._places: SmallInts = np.zeros(0, np.int32)  # of the same items in the sums
        self._free: SmallInts = np.arange(1, FIRST_ITEMS, dtype=np.int32)  # places
        self._sums: Ints = np.zeros((FIRST_ITEMS, LISTED + 1), np.int64)
        self._messages: dict[str, bytes] = {}  # of each query, packed
        self._swept: tuple[int, object] | None = None  # the prior's version, and the occasion
        self.size = 0

    def elsewhere(self, live: LiveQuery, model: Model, prior: ItemPrior) -> Elsewhere:
        """Return the evidence about the candidates of a query from elsewhere.

        The prior is that of the candidates, from their features alone.
        """
        own = self._current(live, model) or self._derived(live, model, prior)
        sums, (_, pull, precision) = self._sums[own.places].T, own.table.T
        effect = item_effects.effects(sums[0] - pull, sums[1] - precision, model.item_variance)
        return Elsewhere(effect, sums[2] - (precision > 0))

    def _said(self, query: str) -> QueryMessages | None:
        data = self._messages.get(query)
        return None if data is None else QueryMessages.unpacked(data)

    def _current(self, live: LiveQuery, model: Model) -> QueryMessages | None:
        """Return what a query said if it is up to date, except for the rows that have changed."""
        own = None if live.changed is None else self._said(live.state.query)
        return None if own is None or own.model != model.version else own

    def _update(self, live: LiveQuery, model: Model) -> None:
        """Bring the messages of a query up to date."""
        prior, own = live.prior(model), self._current(live, model)
        if own is None:
            self._derived(live, model, prior)
            return
        table = own.table.copy()
        if live.changed:
            rows = np.array(sorted(live.changed))
            rows = rows[live.active[rows]]
            at = np.searchsorted(live.candidates, rows)
            table[at, 1:] = _messages(live, model, prior.rows(at), rows)
            change = item_effects.counted(table[at, 1:]) - own.counted[at]
            self._sums[own.places[at], :LISTED] += change
            live.changed = set()
        now = QueryMessages(own.model, live.state.version, table)
        self._messages[live.state.query] = now.packed()

    def _derived(self, live: LiveQuery, model: Model, prior: ItemPrior) -> QueryMessages:
        """Return what a query says, all of it derived again."""
        rows, name = live.candidates, live.state.query
        self.forget(name)
        room = self.size + _bytes(len(rows)) <= MOST_BYTES
        table = np.zeros((len(rows), 3), np.int32)
        own = QueryMessages(model.version, live.state.version, table)
        table[:, 0] = self._places_of(live.ids.at(rows.tolist()), add=room)
        if room:
            table[:, 1:] = _messages(live, model, prior, rows)
            live.changed = set()
            self._messages[name] = own.packed()
            self._sums[own.places, :LISTED] += own.counted  # an item is in a query once
            self._sums[own.places, LISTED] += 1
            self.size += _bytes(len(rows))
        return own

    def _places_of(self, names: Sequence[str], *, add: bool) -> SmallInts:
        """Return the places of items; new ones get one if they are to be added.

        Hashes of texts depend on a secret of the process: no name can be chosen to pass for
        another.
        """
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        at = np.searchsorted(self._hashes, hashes)
        new = at == len(self._hashes)
        new[~new] = self._hashes[at[~new]] != hashes[~new]
        if add and new.any():
            added, count = np.sort(hashes[new]), int(new.sum())
            if count > len(self._free):
                self._make_room(count + len(self._sums) // SPARE)
                return self._places_of(names, add=add)
            where = np.searchsorted(self._hashes, added)
            self._hashes = np.insert(self._hashes, where, added)
            self._places = np.insert(self._places, where, self._free[:count])
            self._free = self._free[count:]
            at, new = np.searchsorted(self._hashes, hashes), np.zeros_like(new)
        found = np.full(len(names), UNKNOWN, np.int32)
        found[~new] = self._places[at[~new]]
        return found

    def _make_room(self, count: int) -> None:
        """Free places of items that no query lists any more; add some if these are too few."""
        self.drop_unlisted()
        if count > len(self._free):
            size = len(self._sums)
            self._sums = np.pad(self._sums, ((0, count), (0, 0)))
            added = np.arange(size, size + count, dtype=np.int32)
            self._free = np.concatenate([self._free, added])

    def forget(self, query: str) -> None:
        """Take back all that a query said."""
        own = self._said(query)
        if own is not None:
            del self._messages[query]
            self._sums[own.places, :LISTED] -= own.counted
            self._sums[own.places, LISTED] -= 1
            self.size -= _bytes(len(own.table))

    def forget_all(self, queries: Iterable[str]) -> None:
        """Take back what some queries said, which have lost something; they speak again later."""
        for query in queries:
            self.forget(query)
        self.drop_unlisted()

    def drop_unlisted(self) -> None:
        """Drop the items that no query lists any more."""
        unlisted = self._sums[self._places, LISTED] == 0
        if unlisted.any():
            self._free = np.concatenate([self._free, self._places[unlisted]])
            self._hashes, self._places = self._hashes[~unlisted], self._places[~unlisted]

    async def follow(self, model: Model, queries: Iterable[LiveQuery]) -> None:
        """Bring the messages of queries in memory up to date with lists and feedback.

        Like a sweep, it pauses as long as it works: requests come first.
        """
        for live in queries:
            if live.changed and self._current(live, model) is not None:
                began = time.perf_counter()
                self._update(live, model)
                await asyncio.sleep(time.perf_counter() - began)

    async def sweep(
        self,
        model: Callable[[], Model],
        occasion: object,
        versions: Callable[[], AsyncIterator[tuple[str, int]]],
        read: Callable[[str, int], Awaitable[LiveQuery | None]],
    ) -> None:
        """Derive the messages of all queries that have changed, under the version in use.

        Args:
            model: the version of the prior in use; with another one, the sweep ends.
            occasion: what changes with every training run and every deletion.
            versions: yields all queries with their versions.
            read: a query that is at least of some version.
        """
        used = model()
        if used.item_variance == 0.0:
            self.clear()
        if used.item_variance == 0.0 or self._swept == (used.version, occasion):
            return
        gone = set(self._messages)
        async for query, _ in versions():
            gone.discard(query)
        self.forget_all(gone)  # at once: to read what has changed may take minutes
        room = True
        async for query, version in versions():
            own = self._said(query)
            if not room if own is None else own.covers(used.version, version):
                continue
            began = time.perf_counter()
            live = await read(query, version)
            if model() is not used:
                return
            if live is None or not len(live.candidates):
                self.forget(query)
            else:
                self._update(live, used)
                room = query in self._messages
            await asyncio.sleep(time.perf_counter() - began)
        self.drop_unlisted()
        self._swept = used.version, occasion


def _bytes(candidates: int) -> int:
    return QUERY_BYTES + PAIR_BYTES * candidates


def _messages(live: LiveQuery, model: Model, prior: ItemPrior, rows: Ints) -> SmallInts:
    stats, ranker = live.stats(rows), model.ranker
    sums = stats.sums(ranker.curve, threads=1)
    mean = scores(ranker.scores(stats).prior, prior, stats, ranker.curve)
    return item_effects.messages(mean, sums.clicks, sums.exposure)
