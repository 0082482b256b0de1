from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.service.core.packed_strings import PackedStrings

TEXTS = st.lists(st.text(st.characters(), max_size=5), max_size=8)


@given(TEXTS, TEXTS)
def test_they_are_a_list_of_texts(first: list[str], more: list[str]) -> None:
    names = PackedStrings(first).extended(more)
    both = first + more
    assert list(names) == both
    assert len(names) == len(both)
    assert [names[at] for at in range(len(both))] == both
    assert [names[at] for at in range(-len(both), 0)] == both
    assert names[1:5:2] == both[1:5:2]
    assert all(names.index(name) == both.index(name) for name in both)


def test_there_is_nothing_beyond_the_end() -> None:
    with pytest.raises(IndexError):
        PackedStrings(["a"])[1]
    with pytest.raises(IndexError):
        PackedStrings()[0]
