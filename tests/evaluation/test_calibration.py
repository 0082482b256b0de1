"""Calibration by plain loops, and on items that keep, or break, known promises."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank.errors import ParameterError
from ebrank.evaluation.calibration import calibration

POSITIVE = st.floats(0.01, 50)
ITEM = st.tuples(POSITIVE, POSITIVE, st.integers(0, 9), POSITIVE, st.floats(0, 1))
Item = tuple[float, float, int, float, float]


def drawn(n: int, *, seed: int = 0) -> npt.NDArray[np.float64]:
    """Items whose relevance is drawn from Beta(α, β), as promised."""
    rng = np.random.default_rng(seed)
    alpha, beta = rng.uniform(0.3, 6, n), rng.uniform(1, 6, n)
    relevance = rng.beta(alpha, beta)
    shows = rng.integers(1, 30, n)
    clicks = rng.binomial(shows, 0.5 * relevance)
    return np.column_stack((alpha, beta, clicks, 0.5 * shows, relevance))


def predicted(item: Item) -> float:
    return item[0] / (item[0] + item[1])


@given(st.lists(ITEM, min_size=1, max_size=30), st.integers(1, 12))
def test_bins_by_plain_loops(items: list[Item], bins: int) -> None:
    got = calibration(items, bins=bins)
    groups: dict[int, list[Item]] = {}
    for item in sorted(items, key=predicted):
        lower = sum(predicted(other) < predicted(item) for other in items)
        groups.setdefault(lower * bins // len(items), []).append(item)
    assert len(got.bins) == len(groups)
    for each, group in zip(got.bins, groups.values(), strict=True):
        rate = sum(item[2] for item in group) / math.fsum(item[3] for item in group)
        assert each.count == len(group)
        assert each.predicted == pytest.approx(statistics.fmean(map(predicted, group)))
        assert each.observed == pytest.approx(rate)
        assert each.relevance == pytest.approx(statistics.fmean(item[4] for item in group))


@given(st.lists(ITEM, min_size=1, max_size=10), st.sampled_from([0.5, 0.9, 0.99]))
def test_coverage_against_scipys_intervals(items: list[Item], level: float) -> None:
    inside = 0
    for alpha, beta, _, _, relevance in items:
        low, high = scipy.stats.beta.interval(level, alpha, beta)
        inside += bool(low <= relevance <= high)
    assert calibration(items, level=level).coverage == inside / len(items)


def test_kept_promises() -> None:
    got = calibration(drawn(40_000))
    assert [one.count for one in got.bins] == [4000] * 10
    for each in got.bins:
        assert each.error is not None
        assert abs(each.relevance - each.predicted) < 0.02
        assert abs(each.observed - each.predicted) < 0.02 + 4 * each.error
    assert got.coverage == pytest.approx(0.9, abs=0.006)
    assert got.level == 0.9


def test_the_error_is_the_spread_of_repeated_samples() -> None:
    items = drawn(30_000, seed=1)
    errors, rates = [], []
    for part in np.split(items, 300):
        (each,) = calibration(part, bins=1).bins
        assert each.error is not None
        errors.append(each.error)
        rates.append(each.observed)
    assert statistics.fmean(errors) == pytest.approx(statistics.stdev(rates), rel=0.12)


def test_equal_predictions_are_not_torn_apart() -> None:
    same = [(1.0, 4.0, i % 2, 1.0, 0.2) for i in range(7)]
    (one,) = calibration(same, bins=5).bins
    assert one.count == 7
    two = calibration([*same, (4.0, 1.0, 1, 1.0, 0.9)], bins=2).bins
    assert [each.count for each in two] == [7, 1]


def test_few_items() -> None:
    empty = calibration(np.empty((0, 5)))
    assert (empty.bins, empty.coverage) == ((), None)
    (each,) = calibration([(1, 1, 1, 2.0, 0.4)]).bins
    assert (each.predicted, each.observed, each.error, each.relevance) == (0.5, 0.5, None, 0.4)


@pytest.mark.parametrize(
    ("promised", "options", "said"),
    [
        ([[1, 2, 3]], {}, "five finite numbers"),
        ([[1, 1, 0, np.nan, 0.5]], {}, "five finite numbers"),
        ([[1, 1, 0, 0.0, 0.5]], {}, "exposure must be above 0"),
        ([[0, 1, 0, 1.0, 0.5]], {}, "above 0"),
        ([[1, 1, 0, 1.0, 1.5]], {}, "between 0 and 1"),
        ([[1, 1, 0, 1.0, 0.5]], {"bins": 0}, "bins must be 1 or more"),
        ([[1, 1, 0, 1.0, 0.5]], {"level": 1.0}, "level between 0 and 1"),
    ],
)
def test_mistakes_are_refused(promised: Any, options: dict[str, Any], said: str) -> None:  # noqa: ANN401
    with pytest.raises(ParameterError, match=said):
        calibration(promised, **options)


def test_broken_promises_show() -> None:
    """Ten times too sure: the means are right, the intervals are not."""
    promised = drawn(20_000)
    promised[:, :2] *= 10.0
    sure = calibration(promised)
    assert sure.coverage is not None
    assert sure.coverage < 0.6
    low = drawn(20_000)
    low[:, 0] /= 3
    assert all(each.relevance > each.predicted + 0.05 for each in calibration(low).bins)
