"""What a store keeps: items, served lists, and what users did with them.

These are plain values. The engine makes them, a store keeps them, `replay` adds them up again.
Nobody changes an entry of the log; it is not `frozen` because it would take three times as long to
make, and there is one for each list and each event.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ebrank.typing import Bools, Features, Floats, SmallInts

Status: TypeAlias = Literal["accepted", "duplicate"]
LIFE = 2**32
"""A query that is deleted and added again has another life: its versions continue from another
multiple of this, so that none occurs twice."""


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to add or change, with a number for each column of its features.

    NaN stands for a missing feature. A row may end before others: what follows is missing too.
    """

    id: str
    features: Sequence[float] | Features


@dataclass(eq=False, slots=True)
class QueryState:
    """All items that were ever candidates of a query, in the order in which they entered.

    Arrays have one row per item. Counters of withdrawn items stay.

    Attributes:
        query: its name.
        ids: the items' names.
        features: as given, float32, NaN where missing, shape (items, columns); as many columns as
            the longest row has.
        counts: what users did, shape (items, outcomes, slots); see `ebrank.evidence`. There are as
            many outcomes and slots as the query has needed, at least two and one.
        entered: when each became a candidate, in seconds since 1970.
        first_shown: when each was first shown; NaN if never.
        active: whether it is a candidate now.
        version: how many writes have changed the query, 0 before the first; and its life.
        epoch: up to which all counts have faded: the latest in which something was added that is
            not forgotten.
    """

    query: str
    ids: Sequence[str]
    features: Features
    counts: SmallInts
    entered: Floats
    first_shown: Floats
    active: Bools
    version: int = 0
    epoch: int = 0


class Hint(NamedTuple):
    """What the writer of an entry knows about its items, so that the store need not look it up.

    Attributes:
        places: of each item in its query, from 0. An item never moves.
        unseen: whether each was never shown, as far as known; another server may know better.
            Ignored for an entry that shows nothing.
        life: of the query; in another life, these places have other items.
    """

    places: Sequence[int]
    unseen: Sequence[bool]
    life: int = 0


@dataclass(slots=True)
class RankingEntry:
    """A served list, as it is logged before the response is sent.

    Attributes:
        id: what feedback cites.
        query: for which it was made.
        time: when, in seconds since 1970; never earlier than the entry before.
        model: version of the prior that made it.
        items: ids, best rank first.
        counted: whether showing counts at once, or an `impression` event must confirm it.
        explored: for each rank, whether exploration put the item there.
        relevance: R̂ of each item when it was served.
        cost: expected clicks lost compared with the order by relevance alone.
        user: a hash of the user's name, or None.
        offset: how many ranks are above its first item: 10 for a second page of ten.
        continues: the user's first list of this query within the window, for which events of this
            one count; None if this is the first, or nobody's.
        seen: for each item the rank at which its impression already counts, by an earlier list
            that this one continues; 0 if it counts here. Empty if all count here.
        retracted: whether it was taken back: then it is not `counted`, and neither are its events.
        epoch: up to which counters fade before it is added; never less than that of the entry
            before, and 0 if nothing is forgotten. See `ebrank.evidence.forgetting`.
        arm: of which experiment it is, as `experiment:arm`, with `:N` in the N-th stretch if that
            is not the first; None outside of experiments.
        token: the name of the token that asked for it; None if the server does not keep it.
        hint: what the caller knows about its items; not part of the log.
        cell: of its unit in the experiment; not part of the log.
    """

    id: str
    query: str
    time: float
    model: int
    items: tuple[str, ...]
    counted: bool = True
    explored: tuple[bool, ...] = ()
    relevance: tuple[float, ...] = ()
    cost: float = 0.0
    user: str | None = None
    offset: int = 0
    continues: str | None = None
    seen: tuple[int, ...] = ()
    retracted: bool = False
    epoch: int = 0
    arm: str | None = None
    token: str | None = None
    hint: Hint | None = field(default=None, compare=False, repr=False)
    cell: int = field(default=0, compare=False, repr=False)

    @property
    def refresh(self) -> bool:
        """Whether its user has seen all of it within the window."""
        return bool(self.seen) and all(self.seen)


@dataclass(slots=True)
class EventEntry:
    """Something a user did with an item of a list, resolved to the position that was logged.

    It holds everything its counters need, so that it can be replayed after its ranking has expired.

    Attributes:
        event_id: the same for an event sent twice.
        ranking_id: the list it counts for: the one it cites, or the one which that continues.
        rank: from 1, at which its impression counts.
        type: what kind of event it is; with the threshold it reached, if its behavior has one.
        outcome: the behavior that it makes the outcome of its item's impression, counted from 1; 0
            if it is none; -1 if it is negative, which leaves the impression without an outcome. An
            impression keeps its best: a store logs 0 if a better or a negative one came first.
        replaces: the outcome that it replaces, 0 if there was none; decided by the store.
        shows: whether this event is also the item's impression, which at most one event of an item
            in a list can be: a store takes it back if an earlier one was. It confirms an
            impression, or is a behavior on an item whose impression nobody has confirmed.
        time: when it happened, by the client's clock.
        received: when it arrived; never earlier than the entry before.
        retracted: whether it or its list was taken back: then it neither shows anything nor has an
            outcome.
        value: as the client gave it, if it did.
        epoch: as for a ranking.
        hint: what the caller knows about its item; not part of the log.
        arm: whose event it is in an experiment, as for a ranking; not part of the log.
        cell: of its unit in the experiment; not part of the log.
    """

    event_id: str
    ranking_id: str
    query: str
    item: str
    type: str
    rank: int
    outcome: int
    shows: bool
    time: float
    received: float
    replaces: int = 0
    retracted: bool = False
    value: float | None = None
    epoch: int = 0
    hint: Hint | None = field(default=None, compare=False, repr=False)
    arm: str | None = field(default=None, compare=False, repr=False)
    cell: int = field(default=0, compare=False, repr=False)


Operation: TypeAlias = RankingEntry | EventEntry


class Written(NamedTuple):
    """The outcome of an operation: rankings are always accepted.

    `shows`, `outcome` and `replaces` of an accepted event are those of its log entry.
    """

    status: Status
    reason: str = ""
    shows: bool = False
    outcome: int = 0
    replaces: int = 0


class News(NamedTuple):
    """What others have added to the counts of a query since a version; nothing else has changed.

    Attributes:
        since: that version.
        steps: places, each with an outcome, a slot and an amount.
        first_shown: places of items that were shown, perhaps for the first time, and when.
    """

    since: int
    steps: Sequence[tuple[int, int, int, int]]
    first_shown: Sequence[tuple[int, float]]


class Commit(NamedTuple):
    """What a write found and did.

    Attributes:
        written: the outcome of each operation.
        versions: of each query it wrote to, after it. A copy of the version before may take the
            same steps; any other copy is out of date.
        model: the version of the prior that was active.
        catalog: the version of the catalog.
        news: about queries that others had written to since the known version: with these, a copy
            of that version becomes one of the version before the write.
    """

    written: list[Written]
    versions: dict[str, int]
    model: int
    catalog: int
    news: Mapping[str, News] = MappingProxyType({})


class CatalogCommit(NamedTuple):
    """The version of the catalog after a write, and how many items the write changed."""

    version: int
    changed: int


class FeatureTally(NamedTuple):
    """How many rows of features there are, and how many of them have a number in each column."""

    rows: int = 0
    given: Sequence[int] = ()

    def plus(self, features: Features) -> FeatureTally:
        """Return it with more rows."""
        counts = (~np.isnan(features)).sum(axis=0).tolist()
        given = tuple(sum(pair) for pair in zip_longest(self.given, counts, fillvalue=0))
        return FeatureTally(self.rows + len(features), given)


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A version of the prior.

    Attributes:
        version: counted from 1; 0 is the prior before any training, α = 1 for all.
        created: when, in seconds since 1970.
        rows: items it was trained on.
        validation_loss: mean loss per item, held out from the fit; None if there were none.
        previous_loss: that of the then active model on the same items, as if it had not seen them.
        activated: whether it went live.
        reason: why it was made, or why it did not go live.
        features: the keys of the features it learned from, in the order of its input.
    """

    version: int
    created: float
    rows: int
    validation_loss: float | None
    previous_loss: float | None
    activated: bool
    reason: str = ""
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RolledUp:
    """How much raw log was added to the snapshot and removed."""

    rankings: int = 0
    events: int = 0


@dataclass(frozen=True, slots=True)
class Deletion:
    """Proof that something was deleted.

    Attributes:
        time: when, in seconds since 1970.
        kind: an item of all queries, a query, a user's name; or a retraction of what was counted.
        digest: of its name, salted by the store: anyone who knows the name can verify it.
        queries: how many queries changed.
        rankings: lists that were removed with a query, lost their user, or count no longer.
        events: events that were removed with a query, or count no longer.
    """

    time: float
    kind: Literal["item", "query", "user", "retraction"]
    digest: str
    queries: int = 0
    rankings: int = 0
    events: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lists to retract: those that fit all of these.

    Attributes:
        since: not before this time.
        until: before this time.
        user: a user's, as in the log.
        query: of a query.
        ranking: only this one.
        token: those that a token asked for, by its name.
    """

    since: float | None = None
    until: float = math.inf
    user: str | None = None
    query: str | None = None
    ranking: str | None = None
    token: str | None = None


class QueryRow(NamedTuple):
    """A query by its name, and how many items it ever had."""

    name: str
    items: int


FaultKind: TypeAlias = Literal[
    "file", "orphan", "query", "log", "counter", "model", "setting", "time"
]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a store.

    Attributes:
        kind: a damaged `file`; an `orphan`, which belongs to nothing; an unreadable or impossible
            `query`, `log`, `model` or `setting`; a `counter` that is not what the log adds up to;
            an impossible `time`.
        what: it in words.
    """

    kind: FaultKind
    what: str


class StoreSize(NamedTuple):
    """How much space a store takes.

    Attributes:
        used: its bytes.
        free: free bytes on its disk; None if unknown.
        entries: about how many entries the log holds.
    """

    used: int
    free: int | None
    entries: int


@dataclass(eq=False)
class Minute:
    """What happened in one minute, for the dashboard; sums, so that minutes add up."""

    start: float
    values: dict[str, float] = field(default_factory=dict)


class ArmSums(NamedTuple):
    """Sums over the lists of a cell of units in an arm of an experiment; see `core.experiments`.

    Attributes:
        stretch: from 1: each change of the arms or their shares begins another.
        cell: of the units: a hash of a query's or a user's name.
        lists: a list and the pages that continue it count once.
        clicks: outcomes of impressions.
        outcome: what these are worth.
        found: new items that got their first click.
    """

    experiment: str
    stretch: int
    arm: str
    cell: int
    lists: int
    clicks: int
    outcome: float
    found: int


class Announced(NamedTuple):
    """A server that shares a store.

    Attributes:
        server: its unique name.
        seconds: how long ago it announced itself.
        about: what it reported, for other servers to read.
    """

    server: str
    seconds: float
    about: str
