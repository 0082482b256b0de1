"""Which runs are too small to decide anything."""

from __future__ import annotations

import pytest

from ebrank.experiments.framework.power import caution


@pytest.mark.parametrize(
    ("queries", "trials", "small"),
    [
        (100, 5, False),
        (99, 5, True),
        (1000, 4, True),
        (1, 1, True),
        (None, 5, False),
        (None, 4, True),
    ],
)
def test_few_queries_or_few_trials_are_small(queries: int | None, trials: int, small: bool) -> None:
    assert bool(caution(queries, trials)) is small


def test_it_says_how_many_there_were() -> None:
    assert caution(1, 1).startswith("1 test query, 1 trial: too few")
    assert caution(1000, 2).startswith("1,000 test queries, 2 trials: too few")
    assert caution(None, 2).startswith("2 trials: too few")
