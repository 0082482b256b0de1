from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from scipy.special import betaln

from ebrank import BehaviorStats, EBRanker
from ebrank.model.formula import ItemPrior
from ebrank.model.policy import model_file
from ebrank.model.policy.scaling import Scaling
from ebrank.service.core.models import Model
from ebrank.service.core.queries import Queries
from ebrank.service.learning.fitting import (
    LEARNED_FROM,
    TrainingJob,
    TrainingResult,
    TrainingTable,
    fit,
    gather,
)
from ebrank.service.settings import ExaminationSettings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, ModelRecord, NewItem, Operation, RankingEntry
from tests.service.scenes import linear_state
from tests.service.store.blocking import Blocking, run

BELIEVED = ExaminationSettings(curve=(1.0, 0.8, 0.6, 0.4))
CURVE = BELIEVED.examination()


def lived_in(queries: int, without: Collection[int] = (), *, sessions: int = 20) -> Blocking:
    """Return a store whose users click what the first of two features likes."""
    store, rng = Blocking(MemoryStore()), np.random.default_rng(0)
    for query in range(queries):
        if query in without:
            continue
        features, name = rng.random((6, 2)), f"q{query}"
        store.items.put(name, [NewItem(f"i{n}", tuple(row)) for n, row in enumerate(features)], 1.0)
        for session in range(sessions):
            order = rng.permutation(6)[:4]
            names = tuple(f"i{n}" for n in order)
            listed = RankingEntry(f"{name}-{session}", name, 2.0, 0, names)
            entries: list[Operation] = [listed]
            for rank, (n, p) in enumerate(zip(order, CURVE.curve or (), strict=True), 1):
                if rng.random() < p * features[n, 0]:
                    event = f"{listed.id}-i{n}"
                    entries.append(
                        EventEntry(
                            event, listed.id, name, f"i{n}", "click", rank, 1, False, 2.0, 2.0
                        )
                    )
            store.log.write(entries)
    return store


def add_model(store: Blocking, ranker: EBRanker | str, features: tuple[str, ...] = ()) -> None:
    """Make a ranker, or its file, version 1 of a store."""
    record = ModelRecord(1, 0.0, 1, None, None, activated=True, features=features)
    file = ranker.encode() if isinstance(ranker, str) else model_file.to_bytes(ranker)
    store.models.add(record, file)


def table_of(store: Blocking, job: TrainingJob) -> TrainingTable:
    table = run(gather(store.wrapped, job))
    assert isinstance(table, TrainingTable)
    return table


def fitted_on(store: Blocking, job: TrainingJob) -> TrainingResult:
    return fit(run(gather(store.wrapped, job)), job)


def test_losses_are_those_of_queries_that_neither_version_has_seen() -> None:
    """Computed again from the log Beta functions of Sec. 4.3.3; the active one's with a surcharge.

    It has seen the rows, and is charged as much for that as the new one gains by it.
    """
    store = lived_in(30)
    active = EBRanker("ebrank", scaling=Scaling("none"))
    active.state_ = linear_state(0.3, 0.2, intercept=-0.1)
    add_model(store, active)
    job = TrainingJob(active=1, policy="ebrank", examination=BELIEVED)
    fitted = fitted_on(store, job)
    assert fitted.document is not None
    new = model_file.from_bytes(fitted.document.encode(), "new")
    losses: dict[str, list[float]] = {"new": [], "old": []}
    for query in store.items.queries():
        state = store.items.load(query)
        assert state is not None
        sums = BehaviorStats(state.counts).sums(CURVE)
        assert sums.shown.all()
        for name, ranker in (("new", new), ("old", active)):
            alpha, beta = ranker.prior(state.features)
            c, e = sums.clicks, sums.exposure
            losses[name] += list(
                betaln(alpha, beta) - betaln(c + alpha, np.maximum(e - c, 0) + beta)
            )
    assert fitted.rows == len(losses["new"])
    table = table_of(store, job)
    part = table.part(Scaling("query"), table.seen)
    held_out = new.held_out_losses(*part, table.queries).mean()
    assert fitted.validation_loss == pytest.approx(held_out)
    surcharge = held_out - np.mean(losses["new"])
    assert surcharge > 0.0
    assert fitted.previous_loss == pytest.approx(np.mean(losses["old"]) + surcharge)
    assert fitted.better


def test_the_result_depends_on_the_store_alone() -> None:
    job = TrainingJob(active=0)
    assert fitted_on(lived_in(15), job) == fitted_on(lived_in(15), job)


@pytest.mark.parametrize("policy", ["auto", "ebrank"])
def test_a_run_continues_from_the_version_in_use(policy: str) -> None:
    """With its weights and its ridge, which moves only as held-out queries say."""
    store = lived_in(20)
    first = fitted_on(store, TrainingJob(active=0, policy=policy))
    assert first.document is not None
    ranker = model_file.from_bytes(first.document.encode(), "first")
    assert ranker.state_ is not None
    ranker.state_ = {**ranker.state_, "ridge": np.array([1e-5])}  # as if it had been chosen
    add_model(store, ranker, first.features)
    table = table_of(store, job := TrainingJob(active=1, policy=policy))
    again = fit(table, job)
    assert again.document is not None
    on = ranker.fit(
        *table.part(Scaling("query"), table.seen), groups=table.queries, warm_start=True
    )
    assert on.state_ is not None
    new = model_file.from_bytes(again.document.encode(), "again").state_
    assert new is not None
    for name, values in on.state_.items():
        np.testing.assert_array_equal(new[name], values, err_msg=name)


def test_other_features_begin_anew() -> None:
    store = lived_in(20)
    active = EBRanker("ebrank")
    active.state_ = linear_state(9.0)
    add_model(store, active, ("0",))
    fresh = fitted_on(lived_in(20), TrainingJob(active=0, policy="ebrank"))
    anew = fitted_on(store, TrainingJob(active=1, policy="ebrank"))
    assert anew.document == fresh.document


# --- the gate ------------------------------------------------------------------------------------


ONE_SIDE = (4, 6, 12, 13, 14)
"""The rest of the first 17 queries have names whose hash is in the upper four fifths."""


@pytest.mark.parametrize("queries", [12, 17])
def test_queries_judge_whatever_their_names(queries: int) -> None:
    """A split by hash left nobody to judge by, and so no version."""
    fitted = fitted_on(lived_in(queries, without=ONE_SIDE), TrainingJob(active=0))
    assert fitted.better
    assert fitted.document is not None
    assert fitted.validation_loss is not None


def test_too_few_items_to_judge_by_are_told() -> None:
    fitted = fitted_on(lived_in(4), TrainingJob(active=0))
    assert fitted.rows == 24
    assert fitted.better
    assert "24 items are too few to judge it by" in fitted.reason


def test_a_prior_for_other_users_is_replaced_and_does_not_come_back() -> None:
    """Worse than the version in use, measured alike, means it stays off."""
    store = lived_in(20)
    good = fitted_on(store, TrainingJob(active=0, policy="ebrank"))
    assert good.document is not None
    upside_down = EBRanker("ebrank", scaling=Scaling("query"))
    upside_down.state_ = linear_state(-2.0, 0.0, intercept=1.0)
    add_model(store, upside_down, good.features)
    assert fitted_on(store, TrainingJob(active=1, policy="ebrank")).better


def test_the_same_evidence_makes_no_second_version() -> None:
    """Until something changes: an event, a feature, or how the policy learns."""
    store, job = lived_in(12), TrainingJob(active=0)
    first = fitted_on(store, job)
    store.meta.set({LEARNED_FROM: f"1 {first.digest}"})
    again = fitted_on(store, msgspec.structs.replace(job, active=1))
    assert again.document is None
    assert "nothing has changed since the last run" in again.reason
    job = msgspec.structs.replace(job, active=1)
    assert fitted_on(store, msgspec.structs.replace(job, policy="ebrank")).document is not None
    assert fitted_on(store, msgspec.structs.replace(job, active=0)).document is not None
    store.log.write([RankingEntry("more", "q0", 3.0, 0, items=("i0", "i1"))])
    assert fitted_on(store, job).document is not None


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
    add_model(store, good.document)
    strict = fitted_on(store, TrainingJob(active=1, policy="ebrank:ridge=10"))
    assert not strict.better
    lenient = fitted_on(store, TrainingJob(active=1, policy="ebrank:ridge=10", tolerance=100.0))
    assert lenient.better
