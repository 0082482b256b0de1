from __future__ import annotations

import pytest

from ebrank.service.core.feedback import RankingIds, number_of, time_of


def test_numbers_grow_whatever_the_clock_does() -> None:
    ids = RankingIds(after=1000.0)
    numbers = [number_of(ids.new(time)) or 0 for time in (1001.0, 1001.0, 500.0, 1002.0)]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 1000 * 1_000_000
    again = RankingIds(after=1002.0)
    assert (number_of(again.new(0.0)) or 0) > numbers[-1]


def test_tags_cannot_be_guessed() -> None:
    tags = {RankingIds().new(1.0).split("-")[1] for _ in range(100)}
    assert len(tags) == 100
    assert all(len(tag) == 16 for tag in tags)


def test_names_tell_when_they_were_made() -> None:
    assert time_of(RankingIds().new(1234.5)) == pytest.approx(1234.5)


@pytest.mark.parametrize("name", ["", "7", "x-0123456789abcdef", "7-0123", "7-0123456789ABCDEF"])
def test_other_texts_are_no_names(name: str) -> None:
    assert number_of(name) is None
    assert time_of(name) is None
