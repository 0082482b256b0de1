from __future__ import annotations

import pytest

from tests.simulation.online import (
    CONFIGS,
    assert_run_agrees,
    assert_sessions_agree,
    assert_threads_change_nothing,
)

VARIANTS = [
    "pdgd",
    "pdgd:features=concate",
    "pdgd:features=concate,behavior=ips,learn_from=all",
    "pdgd:features=concate,default=mean",
    "pdgd:features=concate,default=mean,behavior=ips",
    "pdgd:rate=1.5,decay=0.5,features=concate",
]


@pytest.mark.parametrize("text", VARIANTS)
def test_session_by_session(text: str) -> None:
    compared = assert_sessions_agree(text)
    assert compared.reference.steps > 3


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("text", VARIANTS)
def test_whole_run(text: str, config: str) -> None:
    assert_run_agrees(text, CONFIGS[config], threads=1 + len(text) % 3)


@pytest.mark.parametrize("text", ["pdgd", "pdgd:features=concate"])
def test_threads_change_nothing(text: str) -> None:
    assert_threads_change_nothing(text)
