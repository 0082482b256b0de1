from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from scipy.special import betaln

from ebrank import BehaviorStats, EBRanker, model_file
from ebrank.features import Scaling
from ebrank.priors.base import ItemPrior
from ebrank.service.core.queries.cache import Queries
from ebrank.service.learning.fitting import (
    FEW_QUERIES,
    TrainingJob,
    TrainingResult,
    TrainingTable,
    _fraction,
    fit,
    gather,
)
from ebrank.service.learning.models import Model
from ebrank.service.settings import ExaminationSettings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, ModelRecord, NewItem, Operation, RankingEntry
from tests.service.scenes import linear_state
from tests.service.store.blocking import Blocking, run

BELIEVED = ExaminationSettings(curve=(1.0, 0.8, 0.6, 0.4))
CURVE = BELIEVED.examination()


def lived_in(queries: int, seed: int = 0) -> Blocking:
    """Return a store whose users click what the first of two features likes."""
    store, rng = Blocking(MemoryStore()), np.random.default_rng(seed)
    for query in range(queries):
        features = rng.random((6, 2))
        name = f"q{query}"
        store.items.put(name, [NewItem(f"i{n}", tuple(row)) for n, row in enumerate(features)], 1.0)
        for session in range(20):
            order = rng.permutation(6)[:4]
            entry = RankingEntry(
                f"{name}-{session}",
                name,
                2.0,
                0,
                items=tuple(f"i{n}" for n in order),
            )
            entries: list[Operation] = [entry]
            for rank, (item, p) in enumerate(zip(entry.items, CURVE.curve, strict=True), 1):  # type: ignore[arg-type]
                if rng.random() < p * features[int(item[1:]), 0]:
                    event = f"{entry.id}-{item}"
                    entries.append(
                        EventEntry(event, entry.id, name, item, "click", rank, 1, False, 2.0, 2.0)
                    )
            store.log.write(entries)
    return store


def table_of(store: Blocking, job: TrainingJob) -> TrainingTable:
    table = run(gather(store.wrapped, job))
    assert isinstance(table, TrainingTable)
    return table


def fitted_on(store: Blocking, job: TrainingJob) -> TrainingResult:
    return fit(run(gather(store.wrapped, job)), job)


def test_losses_are_means_over_the_judging_rows() -> None:
    """Both losses, computed again from the log Beta functions of Sec. 4.3.3."""
    store = lived_in(30)
    active = EBRanker(scaling=Scaling("none"))
    active.state_ = linear_state(0.3, 0.2, intercept=-0.1)
    record = ModelRecord(1, 0.0, 1, None, None, activated=True)
    store.models.add(record, model_file.to_bytes(active))
    fitted = fitted_on(
        store, TrainingJob(active=1, policy="ebrank", validation_share=0.4, examination=BELIEVED)
    )
    assert fitted.document is not None
    new = model_file.from_bytes(fitted.document.encode(), "new")
    losses: dict[str, list[float]] = {"new": [], "old": []}
    rows = 0
    for query in store.items.queries():
        state = store.items.load(query)
        assert state is not None
        sums = BehaviorStats(state.counts).sums(CURVE)
        assert sums.shown.all()
        if _fraction(query) >= 0.4:
            rows += len(state.ids)
            continue
        for name, ranker in (("new", new), ("old", active)):
            alpha, beta = ranker.prior(state.features)
            c, e = sums.clicks, sums.exposure
            losses[name] += list(
                betaln(alpha, beta) - betaln(c + alpha, np.maximum(e - c, 0) + beta)
            )
    assert fitted.rows == rows
    assert fitted.validation_loss == pytest.approx(np.mean(losses["new"]))
    assert fitted.previous_loss == pytest.approx(np.mean(losses["old"]))
    assert fitted.better == (np.mean(losses["new"]) <= np.mean(losses["old"]))


def test_the_result_depends_on_the_store_alone() -> None:
    job = TrainingJob(active=0)
    assert fitted_on(lived_in(15), job) == fitted_on(lived_in(15), job)


@pytest.mark.parametrize("policy", ["auto", "ebrank"])
def test_rows_that_judge_neither_train_nor_stop(policy: str) -> None:
    """Turn what users did with them upside down: the verdict changes, the model does not."""
    job = TrainingJob(active=0, policy=policy, validation_share=0.4)
    table = table_of(lived_in(30), job)
    counts = table.stats.counts.copy()
    counts[table.judges, 1] = counts[table.judges, 0] - counts[table.judges, 1]
    other = replace(table, stats=BehaviorStats(counts, table.stats.behaviors))
    fitted, again = fit(table, job), fit(other, job)
    assert fitted.document == again.document
    assert fitted.validation_loss != again.validation_loss


@pytest.mark.parametrize("queries", [FEW_QUERIES - 1, FEW_QUERIES])
def test_few_queries_are_split_by_items(queries: int) -> None:
    table = table_of(lived_in(queries), TrainingJob(active=0, validation_share=0.5))
    by_query = table.judges.reshape(queries, 6)
    whole = np.all(by_query == by_query[:, :1])
    assert whole == (queries >= FEW_QUERIES)
    assert 0 < table.judges.sum() < len(table.judges)


class Seen(EBRanker):
    """Remembers the features that ranking gives to the prior."""

    def prior(self, features: Any) -> ItemPrior:  # noqa: ANN401 (as its base)
        assert self.scaling is not None
        self.features = self.scaling(features)
        return super().prior(features)


@pytest.mark.parametrize("kind", ["query", "global", "none"])
@pytest.mark.parametrize("by_mean", [True, False])
def test_training_sees_candidates_as_ranking_does(
    kind: Literal["query", "global", "none"], by_mean: bool
) -> None:
    """A withdrawn item, however far away, changes nothing of how others are scaled and filled."""
    store = lived_in(3)
    store.items.put("q1", [NewItem("far", (1000.0, -9.0)), NewItem("hole", (math.nan, 0.5))], 3.0)
    store.items.withdraw("q1", "far", 4.0)
    store.items.withdraw("q1", "i0", 4.0)
    table = table_of(store, TrainingJob(active=0, fill_by_mean=by_mean))
    scaling = Scaling.learn(kind, table.features)
    scaled, stats = table.part(scaling, np.ones(20, np.bool_))
    assert len(stats) == 20
    ranker = Seen(scaling=scaling)
    ranker.state_ = linear_state(1.0, 1.0)
    for query, rows in (("q0", slice(0, 6)), ("q1", slice(6, 14)), ("q2", slice(14, 20))):
        live = run(Queries(store.wrapped, seed=0).get(query, 5.0))
        live.prior(Model(1, ranker, fill_by_mean=by_mean))
        np.testing.assert_array_equal(scaled[rows][live.state.active], ranker.features)
    if kind == "query":
        assert scaled[12].tolist() == [1.0, 0.0]  # as far as candidates reach


def test_a_query_whose_items_were_all_withdrawn_teaches_as_it_was() -> None:
    store, before = lived_in(1), table_of(lived_in(1), TrainingJob(active=0))
    for item in range(6):
        store.items.withdraw("q0", f"i{item}", 3.0)
    after = table_of(store, TrainingJob(active=0))
    rows = np.ones(6, np.bool_)
    for table in (before, after):
        assert table.part(Scaling("query"), rows)[0].max() == 1.0
    np.testing.assert_array_equal(
        before.part(Scaling("query"), rows)[0], after.part(Scaling("query"), rows)[0]
    )


def test_a_tolerance_lets_a_model_be_a_little_worse() -> None:
    store = lived_in(20)
    good = fitted_on(store, TrainingJob(active=0, policy="ebrank"))
    assert good.document is not None
    store.models.add(ModelRecord(1, 0.0, 1, None, None, activated=True), good.document.encode())
    strict = fitted_on(store, TrainingJob(active=1, policy="ebrank:ridge=10"))
    assert not strict.better
    lenient = fitted_on(store, TrainingJob(active=1, policy="ebrank:ridge=10", tolerance=100.0))
    assert lenient.better


def test_an_empty_store_teaches_nothing() -> None:
    fitted = fitted_on(Blocking(MemoryStore()), TrainingJob(active=0))
    assert (fitted.rows, fitted.better, fitted.document) == (0, False, None)


def in_two_kinds(queries: int) -> Blocking:
    """Return a store whose phones click what the first feature likes, and desks the second."""
    store, rng = Blocking(MemoryStore()), np.random.default_rng(7)
    for query in range(queries):
        features, name = rng.random((6, 2)), f"q{query}"
        store.items.put(name, [NewItem(f"i{n}", tuple(row)) for n, row in enumerate(features)], 1.0)
        for session in range(40):
            order, kind = rng.permutation(6)[:4], session % 2
            entry = RankingEntry(
                f"{name}-{session}",
                name,
                2.0,
                0,
                items=tuple(f"i{n}" for n in order),
                contexts=(100 + kind,),
            )
            events = [
                EventEntry(
                    f"{entry.id}-{n}", entry.id, name, f"i{n}", "click", rank, 1, False, 2.0, 2.0
                )
                for rank, (n, p) in enumerate(zip(order, CURVE.curve, strict=True), 1)  # type: ignore[arg-type]
                if rng.random() < p * features[n, kind]
            ]
            store.log.write([entry, *events])
    return store


def test_what_contexts_save_counts_for_a_version() -> None:
    """One that learned them is better than the same prior without; once in use, they stay."""
    store = in_two_kinds(30)
    job = TrainingJob(active=0, policy="ebrank:estimator=exposure", examination=BELIEVED)
    log, scale = store.wrapped.log, Scaling("query")
    plain = fit(run(gather(store.wrapped, job, log)), job)
    assert plain.document is not None
    record = ModelRecord(1, 0.0, 1, None, None, activated=True, features=plain.features)
    store.models.add(record, plain.document.encode())
    assert "context" not in plain.reason

    job = msgspec.structs.replace(job, active=1, contexts=16)
    table = run(gather(store.wrapped, job, log))
    told = fit(table, job)
    assert told.better
    assert told.reason.endswith("; 2 contexts have preferences of their own")
    assert told.previous_loss == plain.validation_loss
    assert told.document is not None
    ranker = model_file.from_bytes(told.document.encode(), "the new one")
    judging = table.seen & table.judges
    seen = table.impressions.of_items(judging, ranker.curve)
    rows, stats = table.part(scale, judging)
    saved = ranker.saved_by_contexts(rows, stats, seen)
    assert saved > 0.0
    assert told.validation_loss == pytest.approx(plain.validation_loss - saved / judging.sum())

    off = TrainingJob(active=1, policy=job.policy, examination=BELIEVED)
    assert run(gather(store.wrapped, off, log)).impressions is None
    assert run(gather(store.wrapped, job)).impressions is None, "without a log there are none"


def test_only_rows_that_train_teach_contexts() -> None:
    """Others judge, and do nothing else: what users did with them changes no weight."""
    store = in_two_kinds(30)
    job = TrainingJob(active=0, policy="ebrank", examination=BELIEVED, contexts=16)
    table = run(gather(store.wrapped, job, store.wrapped.log))
    found = table.impressions
    judged = (table.seen & table.judges)[found.rows]
    assert judged.any()
    other = replace(found, outcomes=np.where(judged, 1.0 - found.outcomes, found.outcomes))
    one, two = fit(table, job), fit(replace(table, impressions=other), job)
    assert one.document == two.document
    assert one.validation_loss != two.validation_loss
