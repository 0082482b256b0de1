from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.evidence import Examination
from ebrank.simulation.users import PositionBased, UserModel, position_based
from ebrank.testing import check_users
from ebrank.testing.users import shown
from tests.simulation.users import Impatient

SHARE = st.floats(0.0, 1.0)
DRAW = st.floats(0.0, 1.0, exclude_max=True)


@given(SHARE, SHARE, DRAW)
def test_a_click_needs_examination_and_relevance(p: float, relevance: float, draw: float) -> None:
    outcomes = [-1]
    position_based([relevance], [p], [draw], 1, np.uint64(0), outcomes)
    assert outcomes[0] == (draw < p * relevance)
    if p == 0 or relevance == 0:
        assert not outcomes[0]
    if p == relevance == 1:
        assert outcomes[0]


@given(st.lists(st.tuples(SHARE, SHARE, DRAW), min_size=1, max_size=8), st.data())
def test_the_compiled_rule_is_the_plain_one(
    ranks: list[tuple[float, float, float]], data: st.DataObject
) -> None:
    relevance, examination, minds = (np.array(column) for column in zip(*ranks, strict=True))
    length = data.draw(st.integers(0, len(ranks)))
    plain = [0] * len(ranks)
    position_based(
        relevance.tolist(), examination.tolist(), minds.tolist(), length, np.uint64(0), plain
    )
    compiled = shown(
        PositionBased().browse.compiled, relevance, examination, minds, length, np.uint64(0)
    )
    assert compiled[:length].tolist() == plain[:length]


@pytest.mark.parametrize("users", [PositionBased(), Impatient()], ids=["position", "impatient"])
def test_users_conform(users: UserModel) -> None:
    check_users(users)


def test_users_are_the_papers_by_default_and_compare_by_value() -> None:
    users = PositionBased()
    assert users.examination([1, 3, 5, 6]) == pytest.approx([1, 0.5, 0.386853, 0], abs=1e-6)
    assert users == PositionBased(Examination(cutoff=5))
    assert pickle.loads(pickle.dumps(users)) == users
