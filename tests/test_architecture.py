"""A trial and a refit, traced, pass the files that docs/architecture.md says; so does the table."""

from __future__ import annotations

import re

import pytest

import ebrank
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.service.core.background import Housekeeping
from ebrank.service.store.memory import MemoryStore
from tests.service.learning.test_training import QUICK, lived, trained
from tests.service.scenes import Scene, played
from tests.service.test_click_path import ARCHITECTURE, PACKAGE, Trace, tracing, walked

COMPILED = {
    "lab/sessions/session.py",
    "lab/sessions/tournament.py",
    "model/policy/composition.py",
}
"""Files of a trial without a frame of their own: compiled code, and what it is compiled from."""


def test_a_trial_passes_the_files_in_its_table() -> None:
    data = ebrank.load("mq2007-like", scale=0.01)
    ranker, config = registry.parse("ebrank"), SimulationConfig(sessions=120, updates=2)
    run_trial(data, ranker, config, seed=0, trial=0, threads=1)  # compiles
    trace = Trace()
    with tracing(trace):
        trace.on = True
        run_trial(data, ranker, config, seed=0, trial=1, threads=1)
        trace.on = False
    table = walked("A trial, file by file")
    assert len(table) == len(set(table)), "the same file twice"
    assert set(table) >= COMPILED
    assert set(trace.files) == set(table) - COMPILED


@pytest.mark.slow
def test_a_refit_passes_the_files_in_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Housekeeping, "add", lambda *_: None)
    trace = Trace()

    @played(QUICK, on=MemoryStore)  # whose refits run in a thread, so that they can be traced
    async def refit(engine: Scene) -> None:
        for trace.on in (False, True):
            await lived(engine, queries=15, sessions=8 - 6 * trace.on)
            trace.files.clear()
            outcome = (await trained(engine)).training.outcome
            assert "went live" in outcome
        trace.on = False

    with tracing(trace):
        refit()
    table = walked("A refit, file by file")
    assert len(table) == len(set(table)), "the same file twice"
    assert set(trace.files) == set(table)


def test_every_package_and_module_is_in_the_table() -> None:
    section = ARCHITECTURE.read_text(encoding="utf-8").split("## Where things live\n")[1]
    cells = [line.split("|")[1] for line in section.split("\n## ")[0].splitlines() if "|" in line]
    named = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert [name for name in named if not (PACKAGE / name).exists()] == []
    tops = {name.partition("/")[0].removesuffix(".py") for name in named}
    there = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.name[0] != "_" and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    assert there == tops


def test_every_path_named_in_the_architecture_exists() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    folders = [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir())]
    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []
