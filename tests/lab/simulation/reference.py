"""A slow, obvious simulator: the paper's Algorithm 1 and Sec. 5.1, one session after the other.

Whole numbers, floats and lists only. A session draws a query, lets an item in, scores every
candidate anew, sorts them, and asks the user. Nothing is grouped, kept in order or remembered from
the session before. Two things are taken as given: the curves of examination, since their last
digits decide ties, and what a learner makes of the statistics it is fed here.

What an impression or a click adds to E, c and C has 30 binary digits after the point. So plain
floats add these up exactly, in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ebrank.evidence import BehaviorStats, Examination
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import Ranker, ScoreModel, Trial
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.users import PBM, Graded
from ebrank.model import formula
from ebrank.testing import plain
from tests.lab.simulation.state import Checkpoint, Item, Query, Session, Snapshot, ndcg_of, ranking
from tests.lab.simulation.users import Shown, plain_habits, plain_rule

BANDS = (10, 15, 25, 50, 100, 300, 1000)
"""Last rank of each band that ranks beyond ten are counted in, the tenth rank before them."""

Score = Callable[[Item, int], float]


@dataclass
class Reference:
    """One trial."""

    dataset: Dataset
    ranker: Ranker
    config: SimulationConfig
    seed: int
    trial: int = 0
    log: list[Session] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Draw who is there at the start, and set the learner up."""
        self.key = plain.trial_key(self.seed, self.trial)
        ranks = range(1, self.config.list_length + 1)
        users = self.config.users.examination
        self.examined = users(ranks).tolist()
        belief = self.config.assumed or users
        self.slots = slot(self.config.list_length) + 1
        self.worth = [0.0, *map(rounded, self.config.behaviors.weights)]
        self.users = plain_rule(self.config.users)
        self.queries = [self._query(q) for q in range(self.dataset.n_queries)]
        self.belief = belief
        self.assume(belief)
        self.stats = BehaviorStats.zeros(
            self.dataset.n_rows, slots=self.slots, behaviors=self.config.behaviors
        )
        relevance = np.array([item.relevance for query in self.queries for item in query.items])
        self.learner = self.ranker.learner(
            Trial(
                self.dataset,
                relevance,
                self.stats,
                belief,
                np.uint64(self.key),
                threads=1,
            )
        )

    def assume(self, curve: Examination) -> None:
        """Have clicks and impressions be worth what a curve says, those in the log too."""
        ranks, weights = range(1, self.config.list_length + 1), self.config.behaviors.weights
        exact = [mean_examination(curve, rank) for rank in ranks]
        self.assumed = [rounded(p) for p in exact]
        self.debiased = [[0.0, *(rounded(w / p) if p > 0 else 0.0 for w in weights)] for p in exact]
        self.table = self._table()
        for item in (item for query in self.queries for item in query.items):
            item.n, item.c, item.C, item.E = 0, 0.0, 0.0, 0.0
            for (outcome, rank), times in item.log.items():
                self.count(item, outcome, rank, times)

    def count(self, item: Item, outcome: int, rank: int, times: int = 1) -> None:
        """Add to n, c, C and E: an impression at a rank, counted from 0, or what it led to."""
        p = self.assumed[rank]
        if p > 0 and outcome == 0:
            item.n += times
            item.E += times * p
        elif p > 0:
            item.c += times * self.worth[outcome]
            item.C += times * self.debiased[rank][outcome]

    def run(self) -> Reference:
        """Warm up, then serve, update and measure."""
        self.warm_up()
        self.update()
        self.look()
        for t in range(self.session_count):
            self.serve(t)
            if t + 1 in self.update_times:
                self.update()
                self.look()
                self.measure(t + 1)
        return self

    @property
    def session_count(self) -> int:
        """#Session = #Queries × (#AverDocs − 5)/η, unless given."""
        masked = self.dataset.n_rows - 5 * self.dataset.n_queries
        return self.config.sessions or math.floor(masked / self.config.entering_probability)

    @property
    def update_times(self) -> list[int]:
        """Numbers of sessions after which the model is updated: evenly spread."""
        updates = self.config.updates
        return [self.session_count * (i + 1) // updates for i in range(updates)]

    def warm_up(self) -> None:
        """Let BM25 serve every query before anything enters."""
        for _ in range(self.config.warmup_sessions):
            for q in range(len(self.queries)):
                self.session(q, lambda item, key: item.baseline)

    def update(self) -> None:
        """Train the model with the statistics so far."""
        for item in (item for query in self.queries for item in query.items):
            self.stats.counts[item.row] = self.counts_of(item)
        model = self.learner.update()
        assert isinstance(model, ScoreModel)
        self.model = model
        self.plain = {
            bound: partial(plain.plain_score(bound), learned=learned_by(bound))
            for bound in (model.serve, model.offline, model.cold)
            if bound is not None
        }
        self.assume(model.examination or self.belief)

    def asked(self, t: int) -> int:
        """Return the query that is issued at time t."""
        return plain.below(plain.child(self.stream(plain.QUERIES), t), len(self.queries))

    def serve(self, t: int) -> Session:
        """Answer the query of time t by the ranker's model, and log the session."""
        q = self.asked(t)
        self.enter(q)
        self.log.append(self.session(q, self.serving_score()))
        return self.log[-1]

    def enter(self, q: int) -> None:
        """With probability η, take one masked item into the candidates."""
        query = self.queries[q]
        arrivals = plain.child(self.stream(plain.ARRIVALS), q)
        coin = plain.child(arrivals, len(query.items) + query.sessions)
        if query.masked and plain.uniform(coin) < self.config.entering_probability:
            item = query.masked.pop(0)
            item.entered_at = query.sessions
            query.candidates.append(item)

    def session(self, q: int, score: Score) -> Session:
        """Present a list to the next user of a query and collect the clicks."""
        query = self.queries[q]
        noise = plain.child(plain.child(self.stream(plain.RANKER), q), query.sessions)
        shown = ranking(query.candidates, lambda item: score(item, plain.child(noise, item.place)))
        shown = shown[: self.config.list_length]
        user = plain.child(plain.child(self.stream(plain.USERS), q), query.sessions)
        minds = [plain.uniform(plain.child(user, item.place)) for item in shown]
        whim = plain.child(user, len(query.items))
        seen = [
            Shown(*self.habits(item), p, mind)
            for item, p, mind in zip(shown, self.examined, minds, strict=False)
        ]
        outcomes = self.users(seen, whim)
        for rank, (item, outcome, p) in enumerate(zip(shown, outcomes, self.assumed, strict=False)):
            for event in {0, outcome}:
                item.log[event, rank] += 1
                self.count(item, event, rank)
            if p > 0 and item.first_shown is None:
                item.first_shown = query.sessions
        query.sessions += 1
        ndcg = ndcg_of(shown, query, self.config.list_length)
        clicked = [outcome > 0 for outcome in outcomes]
        return Session(q, [item.row for item in shown], clicked, ndcg)

    def habits(self, item: Item) -> tuple[float, float]:
        """Return how likely users are to click an item they examine, and then to leave."""
        label = int(self.dataset.labels[item.row])
        click, stop = plain_habits(self.config.users, label, self.dataset.max_label)
        return click * self.config.click_rate, stop

    def serving_score(self) -> Score:
        """Return what the ranker sorts by when it serves."""
        return lambda item, key: self.score_by(self.model.serve, item, key)

    def offline_score(self, item: Item, cold: bool) -> float:
        """Return the learned model's score of an item, as if nobody had seen it where `cold`."""
        model, known = self.model, item
        if cold:
            known = Item(item.row, item.place, item.relevance, item.baseline, item.tie_key)
        return self.score_by((cold and model.cold) or model.offline, known, key=0)

    def score_by(self, bound: formula.Score, item: Item, key: int) -> float:
        """Return an item's score by one of the model's formulas."""
        return self.plain[bound](**self.quantities(item), key=key)

    def quantities(self, item: Item) -> dict[str, Any]:
        """Return all that a formula may name, but for the key and what the model learned."""
        a, b = numbers(self.model, item)
        return {
            "a": a,
            "b": b,
            "shown": float(item.n),
            "clicks": item.c,
            "weighted_clicks": item.C,
            "exposure": item.E,
            "counts": [count for outcome in self.counts_of(item) for count in outcome],
            "slots": self.slots,
            "behaviors": len(self.worth) - 1,
            "table": self.table,
        }

    def counts_of(self, item: Item) -> list[list[int]]:
        """Return the item's impressions by slot, then its outcomes of each kind."""
        counts = [[0] * self.slots for _ in self.worth]
        for (outcome, rank), times in item.log.items():
            counts[outcome][slot(rank + 1)] += times
        return counts

    def measure(self, sessions: int) -> None:
        """Evaluate the model on the test queries, and the lists served to them so far."""
        self.checkpoints.append(
            Checkpoint(
                sessions,
                self.cum_ndcg(),
                self.run_ndcg(),
                self.offline(cold=True),
                self.offline(cold=False),
            )
        )

    def look(self) -> None:
        """Take a snapshot: who is in the top without exploration, who was never shown."""
        test = [query for query in self.queries if query.split == "test"]
        top = {
            item.row
            for query in test
            for item in ranking(query.candidates, lambda item: self.offline_score(item, False))[
                : self.config.list_length
            ]
        }
        unseen = {item.row for query in test for item in query.items if item.n == 0}
        sessions = [query.sessions for query in self.queries]
        self.snapshots.append(Snapshot(sessions, top, unseen, self.model.prior))

    def cum_ndcg(self) -> float:
        """Return Σ_τ γ^(t−τ)·NDCG_τ over the sessions on test queries (eq:cumDCG)."""
        served = [session.ndcg for session in self.log if self.split(session) == "test"]
        t = len(served)
        return math.fsum(
            self.config.discount ** (t - tau) * ndcg for tau, ndcg in enumerate(served, start=1)
        )

    def run_ndcg(self) -> float:
        """Return the mean NDCG of the sessions on test queries; NaN before any."""
        served = [session.ndcg for session in self.log if self.split(session) == "test"]
        return math.fsum(served) / len(served) if served else math.nan

    def offline(self, cold: bool) -> list[list[float]]:
        """Return the NDCG of each test query at each cutoff, without exploration."""
        measured = []
        for query in self.queries:
            if query.split == "test":
                best = ranking(query.candidates, lambda item: self.offline_score(item, cold))
                measured.append([ndcg_of(best, query, cutoff) for cutoff in self.config.cutoffs])
        return measured

    def validation_ndcg(self) -> float:
        """Return the mean NDCG of the validation queries' lists in the second half of the run."""
        late = self.log[len(self.log) // 2 :]
        chosen = [session.ndcg for session in late if self.split(session) == "vali"]
        return sum(chosen) / len(chosen)

    def split(self, session: Session) -> str:
        """Return the partition that a session's query belongs to."""
        return self.queries[session.query].split

    def stream(self, number: int) -> int:
        """Return the key of one of the trial's random streams."""
        return plain.child(self.key, number)

    def _table(self) -> list[int]:
        """Return what formulas read counts with: by slot, in units of 2⁻³⁰ but for the first row.

        First whether users look there, then p, then what each behavior adds to c, and to C.
        """
        by_slot = {slot(rank + 1): rank for rank in range(self.config.list_length)}
        ranks = [by_slot[place] for place in range(self.slots)]
        seen = [int(self.assumed[rank] > 0) for rank in ranks]
        rows = [[self.assumed[rank] for rank in ranks]]
        for worth in self.worth[1:]:
            rows.append([worth * look for look in seen])
        for outcome in range(1, len(self.worth)):
            rows.append([self.debiased[rank][outcome] for rank in ranks])
        return seen + [int(value * 2**30) for row in rows for value in row]

    def _query(self, q: int) -> Query:
        """Return a query with its initial candidates; the order of entering is a random one."""
        first, end = (int(row) for row in self.dataset.query_pointers[q : q + 2])
        items = [self._item(q, row, row - first) for row in range(first, end)]
        key = plain.child(self.stream(plain.ARRIVALS), q)
        fewest, most = self.config.initial_candidates
        initial = fewest + plain.below(plain.child(key, 0), most - fewest + 1)
        order = list(items)
        for i in reversed(range(1, len(order))):
            j = plain.below(plain.child(key, i), i + 1)
            order[i], order[j] = order[j], order[i]
        split = ("train", "vali", "test")[self.dataset.query_splits[q]]
        return Query(split, items, order[:initial], order[initial:])

    def _item(self, q: int, row: int, place: int) -> Item:
        """Return an item with its relevance; users' noise is part of it, but no setting is."""
        label, highest = int(self.dataset.labels[row]), self.dataset.max_label
        unset = isinstance(self.config.users, Graded) and self.config.users.setting == "none"
        users = self.config.users if unset else PBM()
        return Item(
            row=row,
            place=place,
            relevance=plain_habits(users, label, highest)[0],
            baseline=float(self.dataset.baseline[row]),
            tie_key=plain.uniform(plain.child(plain.child(self.stream(plain.TIES), q), place)),
        )


def slot(rank: int) -> int:
    """Return the counter of a rank: one for each of the first ten, then one for each band."""
    return rank - 1 if rank <= 10 else 9 + sum(rank > last for last in BANDS)


def mean_examination(examination: Examination, rank: int) -> float:
    """Return the p that stands for all of a rank's band: the mean down to the last examined."""
    if rank <= 10:
        return float(examination([rank])[0])
    last = next(last for last in BANDS if last >= rank)
    first = BANDS[BANDS.index(last) - 1] + 1
    p = examination(range(first, last + 1)).tolist()
    while p and p[-1] == 0.0:
        p.pop()
    return sum(p) / len(p) if p else 0.0


def rounded(x: float) -> float:
    """Return a number with 30 binary digits after the point."""
    return round(x * 2**30) / 2**30


def numbers(model: ScoreModel, item: Item) -> tuple[float, float]:
    """Return the model's a and b for an item; b may be the same for all."""
    return float(model.a[item.row]), float(model.b[item.row if len(model.b) > 1 else 0])


def learned_by(score: formula.Score) -> list[float]:
    """Return the model's numbers that all items share: they follow the parameters."""
    return [float(number) for number in score.parameters[len(score.formula.parameters) :]]
