from __future__ import annotations

import pytest

from tests.simulation.online import (
    CONFIGS,
    assert_run_agrees,
    assert_sessions_agree,
    assert_threads_change_nothing,
)

VARIANTS = [
    "dbgd",
    "mgd",
    "dbgd:features=concate",
    "mgd:features=concate",
    "mgd:features=concate,behavior=ips,learn_from=all,credit=all",
    "dbgd:features=concate,default=mean,learn_from=all",
    "mgd:features=concate,default=mean,behavior=ips",
    "dbgd:rate=0.7,decay=0.5,step=3.0,features=concate,credit=all",
    "mgd:candidates=2,step=0.1",
    "mgd:candidates=30,learn_from=all",
]


@pytest.mark.parametrize("text", VARIANTS)
def test_session_by_session(text: str) -> None:
    compared = assert_sessions_agree(text)
    assert compared.reference.steps > 3


@pytest.mark.parametrize("text", ["dbgd", "mgd:features=concate"])
def test_equal_scores_are_ordered_by_tie_key(text: str) -> None:
    assert_sessions_agree(text, twins=True)


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("text", VARIANTS)
def test_whole_run(text: str, config: str) -> None:
    assert_run_agrees(text, CONFIGS[config], threads=1 + len(text) % 3)


@pytest.mark.parametrize("text", ["dbgd", "mgd:features=concate"])
def test_threads_change_nothing(text: str) -> None:
    assert_threads_change_nothing(text)
