"""What docs/simulation.md says of another type of processor, tried on a plain one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TypeAlias

import numpy as np
import pytest

pytestmark = pytest.mark.slow

Outcomes: TypeAlias = tuple[dict[str, object], dict[str, object]]

CODE = """
import json
import numba
import ebrank
from ebrank.lab.simulation.stamps import fingerprint
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial

data = ebrank.load("mq2007-like", scale=0.02)
trial = run_trial(data, registry.parse("ebrank"), SimulationConfig(), seed=1, trial=0)
print(json.dumps({
    "processor": numba.config.CPU_NAME,
    "raw": fingerprint(ebrank.lab.data.generate("mslr10k-like", scale=0.001)),
    "prepared": fingerprint(data),
    "weights": trial.weights.tolist(),
    "figures": [trial.cold_ndcg.tolist(), trial.warm_ndcg.tolist()],
    "cum": trial.cum_ndcg.tolist(),
    "lists": trial.test_ndcg.tolist(),
}))
"""


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """The same on this processor, and with what all of its kind can do."""
    plain = {
        "NUMBA_CPU_NAME": "generic",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA",  # its exp and log, if it is there
    }
    outputs = [
        subprocess.run(
            [sys.executable, "-c", CODE],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for environment in ({}, plain)
    ]
    here, there = map(json.loads, outputs)
    assert there.pop("processor") == "generic" != here.pop("processor")
    return here, there


def test_a_dataset_has_the_same_bits(
    outcomes: Outcomes,
) -> None:
    here, there = outcomes
    assert (here["raw"], here["prepared"]) == (there["raw"], there["prepared"])


@pytest.mark.parametrize(
    ("name", "within"), [("weights", 1e-9), ("figures", 1e-12), ("cum", 1e-12), ("lists", 1e-12)]
)
def test_results_agree_as_far_as_promised(outcomes: Outcomes, name: str, within: float) -> None:
    here, there = (np.array(outcome[name]) for outcome in outcomes)
    np.testing.assert_allclose(here, there, rtol=0.0, atol=within * np.abs(here).max())
