"""The catalog: names are found, and mean one dataset each."""

from __future__ import annotations

from ebrank.data.published import PUBLISHED, find


def test_names_and_aliases_are_found_in_any_case_and_are_unambiguous() -> None:
    names = [
        name.casefold() for published in PUBLISHED for name in (published.name, *published.aliases)
    ]
    assert len(names) == len(set(names))
    for published in PUBLISHED:
        for name in (published.name, *published.aliases):
            assert find(name.upper()) is find(name.lower()) is published
    assert find("MSLR-WEB30K-sample") is None
