"""Lists pass stages in one order, and each column of the log is filled in one place."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

from ebrank.service.api import StartExperimentRequest
from ebrank.service.serving.stages import Stages
from ebrank.service.store.records import RankingEntry
from tests.service.scenes import Scene, played, settings

OF_THE_LOG = {"id", "time", "counted", "epoch", "token", "retracted"}
"""Columns of every entry, which are filled when a list is logged."""
NOT_LOGGED = {"hint", "cell"}


def passed(stages: Stages, scene: Scene) -> list[str]:
    deployment = scene.resources.active.deployment
    return [type(stage).__name__ for stage in stages.in_order if stage.on(deployment)]


@played(settings(ranking={"window": 0.0}))
async def test_with_everything_off_a_list_passes_three_stages(engine: Scene) -> None:
    assert passed(engine.stages, engine) == ["Candidates", "Score", "Cut"]


@played(settings(ranking={"window": 60.0, "exploration_budget": 0.01}))
async def test_what_is_switched_on_has_its_place(engine: Scene) -> None:
    await engine.start_experiment(StartExperimentRequest("t", {"own": "own", "a": "auto"}))
    names = ["Candidates", "Experiments", "Windows", "Score", "Cut", "Budget"]
    assert passed(engine.stages, engine) == names


@played()
async def test_each_column_of_a_list_has_one_stage(engine: Scene) -> None:
    owners = Counter(column for stage in engine.stages.in_order for column in stage.columns)
    assert set(owners.values()) == {1}
    columns = {field.name for field in fields(RankingEntry)} - OF_THE_LOG - NOT_LOGGED
    assert set(owners) == columns
