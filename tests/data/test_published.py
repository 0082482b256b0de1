"""The catalog: recognition, names, and counts that are checked."""

from __future__ import annotations

import pytest

from ebrank.data.published import PUBLISHED, Size, find


@pytest.mark.parametrize(
    ("name", "queries", "rows"),
    [
        ("MQ2007", 1_692, 69_623),
        ("MQ2008", 784, 15_211),
        ("MSLR-WEB10K", 10_000, 1_200_192),
        ("MSLR-WEB30K", 31_531, 3_771_125),
    ],
)
def test_published_counts(name: str, queries: int, rows: int) -> None:
    published = find(name)
    assert published is not None
    assert published.size == Size(queries, rows)


def test_names_and_aliases_are_found_in_any_case_and_are_unambiguous() -> None:
    names = [
        name.casefold() for published in PUBLISHED for name in (published.name, *published.aliases)
    ]
    assert len(names) == len(set(names))
    for published in PUBLISHED:
        for name in (published.name, *published.aliases):
            assert find(name.upper()) is find(name.lower()) is published
    assert find("MSLR-WEB30K-sample") is None
