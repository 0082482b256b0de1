"""A policy in one possible world: the log's traffic and arrivals, with the lab's sessions.

From today on, a replay begins with the counts of the log, and the future brings what the past has
brought: for each item that arrived during the log, another one with its features comes to its query
after as many lists, with a relevance of its own. From the start, nobody has seen anything, and the
log's own items arrive when they did. Users are position-based: they look at a rank with the
probability that the world drew, and do something with what they look at as often as it is relevant.

The value of a list is what it may expect, Σ_k p_k·R_k: clicks, or the weighted outcome. So it has
no noise of clicks, except in what the policy learns from them.
"""

from __future__ import annotations

import itertools
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ebrank.addons.whatif.belief import Draw
from ebrank.addons.whatif.history import History
from ebrank.evidence import BehaviorStats
from ebrank.evidence.behaviors import SHOWN
from ebrank.kernels import streams
from ebrank.kernels.compiled import FirstClass
from ebrank.lab.data.dataset import MAX_LEVEL, Dataset
from ebrank.lab.rankers.base import Ranker, Trial
from ebrank.lab.sessions.session import World
from ebrank.lab.simulation import play
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.supervision import Supervised
from ebrank.lab.simulation.users import BROWSE, PositionBased, UserModel
from ebrank.lab.simulation.world import assume, new_world, stats_of
from ebrank.typing import Bools, Floats, Ints, Labels

Begin: TypeAlias = Literal["today", "start"]
THERE = -1
"""`due` of a row that is there from the beginning."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What is replayed.

    Attributes:
        history: the rows, with the counts that their relevance is drawn by.
        due: how many lists pass before each row is there; −1 for none.
        begin: whether counts begin as they are today, or at nothing.
        lists: how many lists are served, to all queries together.
        length: how many items a list shows.
    """

    history: History
    due: Ints
    begin: Begin
    lists: int
    length: int

    @classmethod
    def of(cls, history: History, begin: Begin, lists: int, length: int) -> Plan:
        """Return the plan for a log."""
        logged = int(history.lists.sum())
        when = (history.times * logged).astype(np.int64)
        if begin == "start":
            first = np.full(history.n_queries, np.iinfo(np.int64).max)
            np.minimum.at(first, history.query_of_rows, when)
            there = when <= first[history.query_of_rows]  # a query begins with some candidate
            return cls(history, np.where(there, THERE, when), begin, lists, length)
        present = history.candidates()
        arrived = np.flatnonzero(present.times > 0.0)
        rounds = -(-lists // max(logged, 1))
        copies = np.repeat(arrived, rounds)
        later = (present.times[copies] * logged).astype(np.int64)
        later += logged * np.tile(np.arange(rounds), len(arrived))
        copies, later = copies[later < lists], later[later < lists]
        rows = np.append(np.arange(len(present.stats)), copies)
        due = np.append(np.full(len(present.stats), THERE), later)
        order = np.argsort(present.query_of_rows[rows], kind="stable")
        return cls(_with_copies(present, rows, order), due[order], begin, lists, length)

    def part(self, queries: Ints) -> Plan:
        """Return the plan of some queries, which have their share of the lists."""
        part = self.history.part(queries)
        share = float(part.lists.sum() / max(self.history.lists.sum(), 1))
        chosen = np.isin(self.history.query_of_rows, queries)
        due = self.due[chosen]
        due = np.where(due == THERE, THERE, (due * share).astype(np.int64))
        return replace(self, history=part, due=due, lists=max(int(self.lists * share), 1))


def _with_copies(history: History, rows: Ints, order: Ints) -> History:
    """Return the rows of a history and some copies of them that nobody has seen, in order."""
    sizes = np.bincount(history.query_of_rows[rows], minlength=history.n_queries)
    made, copied = history.taken(sizes, rows[order]), order >= len(history.stats)
    made.stats.counts[copied] = 0
    items = None
    if history.items is not None and made.items is not None:
        fresh = history.items.max() + 1 + order - len(history.stats)
        items = np.where(copied, fresh, made.items)
    return replace(made, items=items, active=None)


class Outcome(NamedTuple):
    """How a policy did in a world.

    Attributes:
        value: expected outcome of a list, the mean of each period.
        new: the part of it that new items contributed, over all lists.
        found: of the new items that belong on their query's list, the share that was shown.
        wait: after how many lists of their query half of those were shown; infinite if never.
    """

    value: Floats
    new: float
    found: float
    wait: float


class Replay:
    """A world in which a policy can serve; `users` other than the world's own are for tests."""

    def __init__(
        self,
        plan: Plan,
        draw: Draw,
        key: np.uint64,
        periods: int,
        threads: int | None = None,
        users: UserModel | None = None,
    ) -> None:
        self.plan, self.draw, self.key, self.threads = plan, draw, key, threads
        history, behaviors = plan.history, plan.history.stats.behaviors
        self.dataset = _dataset(plan, draw)
        mix = _mix(history.stats)
        assumed = history.examination
        self.users = users or PositionBased(draw.examination)
        config = SimulationConfig(
            list_length=plan.length,
            users=self.users,
            assumed=assumed,
            behaviors=behaviors,
            sessions=max(plan.lists, periods),
            updates=periods,
        )
        self.world = _world(plan, draw, new_world(replace(self.dataset, items=None), config, key))
        self.world.click[:] = np.minimum(self.world.click / (mix @ behaviors.weights), 1.0)
        self.browse = self.users.browse if len(mix) == 1 else _with_mix(mix)
        self.stats = stats_of(self.world, behaviors)
        self.borders = plan.lists * np.arange(periods + 1) // periods

    def run(self, ranker: Ranker) -> Outcome:
        """Let a policy serve all lists; it refits before each period."""
        plan, draw, world, key, threads = self.plan, self.draw, self.world, self.key, self.threads
        assumed, n_queries = plan.history.examination, plan.history.n_queries
        trial = Trial(self.dataset, world.relevance, self.stats, assumed, key, threads)
        learner = Supervised(ranker, trial)
        shares = np.cumsum(draw.traffic)
        shares[-1] = 1.0
        popularity = play.Popularity(np.arange(n_queries), shares)
        asked = np.uint64(streams.child(key, streams.QUERIES))
        value = []
        for first, stop in itertools.pairwise(self.borders.tolist()):
            model = learner.update()
            assume(world, self.stats.valuation(model.examination or assumed))
            _, sessions = play.phase(asked, first, stop, n_queries, popularity)
            with learner.watching(model):
                browse = self.browse.compiled
                served = play.play(world, model, sessions, browse, 1.0, key, threads, first)
            value.append(served.mean())
        new = float(world.late_dcg.sum()) / plan.lists
        return Outcome(np.array(value), new, *_found(plan, world))


def _dataset(plan: Plan, draw: Draw) -> Dataset:
    """Return the world as a dataset; all queries teach."""
    history = plan.history
    labels, relevance = levels(draw.relevance)
    return Dataset(
        name=history.name,
        features=np.ascontiguousarray(history.features),
        labels=labels,
        query_pointers=np.asarray(history.pointers, np.int64),
        query_ids=np.arange(history.n_queries).astype(np.str_),
        query_splits=np.zeros(history.n_queries, np.int8),
        baseline=history.production.astype(np.float32),
        feature_ids=np.arange(1, history.features.shape[1] + 1, dtype=np.int32),
        max_label=MAX_LEVEL,
        items=history.items,
        relevance=relevance,
        check_values=False,
    )


def levels(relevance: Floats) -> tuple[Labels, Floats]:
    """Return relevance as numbered levels, even in logits, and the mean of each level.

    >>> labels, values = levels(np.array([0.1, 0.1004, 0.4]))
    >>> labels, values[labels].round(6)
    (array([  0,   0, 127], dtype=int8), array([0.1002, 0.1002, 0.4   ]))
    """
    inside = np.clip(relevance, 1e-9, 1.0 - 1e-9)
    logits = np.log(inside) - np.log1p(-inside)
    span = max(float(logits.max() - logits.min()), 1e-9)
    places = np.rint((logits - logits.min()) / span * MAX_LEVEL).astype(np.int64)
    counts = np.bincount(places, minlength=MAX_LEVEL + 1)
    sums = np.bincount(places, weights=relevance, minlength=MAX_LEVEL + 1)
    means = np.divide(sums, counts, out=np.zeros(MAX_LEVEL + 1), where=counts > 0)
    return places.astype(np.int8), np.maximum.accumulate(means)


def _world(plan: Plan, draw: Draw, world: World) -> World:
    """Return a new world with the plan's arrivals and counts, whose lists are worth clicks."""
    history, due = plan.history, plan.due
    order = np.lexsort((due, history.query_of_rows))
    positions = np.empty(len(due), np.int32)
    positions[order] = np.arange(len(due)) - history.pointers[history.query_of_rows[order]]
    there = np.add.reduceat(due == THERE, history.pointers[:-1], dtype=np.int64)
    curve = draw.examination(np.arange(1.0, plan.length + 1.0))
    if plan.begin == "today":
        slots = min(world.counts.shape[2], history.stats.slots)
        world.counts[:, :, :slots] = history.stats.counts[:, :, :slots]
        world.table[:] = -1  # so that C and E are computed before the first list
    world.entered_at[_unseen(plan)] = 0
    return world._replace(
        arrivals=order.astype(np.int32),
        positions=positions,
        entered=there,
        due=due[order],
        discounts=curve,
        ideal=np.ones(history.n_queries),
        ideal_gain=np.ones(history.n_queries),
    )


def _unseen(plan: Plan) -> Bools:
    """Return which rows are there from the beginning, though nobody has seen them yet."""
    if plan.begin == "start":
        return np.zeros(len(plan.due), np.bool_)
    seen = plan.history.stats.counts[:, SHOWN].sum(axis=1) > 0
    return np.asarray((plan.due == THERE) & ~seen, np.bool_)


def _found(plan: Plan, world: World) -> tuple[float, float]:
    """Return the share of good new items that was shown, and how long half of them waited."""
    owner = plan.history.query_of_rows
    came = (world.entered_at >= 0) & (world.sessions_done[owner] > world.entered_at)
    order = np.lexsort((-world.relevance, owner))
    place = np.empty(len(owner), np.int64)
    place[order] = np.arange(len(owner)) - plan.history.pointers[owner[order]]
    good = np.flatnonzero(came & (place < plan.length))
    if not len(good):
        return float("nan"), float("nan")
    shown = world.first_shown[good] >= 0
    waits = np.where(shown, world.first_shown[good] - world.entered_at[good], np.inf)
    return float(shown.mean()), float(np.sort(waits)[(len(waits) - 1) // 2])


# --- several behaviors ---------------------------------------------------------------------------


def _mix(stats: BehaviorStats) -> Floats:
    """Return the share of each behavior among all that users did."""
    counts = stats.counts[:, SHOWN + 1 :].sum(axis=(0, 2), dtype=np.float64)
    return counts / counts.sum() if counts.any() else np.full(len(counts), 1.0 / len(counts))


def _with_mix(mix: Floats) -> FirstClass:
    """Return users who do one of several things with an item, in these shares."""
    shares = tuple(np.cumsum(mix)[:-1].tolist())

    def browse(
        relevance: Sequence[float],
        stopping: Sequence[float],
        examination: Sequence[float],
        minds: Sequence[float],
        length: int,
        key: np.uint64,
        outcomes: MutableSequence[int],
    ) -> None:
        for rank in range(length):
            chance = examination[rank] * relevance[rank]
            outcomes[rank] = 0
            if minds[rank] < chance:
                # Below the chance, a mind is even: it says which behavior it is, too.
                which = 1
                for share in shares:
                    which += minds[rank] >= chance * share
                outcomes[rank] = which

    return FirstClass(browse, BROWSE)
