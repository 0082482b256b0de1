from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.evidence import Examination
from ebrank.simulation.users import PositionBased, position_based_click

SHARE = st.floats(0.0, 1.0)


@given(SHARE, SHARE, st.integers(0, 4), st.floats(0.0, 1.0, exclude_max=True))
def test_a_click_needs_examination_and_relevance(
    p: float, relevance: float, earlier: int, draw: float
) -> None:
    clicked = position_based_click(p, relevance, earlier, draw)
    assert clicked == (draw < p * relevance)
    if p == 0 or relevance == 0:
        assert not clicked
    if p == relevance == 1:
        assert clicked


def test_the_compiled_rule_is_the_plain_one() -> None:
    users = PositionBased()
    compiled = users.click.compiled.ctypes
    for draw in (0.0, 0.2, 0.3, 0.31, 0.99):
        assert compiled(0.5, 0.6, 0, draw) == users.click(0.5, 0.6, 0, draw) == (draw < 0.3)


def test_users_are_the_papers_by_default_and_compare_by_value() -> None:
    users = PositionBased()
    assert users.examination([1, 3, 5, 6]) == pytest.approx([1, 0.5, 0.386853, 0], abs=1e-6)
    assert users == PositionBased(Examination(cutoff=5))
    assert pickle.loads(pickle.dumps(users)) == users
