"""Kaplan and Meier against a textbook's numbers and SciPy."""

from __future__ import annotations

import numpy as np
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank.statistics.survival import kaplan_meier

ITEM = st.tuples(st.integers(0, 12), st.integers(0, 15))
"""When it would happen, and until when one looks."""


def observed(items: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [x if x <= last else -1 for x, last in items], [last for _, last in items]


def test_leukemia_patients_of_a_textbook() -> None:
    """Weeks in remission on 6-MP (Freireich et al. 1963), by a textbook's table."""
    relapse = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    in_remission = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    curve = kaplan_meier(relapse + [-1] * 12, relapse + in_remission)
    assert curve.x.tolist() == [6, 7, 10, 13, 16, 22, 23]
    survival = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    np.testing.assert_allclose(1 - curve.share, survival, atol=5e-4)
    errors = [0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346]
    np.testing.assert_allclose(curve.error, errors, atol=5e-5)
    assert curve.median == 23
    assert curve.until == 35


@given(st.lists(ITEM, min_size=1, max_size=40))
def test_agrees_with_scipy(items: list[tuple[int, int]]) -> None:
    waits, watched = observed(items)
    curve = kaplan_meier(waits, watched)
    seen = [wait for wait in waits if wait >= 0]
    lost = [last for wait, last in zip(waits, watched, strict=True) if wait < 0]
    theirs = scipy.stats.ecdf(scipy.stats.CensoredData(uncensored=seen, right=lost)).cdf
    ages = np.arange(-1, 16)
    np.testing.assert_allclose(curve.at(ages), theirs.evaluate(ages), atol=1e-12)
    assert curve.until == max(watched)


def test_one_half_is_one_half_whatever_its_last_digit() -> None:
    curve = kaplan_meier(range(24), [24] * 24)
    assert curve.share[11] < 0.5  # the product of 23/24, 22/23, ..., 12/13 is rounded
    assert curve.median == 11


def test_nothing_to_see() -> None:
    empty = kaplan_meier([], [])
    assert empty.x.shape == empty.share.shape == empty.error.shape == (0,)
    assert empty.median is None
    in_vain = kaplan_meier([-1, -1], [3, 8])
    assert in_vain.median is None
    assert in_vain.at([0, 8]).tolist() == [0.0, 0.0]
    assert in_vain.until == 8
