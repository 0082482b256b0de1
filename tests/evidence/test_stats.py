from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, ParameterError
from ebrank.evidence import Behaviors, Sums
from ebrank.evidence.slots import SLOTS
from ebrank.evidence.stats import BLOCK, packed

N_ITEMS = 12
SHOP = Behaviors.of({"click": 0.25, "cart": 0.6, "purchase": 1.0})
curves = st.one_of(
    st.builds(Examination, st.floats(0, 3), st.one_of(st.none(), st.integers(1, 10))),
    st.builds(Examination, curve=st.lists(st.floats(0.01, 1), min_size=1, max_size=10).map(tuple)),
)
Session = tuple[list[int], list[int]]
Log = list[Session]


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    ranking = draw(st.permutations(range(N_ITEMS)))[: draw(st.integers(0, 10))]
    outcomes = st.lists(st.integers(0, 3), min_size=len(ranking), max_size=len(ranking))
    return ranking, draw(outcomes)


logs = st.lists(sessions(), max_size=8)


def recorded(log: Log) -> BehaviorStats:
    stats = BehaviorStats.zeros(N_ITEMS, behaviors=SHOP)
    for ranking, outcomes in log:
        stats.record(ranking, outcomes)
    return stats


def same_bits(sums: Sums, others: Sums) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(sums, others, strict=True))


# --- a log becomes counts, and counts become sums ------------------------------------------------


@given(logs, curves)
def test_sums_are_those_of_a_slow_log_reader(log: Log, curve: Examination) -> None:
    expected = np.zeros((4, N_ITEMS))
    for ranking, outcomes in log:
        for position, (item, outcome) in enumerate(zip(ranking, outcomes, strict=True)):
            if curve.curve is not None:
                p = curve.curve[position] if position < len(curve.curve) else 0.0
            else:
                examined = curve.cutoff is None or position + 1 <= curve.cutoff
                p = (1 / math.log2(position + 2)) ** curve.severity if examined else 0.0
            if p > 0:
                weight = [0.0, *SHOP.weights][outcome]
                expected[:, item] += [1, weight, weight / p, p]
    sums = recorded(log).sums(curve)
    for values, slow in zip(sums, expected, strict=True):
        np.testing.assert_allclose(values, slow, rtol=1e-8, atol=1e-8)
        assert np.all(np.isfinite(values) & (values >= 0))


@given(logs, curves, st.data())
def test_any_partition_and_order_of_a_log_gives_the_same_bits(
    log: Log, curve: Examination, data: st.DataObject
) -> None:
    whole = recorded(log)
    shuffled = data.draw(st.permutations(log))
    shards = data.draw(st.lists(st.integers(0, 2), min_size=len(log), max_size=len(log)))
    parts = [
        recorded([session for session, own in zip(shuffled, shards, strict=True) if own == shard])
        for shard in range(3)
    ]
    first, second, third = data.draw(st.permutations(parts))
    for merged in (first.merge(second).merge(third), first.merge(second.merge(third))):
        assert merged.counts.tobytes() == whole.counts.tobytes()
        assert same_bits(merged.sums(curve), whole.sums(curve))


@given(logs, curves, curves)
def test_the_curve_may_change_after_the_fact(
    log: Log, curve: Examination, other: Examination
) -> None:
    stats = recorded(log)
    before = stats.counts.copy()
    first = stats.sums(curve)
    assert same_bits(stats.sums(other), recorded(log).sums(other))
    assert same_bits(stats.sums(curve), first)
    np.testing.assert_array_equal(stats.counts, before)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    counts = np.zeros((BLOCK + 9, 2, 5), np.int32)
    counts[:, 0] = rng.integers(0, 50, (BLOCK + 9, 5))
    counts[:, 1] = rng.binomial(counts[:, 0], 0.3)
    stats = BehaviorStats(counts)
    alone = stats.sums(Examination(), threads=1)
    assert same_bits(stats.sums(Examination(), threads=3), alone)
    np.testing.assert_array_equal(alone.shown, stats.shown)
    np.testing.assert_array_equal(alone.clicks, stats.clicks)


def test_large_counts_sum_exactly() -> None:
    most = 2**31 - 1
    stats = BehaviorStats.of(shown=[[most] * 3], clicks=[[most, 0, most]])
    sums = stats.sums(Examination(curve=(1.0, 0.5, 0.5)))
    assert sums.shown[0] == 3 * most
    assert sums.clicks[0] == 2 * most
    assert sums.weighted_clicks[0] == 3 * most
    assert sums.exposure[0] == 2 * most


def test_slots_that_nobody_examines_count_nothing() -> None:
    stats = BehaviorStats.of(shown=[[2, 3]], clicks=[[1, 3]])
    sums = stats.sums(Examination(cutoff=1))
    assert [float(values[0]) for values in sums] == [2.0, 1.0, 1.0, 2.0]
    assert (stats.shown[0], stats.clicks[0]) == (5, 4)  # the counts keep them


def test_rows_of_sums() -> None:
    sums = BehaviorStats.of(shown=[4, 5, 6], clicks=[1, 2, 3]).sums(Examination())
    assert sums.rows(np.array([2, 0])).clicks.tolist() == [3.0, 1.0]
    assert sums.rows(slice(1, None)).shown.tolist() == [5.0, 6.0]


# --- items, slots, merging ----------------------------------------------------------------------


def test_a_slice_shares_memory_with_the_whole() -> None:
    stats = BehaviorStats.zeros(5)
    stats[2:4].record([1], [True])
    assert stats.clicks.tolist() == [0, 0, 0, 1, 0]
    assert stats[np.array([3, 0])].clicks.tolist() == [1, 0]
    assert stats[np.array([False, False, False, True, True])].clicks.tolist() == [1, 0]
    assert len(stats[2:4]) == 2
    with pytest.raises(ParameterError, match="slice or by an array"):
        stats[3]  # type: ignore[index]


def test_every_other_item_and_fewer_slots_sum_like_a_copy() -> None:
    stats = BehaviorStats.of(
        shown=np.arange(20).reshape(5, 4), clicks=np.arange(20).reshape(5, 4) // 2
    )
    strided = stats[::2]
    assert packed(strided.counts) is strided.counts  # no copy where items are whole
    copied = BehaviorStats(strided.counts.copy())
    assert same_bits(strided.sums(Examination()), copied.sums(Examination()))
    narrow = BehaviorStats(stats.counts[:, :, :2])
    assert same_bits(
        narrow.sums(Examination()), BehaviorStats(narrow.counts.copy()).sums(Examination())
    )


def test_widened_statistics_are_the_same_with_room_for_more() -> None:
    stats = BehaviorStats.of(shown=[[3, 2]], clicks=[[1, 1]])
    wide = stats.widened(SLOTS)
    assert wide.slots == SLOTS
    assert same_bits(wide.sums(Examination()), stats.sums(Examination()))
    assert stats.widened(2) is stats
    assert stats.merge(wide).shown.tolist() == [10]
    for slots in (1, SLOTS + 1):
        with pytest.raises(ParameterError, match="cannot be widened"):
            stats.widened(slots)


def test_long_lists_are_recorded_in_bands() -> None:
    stats = BehaviorStats.zeros(60)
    stats.record(np.arange(60), np.arange(60) == 12)
    assert stats.counts[12, :, 10].tolist() == [1, 1]  # ranks 11 to 15
    assert stats.counts[59, :, 13].tolist() == [1, 0]  # ranks 51 to 100
    with pytest.raises(ParameterError, match="a list of 6 items needs 6 slots"):
        BehaviorStats.zeros(9, slots=5).record(range(6), [0] * 6)


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranking", "outcomes", "problem"),
    [
        ([0, 0], [0, 0], "twice"),
        ([0, 9], [0, 0], "0 to 2"),
        ([-1], [0], "0 to 2"),
        ([0], [0, 1], "one outcome for each"),
        ([[0]], [[0]], "one outcome for each"),
        ([0.5], [0], "item numbers"),
        ([0], [2], r"0 \(nothing\) or 1 \(click\)"),
        ([0], [-1], "an outcome is"),
        ([0], [0.5], "an outcome is"),
        ([0], [float("nan")], "an outcome is"),
    ],
)
def test_a_bad_session_is_refused_and_changes_nothing(
    ranking: list[int], outcomes: list[int], problem: str
) -> None:
    stats = BehaviorStats.zeros(3)
    with pytest.raises(ParameterError, match=problem):
        stats.record(ranking, outcomes)
    assert not stats.counts.any()


def test_counts_never_overflow() -> None:
    full = BehaviorStats.of(shown=[[2**31 - 1, 0]], clicks=[[0, 0]])
    with pytest.raises(ParameterError, match="2³¹"):
        full.record([0], [1])
    assert full.clicks[0] == 0
    with pytest.raises(ParameterError, match="2³¹"):
        full.merge(BehaviorStats.of(shown=[[1, 0]], clicks=[[0, 0]]))


@pytest.mark.parametrize(
    ("shown", "clicks", "problem"),
    [
        ([0], [5], "item 0 has more clicks than impressions at rank 1"),
        ([[9, 0]], [[0, 1]], "more clicks than impressions at rank 2"),
        ([-1], [0], "negative"),
        ([0.5], [0], "not a whole number"),
        ([float("nan")], [0], "not a whole number"),
        ([float("inf")], [0], "not a whole number"),
        ([2**31], [0], "not a whole number below"),
        (["a"], [0], "not a number"),
        ([1, 2], [1], "shape"),
        ([[[1]]], [[[1]]], "one row per item"),
        (5, 1, "one row per item"),
        ([[1] * (SLOTS + 1)], [[0] * (SLOTS + 1)], "slots"),
    ],
)
def test_counts_that_no_log_can_give_are_refused(
    shown: list[float], clicks: list[float], problem: str
) -> None:
    with pytest.raises(ParameterError, match=problem):
        BehaviorStats.of(shown, clicks)


def test_several_behaviors_together_never_exceed_the_impressions() -> None:
    counts = np.array([[[2], [1], [1], [1]]], np.int32)
    with pytest.raises(ParameterError, match="more clicks"):
        BehaviorStats(counts, SHOP)


@pytest.mark.parametrize(
    "counts",
    [
        [[[1], [0]]],
        np.zeros((1, 2, 5)),
        np.zeros((1, 2, 5), np.int64),
        np.zeros((2, 5), np.int32),
        np.zeros((1, 3, 5), np.int32),
        np.zeros((1, 2, 0), np.int32),
        np.zeros((1, 2, SLOTS + 1), np.int32),
    ],
)
def test_arrays_of_another_type_or_shape_are_refused(counts: object) -> None:
    with pytest.raises(ParameterError, match=r"BehaviorStats\.of converts"):
        BehaviorStats(counts)  # type: ignore[arg-type]


def test_statistics_that_do_not_match_are_not_merged() -> None:
    with pytest.raises(ParameterError, match="2 and 3 items"):
        BehaviorStats.zeros(2).merge(BehaviorStats.zeros(3))
    with pytest.raises(ParameterError, match="different behaviors"):
        BehaviorStats.zeros(2).merge(BehaviorStats.zeros(2, behaviors=SHOP))
