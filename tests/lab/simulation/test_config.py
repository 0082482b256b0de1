from __future__ import annotations

import pickle
from typing import Any

import pytest

from ebrank.errors import ParameterError
from ebrank.lab.simulation.config import LARGEST_SESSIONS, SimulationConfig
from tests.lab.simulation.tiny import tiny


def test_the_defaults_are_the_papers() -> None:
    config = SimulationConfig()
    assert config.entering_probability == 1.0
    assert config.initial_candidates == (5, 10)
    assert config.warmup_sessions == config.updates == 20
    assert config.list_length == config.cutoffs[0] == 5
    assert config.discount == 0.995
    assert config.users.examination.cutoff == 5
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(("eta", "expected"), [(1.0, 45), (0.5, 90), (0.1, 450), (0.7, 64)])
def test_sessions_by_the_papers_formula(eta: float, expected: int) -> None:
    data = tiny(sizes=(20, 12, 15, 13, 10))  # 70 rows, of which 25 are there at the start
    assert SimulationConfig(entering_probability=eta).session_count(data) == expected


@pytest.mark.parametrize(("sizes", "count"), [((20, 8, 6), 19), ((3, 2, 4), 0)])
def test_too_few_sessions_are_refused(sizes: tuple[int, ...], count: int) -> None:
    with pytest.raises(ParameterError, match=f"^{count} sessions are too few for 20 model updates"):
        SimulationConfig().session_count(tiny(sizes=sizes))
    with pytest.raises(ParameterError, match="19 sessions are too few"):
        SimulationConfig(sessions=19).session_count(tiny(sizes=sizes))


@pytest.mark.parametrize(
    "wrong",
    [
        {"sessions": LARGEST_SESSIONS + 1},
        {"sessions": 10**300},
        {"entering_probability": 1e-9},
    ],
    ids=("one more", "huge", "small"),
)
def test_too_many_sessions_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(
        ParameterError, match=r"^more than 10,000,000,000 sessions do not fit in memory"
    ):
        SimulationConfig(**wrong).session_count(tiny())
    assert SimulationConfig(sessions=LARGEST_SESSIONS).session_count(tiny()) == LARGEST_SESSIONS


@pytest.mark.parametrize(
    "wrong",
    [
        {"entering_probability": 0.0},
        {"entering_probability": 1.1},
        {"entering_probability": float("nan")},
        {"discount": 1.0},
        {"discount": 0.0},
        {"click_rate": 0.0},
        {"click_rate": 1.5},
        {"click_rate": float("nan")},
        {"warmup_sessions": -1},
        {"warmup_sessions": 2.5},
        {"updates": 0},
        {"sessions": 0},
        {"list_length": 0},
        {"initial_candidates": (0, 3)},
        {"initial_candidates": (4, 3)},
        {"cutoffs": ()},
        {"cutoffs": (5, 0)},
    ],
    ids=str,
)
def test_what_is_no_experiment_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ParameterError, match=name):
        SimulationConfig(**wrong)
