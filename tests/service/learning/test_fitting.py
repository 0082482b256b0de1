from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
from scipy.special import betaln

from ebrank import BehaviorStats, EBRanker
from ebrank.evidence import Behaviors, Examination
from ebrank.model.policy import model_file
from ebrank.model.policy.scaling import Scaling
from ebrank.model.prior.base import ItemPrior
from ebrank.service.core.models import Model
from ebrank.service.core.queries import Queries
from ebrank.service.learning import impressions
from ebrank.service.learning.fitting import (
    LEARNED_FROM,
    TrainingJob,
    TrainingResult,
    TrainingTable,
    fit,
    gather,
)
from ebrank.service.learning.impressions import LoggedImpressions, read
from ebrank.service.settings import ExaminationSettings
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import EventEntry, ModelRecord, NewItem, Operation, RankingEntry
from ebrank.testing.histories import event, new_items, ranking
from tests.service.scenes import linear_state
from tests.service.store.blocking import Blocking, run

BELIEVED = ExaminationSettings(curve=(1.0, 0.8, 0.6, 0.4))
CURVE = BELIEVED.examination()


def lived_in(
    queries: int, without: Collection[int] = (), *, kinds: int = 1, sessions: int = 20
) -> Blocking:
    """Return a store whose users click what the first of two features likes.

    If there are two kinds of users, the others, in another context, click what the second likes.
    """
    store, rng = Blocking(MemoryStore()), np.random.default_rng(0)
    for query in range(queries):
        if query in without:
            continue
        features, name = rng.random((6, 2)), f"q{query}"
        store.items.put(name, [NewItem(f"i{n}", tuple(row)) for n, row in enumerate(features)], 1.0)
        for session in range(sessions):
            order, kind = rng.permutation(6)[:4], session % kinds
            names = tuple(f"i{n}" for n in order)
            contexts = (100 + kind,) if kinds > 1 else ()
            listed = RankingEntry(f"{name}-{session}", name, 2.0, 0, names, contexts=contexts)
            entries: list[Operation] = [listed]
            for rank, (n, p) in enumerate(zip(order, CURVE.curve or (), strict=True), 1):
                if rng.random() < p * features[n, kind]:
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


def test_contexts_are_judged_apart_from_the_prior() -> None:
    """They decide by held-out queries whether they change anything; the losses are the prior's."""
    store = lived_in(30, kinds=2, sessions=40)
    job = TrainingJob(active=0, policy="ebrank:estimator=exposure", examination=BELIEVED)
    log = store.wrapped.log
    plain = fit(run(gather(store.wrapped, job, log)), job)
    assert "context" not in plain.reason
    told_job = msgspec.structs.replace(job, contexts=16)
    told = fit(run(gather(store.wrapped, told_job, log)), told_job)
    assert told.reason.endswith("; 2 contexts have preferences of their own")
    assert told.validation_loss == plain.validation_loss
    assert run(gather(store.wrapped, job, log)).impressions is None
    assert run(gather(store.wrapped, told_job)).impressions is None, "without a log there are none"


# --- single impressions from the log: each once, where it counts, with its best outcome ----------


BEHAVIORS = Behaviors.parse(["click=0.25", "purchase"], negative=["hide"])


def read_from(*log: Operation) -> LoggedImpressions:
    """Return the impressions of a log about `abcd` of a query after one with other items."""
    store = MemoryStore()
    run(store.items.put("p", new_items("x", "y"), 1.0))
    run(store.items.put("q", new_items(*"abcd"), 1.0))
    run(store.log.write(log))
    states = [run(store.items.load(query)) for query in "pq"]
    found: LoggedImpressions
    found = run(read(store.log, [state for state in states if state], BEHAVIORS))
    return found


def told(found: LoggedImpressions) -> list[tuple[str, int, float, tuple[int, ...]]]:
    """Return each impression's item, rank, outcome and context."""
    columns = (found.rows, found.ranks, found.outcomes, found.lists)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        ("xyabcd"[row], rank, outcome, tuple(found.contexts[context]))
        for row, rank, outcome, context in rows
    ]


def test_impressions_have_their_best_outcome() -> None:
    """In lists with a context; others teach nothing of it."""
    first = ranking("r1", "ab", contexts=(7,))
    plain = ranking("r2", "cd")
    other = ranking("r3", "dx", query="p", contexts=(7, 9))
    other = replace(other, items=("y",))
    found = read_from(
        first,
        plain,
        event("e1", first, "b"),
        event("e2", first, "b", "purchase"),
        event("e3", plain, "c"),
        other,
        event("e4", other, "y"),
    )
    assert told(found) == [("a", 1, 0.0, (7,)), ("b", 2, 1.0, (7,)), ("y", 1, 0.25, (7, 9))]


def test_a_negative_behavior_takes_all_back() -> None:
    first = ranking("r1", "a", contexts=(7,))
    found = read_from(first, event("e1", first, "a", "purchase"), event("e2", first, "a", "hide"))
    assert told(found) == [("a", 1, 0.0, (7,))]


def test_pages_and_refreshes_count_once() -> None:
    """Events are logged for the first list of the window."""
    first = ranking("r1", "ab", contexts=(7,))
    second = ranking("r2", "cd", offset=2, continues="r1", contexts=(7,))
    again = ranking("r3", "ab", continues="r1", seen=(1, 2), contexts=(7,))
    clicked = replace(event("e1", second, "d"), ranking_id="r1", rank=4)
    found = read_from(first, second, again, clicked)
    ranks = [(item, rank, outcome) for item, rank, outcome, _ in told(found)]
    assert ranks == [("a", 1, 0.0), ("b", 2, 0.0), ("c", 3, 0.0), ("d", 4, 0.25)]


def test_impressions_that_must_be_confirmed() -> None:
    """Only those that were count, and bots' never do."""
    first = ranking("r1", "ab", counted=False, contexts=(7,))
    bot = ranking("r2", "ab", counted=False, bot=True, contexts=(7,))
    found = read_from(
        first,
        bot,
        event("e1", first, "b", "impression", shows=True),
        event("e2", first, "b"),
        replace(event("e3", bot, "a"), outcome=0, bot=True),
    )
    assert told(found) == [("b", 2, 0.25, (7,))]


def test_the_latest_lists_are_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Late events about earlier lists are left out."""
    monkeypatch.setattr(impressions, "LISTS", 1)
    first, second = ranking("r1", "ab", contexts=(7,)), ranking("r2", "c", contexts=(7,))
    found = read_from(first, second, event("e1", first, "b"), event("e2", second, "c"))
    assert told(found) == [("c", 1, 0.25, (7,))]


def test_what_was_deleted_is_left_out() -> None:
    """A query, or an item whose name is another's now."""
    store = MemoryStore()
    run(store.items.put("q", new_items(*"ab"), 1.0))
    run(store.items.put("p", new_items(*"ab"), 1.0))
    run(store.log.write([ranking("r1", "ab", contexts=(7,))]))
    run(store.log.write([ranking("r2", "ab", query="p", contexts=(7,))]))
    state = run(store.items.load("q"))
    assert state is not None
    kept = run(read(store.log, [replace(state, ids=["a", "gone"])], BEHAVIORS))
    assert kept.rows.tolist() == [0]


def test_some_items_have_rows_of_their_own() -> None:
    """As the features of these items do; ranks are as likely to be seen as the curve says."""
    found = read_from(ranking("r1", "abcd", contexts=(7,)))
    some = found.of_items(np.array([1, 1, 0, 1, 0, 1], np.bool_), Examination(curve=(1, 0.5)))
    assert some.rows.tolist() == [2, 3]
    assert some.p.tolist() == [0.5, 0.0]
