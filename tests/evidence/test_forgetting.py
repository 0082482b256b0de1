from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ebrank.evidence.forgetting import DAY, EPOCHS, HalfLife, forgotten

KEYS = np.random.default_rng(1).integers(0, 2**63, 40_000).astype(np.uint64)


def counts_of(items: int, most: int = 30) -> st.SearchStrategy[np.ndarray]:
    """Return counts that a log can give: passes, clicks and purchases in three slots."""

    def shown(parts: np.ndarray) -> np.ndarray:
        counts = parts.copy()
        counts[:, 0] = parts.sum(axis=1)
        return counts

    return arrays(np.int32, (items, 3, 3), elements=st.integers(0, most)).map(shown)


@pytest.mark.parametrize("count", [1, 2, 7, 100, 2**31 - 1])
@pytest.mark.parametrize("epochs", [1, 4, 9])
def test_counts_fade_by_the_half_life_in_the_mean(count: int, epochs: int) -> None:
    counts = np.full((len(KEYS), 1, 1), count, np.int32)
    faded = forgotten(counts, KEYS, 0, epochs).astype(np.float64)
    kept = 2.0 ** (-epochs / EPOCHS)
    error = faded.std() / np.sqrt(len(KEYS))
    assert faded.mean() == pytest.approx(count * kept, abs=4 * error + 1e-6 * count)


@given(counts_of(3), st.lists(st.integers(0, 9), min_size=3, max_size=3), st.integers(0, 12))
def test_lazy_is_eager(counts: np.ndarray, began: list[int], middle: int) -> None:
    """Steps may be taken one by one, some at a time, each item's at its own time."""
    keys, epochs = KEYS[:3], np.array(began)
    eager = forgotten(counts, keys, epochs, 14)
    reached = np.maximum(epochs, middle)
    half_way = np.concatenate(
        [
            forgotten(counts[at : at + 1], keys[at : at + 1], began[at], int(reached[at]))
            for at in range(3)
        ]
    )
    assert forgotten(half_way, keys, reached, 14).tolist() == eager.tolist()


@given(counts_of(2, most=2**29), st.integers(0, 40))
def test_no_count_grows_or_is_negative_and_outcomes_stay_below_impressions(
    counts: np.ndarray, epochs: int
) -> None:
    faded = forgotten(counts, KEYS[:2], 3, 3 + epochs)
    assert faded.dtype == counts.dtype
    assert (faded >= 0).all()
    assert (faded <= counts).all()
    assert (faded[:, 1:].sum(axis=1) <= faded[:, 0]).all()


def test_everything_is_forgotten_in_the_end() -> None:
    counts = np.full((50, 2, 3), 1_000_000, np.int32)
    assert not forgotten(counts, KEYS[:50], 0, 10**9).any()
    assert forgotten(np.zeros((0, 2, 3), np.int32), KEYS[:0], 0, 5).shape == (0, 2, 3)


def plainly(counts: list[list[int]], key: int, epoch: int) -> list[list[int]]:
    """Return an item's counts one epoch later, in plain words of 64 bits."""
    word = 2**64 - 1
    parts = [[shown - sum(row[at] for row in counts[1:]) for at, shown in enumerate(counts[0])]]
    parts += counts[1:]
    for outcome, row in enumerate(parts):
        for slot, count in enumerate(row):
            number = (epoch * 256 + outcome) * 16 + slot + 1
            mixed = (key + number * 0x9E3779B97F4A7C15) & word
            mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & word
            mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & word
            mixed ^= mixed >> 31
            row[slot] = (count * round(2**32 / 2**0.25) + (mixed >> 32)) >> 32
    shown = [sum(column) for column in zip(*parts, strict=True)]
    return [shown, *parts[1:]]


def test_the_bits_are_these() -> None:
    """Stores hold what was drawn: another hash would be another store."""
    start = [[10, 3], [4, 1]], [[1000, 0], [1, 0]]
    counts, keys = np.array(start, np.int32), np.array([2**64 - 5, 2], np.uint64)
    plain = [[list(row) for row in item] for item in start]
    for epoch in range(9):
        assert forgotten(counts, keys, 0, epoch).tolist() == plain
        plain = [plainly(item, int(key), epoch) for item, key in zip(plain, keys, strict=True)]
    assert plain[0] == [[1, 2], [0, 0]]


def test_epochs_are_quarters_of_the_half_life() -> None:
    half_life = HalfLife(days=2.0, since=1000.0)
    times = [0.0, 1000.0, 1000.0 + DAY / 2 - 1.0, 1000.0 + DAY / 2, 1000.0 + 20 * DAY]
    assert [half_life.epoch(time) for time in times] == [0, 0, 0, 1, 40]
    assert half_life.remembered(0.0) == 0.0
    assert half_life.remembered(60.0) == pytest.approx(60.0, rel=1e-3)
    assert half_life.remembered(1e12) == pytest.approx(2.0 * DAY / np.log(2.0))
