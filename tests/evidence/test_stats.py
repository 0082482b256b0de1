from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, ParameterError
from ebrank.evidence import CLICKS, Behaviors
from ebrank.evidence.slots import slot_of
from ebrank.evidence.stats import packed
from tests.evidence.logs import (
    SHOP,
    Session,
    bits,
    curves,
    formula_curves,
    logs,
    long_log,
    recorded,
    slow_sums,
)

N_ITEMS = 6


# --- sums ----------------------------------------------------------------------------------------


def check_against_slow(
    stats: BehaviorStats,
    log: list[Session],
    curve: Examination,
) -> None:
    """Compare n, c, C and E with a calculation in plain numbers."""
    expected = slow_sums(log, curve, len(stats), stats.behaviors)
    for name, ours, slow in zip(expected._fields, stats.sums(curve), expected, strict=True):
        np.testing.assert_allclose(ours, slow, rtol=1e-8, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("behaviors", [CLICKS, SHOP], ids=["clicks", "by weight"])
@given(st.data(), curves)
def test_sums_are_those_of_a_slow_log_reader(
    behaviors: Behaviors, data: st.DataObject, curve: Examination
) -> None:
    log = data.draw(logs(N_ITEMS, behaviors))
    check_against_slow(recorded(log, behaviors=behaviors), log, curve)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from([40, 300, 1000]),
    st.sampled_from([CLICKS, SHOP]),
    formula_curves,
)
def test_sums_of_lists_of_any_length(
    seed: int, n_items: int, behaviors: Behaviors, curve: Examination
) -> None:
    log = long_log(seed, n_items, behaviors)
    check_against_slow(recorded(log, n_items, behaviors), log, curve)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng = np.random.default_rng(1)
    shown = rng.integers(0, 9, (200_000, 5))
    stats = BehaviorStats.of(shown, rng.binomial(shown, 0.3))
    sums = {bits(stats.sums(Examination(), threads=threads)) for threads in (1, 2, 5)}
    assert len(sums) == 1


def test_sums_of_a_view_are_those_of_its_items() -> None:
    stats = recorded(long_log(3, 30), 30)
    curve = Examination()
    views: list[slice | npt.NDArray[np.integer] | npt.NDArray[np.bool_]] = [
        slice(3, 20, 4),
        slice(None, None, -1),
        np.array([5, 1, 1]),
        np.arange(30) % 3 == 0,
    ]
    for chosen in views:
        assert bits(stats[chosen].sums(curve)) == bits(stats.sums(curve).rows(chosen))
    assert packed(stats[::2].counts).base is not None  # no copy where items are whole
    apart = BehaviorStats(np.asfortranarray(stats.counts))
    assert bits(apart.sums(curve)) == bits(stats.sums(curve))
    assert stats[:0].sums(curve).shown.shape == (0,)


# --- recording -----------------------------------------------------------------------------------


def test_a_slice_shares_memory_with_the_whole() -> None:
    stats = BehaviorStats.zeros(5)
    stats[2:4].record([1], [True])
    assert stats.clicks.tolist() == [0, 0, 0, 1, 0]
    assert stats[np.array([3, 0])].clicks.tolist() == [1, 0]
    with pytest.raises(ParameterError, match="by a slice or by an array"):
        stats[3]  # type: ignore[index]


@pytest.mark.parametrize(
    ("ranking", "outcomes", "problem"),
    [
        ([0, 0], [0, 0], "twice"),
        ([0, 3], [0, 0], "0 to 2"),
        ([-1], [0], "0 to 2"),
        ([0], [0, 1], "one outcome for each"),
        ([[0]], [[0]], "one outcome for each"),
        ([0.5], [0], "item numbers"),
        ([0], [2], r"0 \(nothing\) or 1 \(click\)"),
        ([0], [0.5], r"0 \(nothing\) or 1 \(click\)"),
        ([0], [-1], r"0 \(nothing\) or 1 \(click\)"),
        ([0], [float("nan")], r"0 \(nothing\) or 1 \(click\)"),
        ([0, 1, 2], [0, 0, 1], "needs 3 slots, but these statistics have 2"),
    ],
)
def test_a_bad_session_is_refused_and_changes_nothing(
    ranking: list[int], outcomes: list[int], problem: str
) -> None:
    stats = BehaviorStats.zeros(3, slots=2)
    with pytest.raises(ParameterError, match=problem):
        stats.record(ranking, outcomes)
    assert not stats.counts.any()


def test_counts_never_overflow() -> None:
    full = np.iinfo(np.int32).max
    stats = BehaviorStats.of(shown=[full, 1], clicks=[full, 0])
    with pytest.raises(ParameterError, match="2³¹ − 1"):
        stats.record([0], [True])
    assert stats.shown.tolist() == [full, 1]


# --- making --------------------------------------------------------------------------


def test_impressions_and_clicks_come_by_item_or_by_item_and_rank() -> None:
    by_rank = BehaviorStats.of(shown=[[5, 2], [0, 3]], clicks=[[1, 0], [0, 3]])
    assert by_rank.counts.tolist() == [[[5, 2], [1, 0]], [[0, 3], [0, 3]]]
    on_top = BehaviorStats.of(shown=np.array([5, 2]), clicks=(1.0, 0.0))
    assert on_top.counts.tolist() == [[[5], [1]], [[2], [0]]]
    assert on_top.sums(Examination()).exposure.tolist() == [5, 2]
    assert len(BehaviorStats.of([], [])) == 0


@pytest.mark.parametrize(
    ("shown", "clicks", "problem"),
    [
        ([-1], [0], "negative"),
        ([1], [-1], "negative"),
        ([float("nan")], [0], "whole number"),
        ([0.5], [0], "whole number"),
        ([2.0**31], [0], "whole number"),
        ([1], [1, 2], "shape"),
        ([[1, 2]], [[1], [2]], "shape"),
        ([[[1]]], [[[1]]], "one row per item"),
        (["a"], [0], "shown holds something that is not a number"),
        ([0], [None], "clicks holds a number that is not a whole number"),
        ([3, 3], [0, 5], "item 1 has more clicks than impressions at rank 1"),
        ([[9] * 12], [[0] * 11 + [10]], "item 0 .* at ranks 16 to 25"),
    ],
)
def test_numbers_that_no_log_can_give_are_refused(
    shown: list[float], clicks: list[float], problem: str
) -> None:
    with pytest.raises(ParameterError, match=problem):
        BehaviorStats.of(shown, clicks)


@pytest.mark.parametrize(
    "counts",
    [
        [[[0], [0]]],
        np.zeros((2, 2, 3), np.int64),
        np.zeros((2, 2), np.int32),
        np.zeros((2, 3, 3), np.int32),
        np.zeros((2, 2, 0), np.int32),
        np.zeros((2, 2, 17), np.int32),
    ],
)
def test_counts_of_another_type_or_shape_are_refused(counts: npt.NDArray[np.int32]) -> None:
    with pytest.raises(ParameterError, match=r"int32 of shape \(items, 2, slots\)"):
        BehaviorStats(counts)


def test_more_outcomes_than_impressions_are_refused_whatever_they_are() -> None:
    counts = np.array([[[3], [1], [1], [1]], [[3], [2], [1], [1]]], np.int32)
    BehaviorStats(counts[:1], SHOP)
    with pytest.raises(ParameterError, match="item 1 has more clicks than impressions"):
        BehaviorStats(counts, SHOP)


def test_a_log_with_a_row_for_each_item_shown() -> None:
    rng = np.random.default_rng(4)
    items, ranks = rng.integers(0, 5, 400), rng.integers(1, 30, 400)
    clicked = rng.random(400) < 0.3
    expected = BehaviorStats.zeros(5)
    for item, rank, click in zip(items.tolist(), ranks.tolist(), clicked.tolist(), strict=True):
        expected.counts[item, : 1 + click, slot_of(rank)] += 1
    log = {"doc": items, "position": ranks, "tap": clicked}
    names = {"item": "doc", "rank": "position", "clicked": "tap"}
    found = BehaviorStats.from_log(log, items=range(5), **names)
    assert np.array_equal(found.counts, expected.counts[:, :, : found.slots])
    assert not expected.counts[:, :, found.slots :].any()
    assert len(BehaviorStats.from_log({"item": [], "rank": [], "clicked": []}, items=["a"])) == 1


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("z", 1, 0), "row 1: 'z' is not among the items"),
        (("a", 0, 0), "row 1: rank is 0; ranks count from 1"),
        (("a", 1, 2), "row 1: clicked is 2; write 1 or 0"),
        (("a", 1, float("nan")), "clicked holds a number that is not a whole number"),
    ],
)
def test_a_log_with_a_bad_row_is_refused(row: tuple[str, int, float], why: str) -> None:
    log: dict[str, npt.ArrayLike] = {
        "item": ["a", row[0]],
        "rank": [1, row[1]],
        "clicked": [1, row[2]],
    }
    with pytest.raises(ParameterError, match=why):
        BehaviorStats.from_log(log, items=["a"])


def test_an_item_has_one_row() -> None:
    log: dict[str, npt.ArrayLike] = {"item": ["b"], "rank": [1], "clicked": [1]}
    with pytest.raises(ParameterError, match="items names 'a' twice"):
        BehaviorStats.from_log(log, items=["a", "b", "a"])
