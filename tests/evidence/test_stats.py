from __future__ import annotations

import math

import numpy as np
import pytest
from ebrank.behavior import FIELDS, Estimator
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, Examination, ParameterError

N_ITEMS = 6
curves = st.builds(Examination, st.floats(0, 3), st.one_of(st.none(), st.integers(1, N_ITEMS)))


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[int], list[bool]]:
    ranking = draw(st.permutations(range(N_ITEMS)))[: draw(st.integers(0, N_ITEMS))]
    return ranking, draw(st.lists(st.booleans(), min_size=len(ranking), max_size=len(ranking)))


def only_examined_clicks(
    session: tuple[list[int], list[bool]], curve: Examination
) -> tuple[list[int], list[bool]]:
    ranking, clicks = session
    return ranking, [c and curve([k])[0] > 0 for k, c in enumerate(clicks, start=1)]


@given(st.lists(sessions(), max_size=8), curves)
def test_record_adds_what_a_slow_log_reader_adds(
    log: list[tuple[list[int], list[bool]]], curve: Examination
) -> None:
    stats = BehaviorStats.zeros(N_ITEMS)
    expected = {field: [0.0] * N_ITEMS for field in FIELDS}
    for session in log:
        ranking, clicks = only_examined_clicks(session, curve)
        stats.record(ranking, clicks, curve)
        for position, item in enumerate(ranking):
            p = (1 / math.log2(position + 2)) ** curve.severity
            if curve.cutoff is not None and position + 1 > curve.cutoff:
                continue
            expected["shown"][item] += 1
            expected["clicks"][item] += clicks[position]
            expected["weighted_clicks"][item] += clicks[position] / p
            expected["exposure"][item] += p
    for field in FIELDS:
        values = getattr(stats, field)
        np.testing.assert_allclose(values, expected[field])
        assert np.all(np.isfinite(values))
        assert np.all(values >= 0)


@given(st.lists(sessions(), max_size=6), st.integers(0, 6))
def test_merging_parts_of_a_log_equals_the_whole(
    log: list[tuple[list[int], list[bool]]], cut: int
) -> None:
    curve = Examination()
    parts = [BehaviorStats.zeros(N_ITEMS) for _ in range(3)]
    for index, session in enumerate(log):
        parts[0 if index < cut else 1].record(*session, curve)
        parts[2].record(*session, curve)
    merged = parts[0].merge(parts[1])
    for field in FIELDS:
        np.testing.assert_allclose(getattr(merged, field), getattr(parts[2], field))


@given(st.lists(sessions(), max_size=4))
def test_arrays_round_trip(log: list[tuple[list[int], list[bool]]]) -> None:
    stats = BehaviorStats.zeros(N_ITEMS)
    for session in log:
        stats.record(*session, Examination())
    again = BehaviorStats.from_arrays(stats.to_arrays())
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(again, field), getattr(stats, field))
    again.record([0], [True], Examination())
    assert again.shown[0] == stats.shown[0] + 1  # copies, not views


def test_evidence_of_both_estimators_and_its_clamp() -> None:
    stats = BehaviorStats.from_arrays(
        {"shown": [2, 4], "clicks": [2, 1], "weighted_clicks": [4.6, 1.0], "exposure": [0.9, 3.0]}
    )
    cases: list[tuple[Estimator, bool, list[list[float]]]] = [
        ("ips", False, [[4.6, 1.0], [2, 4]]),
        ("ips", True, [[2.0, 1.0], [2, 4]]),
        ("exposure", False, [[2, 1], [0.9, 3.0]]),
        ("exposure", True, [[2, 1], [2.0, 3.0]]),
    ]
    for estimator, clamp, expected in cases:
        np.testing.assert_allclose(stats.evidence(estimator, clamp), expected)


def test_a_slice_shares_memory_with_the_whole() -> None:
    stats = BehaviorStats.zeros(5)
    stats[2:4].record([1], [True], Examination())
    assert stats.clicks.tolist() == [0, 0, 0, 1, 0]
    assert stats[np.array([3, 0])].clicks.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("ranking", "clicks", "problem"),
    [
        ([0, 0], [0, 0], "twice"),
        ([0, 9], [0, 0], "0 to 2"),
        ([-1], [0], "0 to 2"),
        ([0], [0, 1], "one click mark"),
        ([0.5], [0], "item numbers"),
        ([0], [2], "0 or 1"),
        ([0], [float("nan")], "0 or 1"),
        ([0, 1, 2], [0, 0, 1], "rank 3"),
    ],
)
def test_a_bad_session_is_refused_and_changes_nothing(
    ranking: list[int], clicks: list[int], problem: str
) -> None:
    stats = BehaviorStats.zeros(3)
    with pytest.raises(ParameterError, match=problem):
        stats.record(ranking, clicks, Examination(cutoff=2))
    assert stats.shown.sum() == 0
    assert stats.exposure.sum() == 0


@pytest.mark.parametrize(
    "change",
    [
        {"shown": [-1]},
        {"exposure": [float("nan")]},
        {"weighted_clicks": [float("inf")]},
        {"clicks": [0.5]},
        {"clicks": [1, 2]},
        {"shown": None},
    ],
)
def test_impossible_arrays_are_refused(change: dict[str, list[float] | None]) -> None:
    arrays: dict[str, list[float]] = {field: [1.0] for field in FIELDS}
    for name, values in change.items():
        if values is None:
            del arrays[name]
        else:
            arrays[name] = values
    with pytest.raises(ParameterError):
        BehaviorStats.from_arrays(arrays)


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"shown": [0], "clicks": [5], "weighted_clicks": [5], "exposure": [0]}, "more clicks"),
        ({"shown": [1], "clicks": [0], "weighted_clicks": [0], "exposure": [9]}, "more exposure"),
        ({"shown": [9], "clicks": [5], "weighted_clicks": [1], "exposure": [9]}, "below its"),
        ({"shown": [9], "clicks": [0], "weighted_clicks": [1], "exposure": [9]}, "without a"),
        ({"shown": ["a"], "clicks": [0], "weighted_clicks": [0], "exposure": [0]}, "no number"),
        ({"shown": [1], "clicks": [0], "weighted_clicks": [None], "exposure": [0]}, "non-finite"),
    ],
)
def test_sums_that_no_session_can_give_are_refused(
    arrays: dict[str, list[float]], problem: str
) -> None:
    with pytest.raises(ParameterError, match=problem):
        BehaviorStats.from_arrays(arrays)


def test_arrays_of_other_types_or_shared_ones_are_refused() -> None:
    whole, real = np.zeros(2, np.int64), np.zeros(2)
    with pytest.raises(ParameterError, match="from_arrays converts"):
        BehaviorStats([0], [0], [0.0], [0.0])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="int64"):
        BehaviorStats(real, whole, real.copy(), real.copy())  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="share memory"):
        BehaviorStats(whole, whole, real, real.copy())


def test_merging_different_sizes_and_unknown_estimators_is_refused() -> None:
    with pytest.raises(ParameterError, match="merge"):
        BehaviorStats.zeros(2).merge(BehaviorStats.zeros(3))
    with pytest.raises(ParameterError, match="ips, exposure"):
        BehaviorStats.zeros(2).evidence("clicks")  # type: ignore[arg-type]
