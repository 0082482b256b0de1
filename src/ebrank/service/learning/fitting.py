"""A new version of the prior from a store, and whether it is better than the last.

Queries are split by a hash of their names: some train, the others only judge. If there are few
queries, items are split instead. A new version is better if its mean loss on the judging rows is
not higher than that of the version in use on the same rows. What contexts save counts too: all are
the negative log of the probability of what users did.

Ranking knows only the candidates of a query, so training scales features by their ranges and fills
missing values with their means. Withdrawn items teach too, with features moved into the range of
the candidates.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from ebrank import model_file
from ebrank import policy as policies
from ebrank.evidence import BehaviorStats
from ebrank.features import Scaling
from ebrank.ranker import EBRanker
from ebrank.service.core.catalog import shared_rows, stored_schema
from ebrank.service.core.deletions import STAND_IN
from ebrank.service.core.feature_schema import FeatureSchema, filled, matched
from ebrank.service.core.fixed_settings import half_life
from ebrank.service.core.packed import encode, stacked
from ebrank.service.learning.impressions import LoggedImpressions, read
from ebrank.service.learning.models import features_of, own_parts
from ebrank.service.settings import EventsSettings, ExaminationSettings
from ebrank.service.store.base import StoredLog, StoreView
from ebrank.service.store.records import QueryState
from ebrank.service.store.rows import reach
from ebrank.typing import Bools, Features, Ints

FEW_QUERIES = 10


class TrainingJob(msgspec.Struct, frozen=True):
    """What to fit: see the settings of the same names."""

    active: int
    policy: str = "auto"
    examination: ExaminationSettings = ExaminationSettings()
    behaviors: tuple[str, ...] = ("click",)
    scaling: Literal["query", "global", "none"] = "query"
    fill_by_mean: bool = False
    min_rows: int = 20
    validation_share: float = 0.2
    tolerance: float = 0.0
    contexts: int = 0

    def ranker(self, scaling: Scaling | None = None) -> EBRanker:
        """Return a ranker that has learned nothing yet."""
        # One thread: requests need the other cores.
        curve = self.examination.examination()
        return EBRanker(self.policy, examination=curve, scaling=scaling, threads=1)


class TrainingResult(msgspec.Struct, frozen=True):
    """The result: the model file, and the keys of its features.

    `document` is None if there was too little to learn from.
    """

    rows: int
    better: bool
    reason: str
    validation_loss: float | None = None
    previous_loss: float | None = None
    document: str | None = None
    features: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """All items of all queries, and the model in use.

    `active` marks candidates, `judges` the judging rows, `seen` those ever shown. A query without
    candidates counts with all of its items. `document` is the file of the version in use, None
    before any training, and `learned` the keys of its features. If contexts are learned,
    `impressions` holds single ones, and rows of a group are held out together.
    """

    keys: Sequence[str]
    features: Features
    stats: BehaviorStats
    pointers: npt.NDArray[np.int64]
    active: Bools
    judges: Bools
    seen: Bools
    document: bytes | None = None
    learned: tuple[str, ...] = ()
    impressions: LoggedImpressions | None = None
    groups: Ints | None = None

    def as_learned(self) -> TrainingTable:
        """Return it with the features that the version in use takes."""
        features = matched(self.features, self.keys, self.learned)
        return replace(self, features=features, keys=self.learned or self.keys)

    def part(self, scaling: Scaling, rows: Bools) -> tuple[Features, BehaviorStats]:
        """Return some rows, scaled as for ranking, by the candidates of their query."""
        features = self._among_candidates() if scaling.kind == "query" else self.features
        return scaling(features, self.pointers)[rows], self.stats[np.flatnonzero(rows)]

    def _among_candidates(self) -> Features:
        """Return the features, with withdrawn items moved into the range of the candidates."""
        if self.active.all():
            return self.features
        moved = self.features.copy()
        for begin, end in itertools.pairwise(self.pointers.tolist()):
            candidates = moved[begin:end][self.active[begin:end]]
            np.clip(
                moved[begin:end],
                candidates.min(axis=0),
                candidates.max(axis=0),
                out=moved[begin:end],
            )
        return moved


def fit(table: TrainingTable | None, job: TrainingJob) -> TrainingResult:
    """Return a new version of the prior, and how it does on the judging rows."""
    if table is None or table.seen.sum() < job.min_rows:
        count = 0 if table is None else int(table.seen.sum())
        return TrainingResult(count, False, f"{count} items were shown, {job.min_rows} are needed")
    training, judging = table.seen & ~table.judges, table.seen & table.judges
    if not training.any() or not judging.any():
        return TrainingResult(
            int(table.seen.sum()), False, "too few items to train and to judge with"
        )
    active = _active(table.document, job)
    ranker = _fitted(table, training, job)
    beside = _with_contexts(ranker, active, table, training, job)
    new = _loss(ranker, table, judging, job)
    old = _loss(active, table.as_learned(), judging, job)
    better = new <= old + job.tolerance
    verdict = "not worse than" if better else "worse than"
    return TrainingResult(
        rows=int(training.sum()),
        better=better,
        reason=f"loss {new:.6f} is {verdict} {old:.6f} of version {job.active}{beside}",
        validation_loss=new,
        previous_loss=old,
        features=tuple(table.keys),
        document=model_file.to_bytes(ranker).decode(),
    )


async def gather(
    store: StoreView, job: TrainingJob, log: StoredLog | None = None
) -> TrainingTable | None:
    """Return the items of all queries, None if there are none; single impressions from a log."""
    loaded = [await store.items.load(query) for query in await store.items.queries()]
    states = [state for state in loaded if state is not None]
    if not states:
        return None
    forgets = half_life(await store.meta.all())
    if forgets is not None:
        now = forgets.epoch(await store.log.last_time())
        for state in states:
            reach(state, now)
    keys, joined = await _joined(store, states)
    active = [state.active if state.active.any() else ~state.active for state in states]
    by_query = sum(bool(state.counts.any()) for state in states) >= FEW_QUERIES
    behaviors = EventsSettings(behaviors=job.behaviors).declared()
    stats = BehaviorStats(stacked([state.counts for state in states], behaviors), behaviors)
    impressions = None
    if log is not None and job.contexts:
        impressions = await read(log, states, behaviors)
    return TrainingTable(
        keys=keys,
        features=np.concatenate(
            [
                filled(features, by_mean=job.fill_by_mean, among=among)
                for features, among in zip(joined, active, strict=True)
            ]
        ),
        stats=stats,
        pointers=np.cumsum([0, *(len(state.ids) for state in states)]),
        active=np.concatenate(active),
        judges=np.concatenate(
            [_judges(state, job.validation_share, by_query=by_query) for state in states]
        ),
        seen=(stats.sums(job.examination.examination()).shown > 0)
        & np.concatenate([_named(state) for state in states]),
        document=await store.models.document(job.active) if job.active else None,
        learned=await features_of(store, job.active) if job.active else (),
        impressions=impressions,
        groups=None
        if impressions is None
        else np.concatenate([_groups(state, by_query=by_query) for state in states]),
    )


async def _joined(
    store: StoreView, states: Sequence[QueryState]
) -> tuple[Sequence[str], list[Features]]:
    """Return the keys of features as they are now, and those of all items of each query."""
    schema = await stored_schema(store)
    if not schema.features:  # nobody has declared any: they are known by their columns
        width = max(state.features.shape[1] for state in states)
        schema = FeatureSchema.positions(width)
    catalog = {}
    if schema.shared:
        catalog = {name: row async for name, row in store.catalog.entries()}
    joined = [
        schema.current(state.features, shared_rows(schema, state.ids, catalog)) for state in states
    ]
    return schema.keys, joined


def _named(state: QueryState) -> Bools:
    """Return which items are not stand-ins for deleted ones, which have no features."""
    named = np.ones(len(state.ids), np.bool_)
    for row in np.flatnonzero(~state.active).tolist():
        named[row] = not state.ids[row].startswith(STAND_IN)
    return named


def _judges(state: QueryState, share: float, *, by_query: bool) -> Bools:
    if by_query:
        return np.full(len(state.ids), _fraction(state.query) < share)
    return np.array([_fraction(f"{state.query}\n{item}") < share for item in state.ids], np.bool_)


def _groups(state: QueryState, *, by_query: bool) -> Ints:
    """Return numbers that depend on queries' names, and on items' if there are few queries."""
    if by_query:
        return np.full(len(state.ids), _hash(state.query) >> 1)
    return np.array([_hash(f"{state.query}\n{item}") >> 1 for item in state.ids], np.int64)


def _fraction(name: str) -> float:
    """Return a number in [0, 1) that depends on a name alone."""
    return float(_hash(name) / 2**64)


def _hash(name: str) -> int:
    return xxhash.xxh3_64_intdigest(encode(name))


def _fitted(table: TrainingTable, training: Bools, job: TrainingJob) -> EBRanker:
    scaling = Scaling.learn(job.scaling, table.features[training])
    return job.ranker(scaling).fit(*table.part(scaling, training))


def _with_contexts(
    ranker: EBRanker, active: EBRanker, table: TrainingTable, training: Bools, job: TrainingJob
) -> str:
    """Learn the effect of contexts, and return the outcome in words.

    Once in use, they stay as long as they help at all.
    """
    if table.impressions is None or table.groups is None:
        return ""
    ranker.fit_contexts(
        *table.part(ranker.scaling or Scaling(), training),
        table.impressions.of_items(training, ranker.curve),
        table.groups[training],
        most=job.contexts,
        lenient=active.contexts_ is not None,
    )
    if ranker.contexts_ is None:
        return "; contexts change nothing, as far as the log tells"
    return f"; {len(ranker.contexts_.numbers)} contexts have preferences of their own"


def _active(document: bytes | None, job: TrainingJob) -> EBRanker:
    """Return what a new version must not be worse than: the version in use, or no training.

    Losses of different families or kinds of evidence cannot be compared.
    """
    own = policies.parse(job.policy)
    if document is None:
        return job.ranker()
    active = model_file.from_bytes(document, f"model {job.active}", allow=own_parts(own))
    theirs = active.policy.choices
    comparable = (theirs.family, theirs.estimator) == (own.choices.family, own.choices.estimator)
    return active if comparable else job.ranker()


def _loss(ranker: EBRanker, table: TrainingTable, rows: Bools, job: TrainingJob) -> float:
    """Return the mean marginal-likelihood loss of a ranker's prior on some rows.

    Less what contexts save there.
    """
    judged = EBRanker(ranker.policy, examination=job.examination.examination(), threads=1)
    judged.state_, judged.contexts_ = ranker.state_, ranker.contexts_
    part = table.part(ranker.scaling or Scaling(), rows)
    loss = judged.loss(*part)
    if table.impressions is not None:
        seen = table.impressions.of_items(rows, judged.curve)
        loss -= judged.saved_by_contexts(*part, seen) / int(rows.sum())
    return loss
