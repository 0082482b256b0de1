"""Every command that is told is one that the command line takes, and means what it says."""

from __future__ import annotations

import shlex
from dataclasses import replace

import click
import pytest

import ebrank
from ebrank.cli.reproduce import command
from ebrank.data.dataset import Origin
from ebrank.experiments import commands
from ebrank.experiments.run import Setup, TuningRecord
from ebrank.simulation.config import SimulationConfig

GIVEN = TuningRecord("ebrank", "EBRank", 1.0, 30.0, "ebrank:epsilon=30")


def parsed(told: str) -> click.Context:
    name, verb, *words = shlex.split(told)
    assert (name, verb) == ("ebrank", "reproduce")
    return command.make_context("reproduce", words)


def test_the_defaults_are_those_of_the_command() -> None:
    usual = parsed(commands.again(Origin("MQ2008", fold=1))).params
    assert usual["trials"] == commands.TRIALS
    assert usual["seed"] == commands.SEED
    assert usual["updates"] == commands.UPDATES
    assert SimulationConfig().updates == commands.UPDATES


@pytest.mark.parametrize("given", [(), (GIVEN, replace(GIVEN, entering_probability=0.1))])
def test_whatever_is_not_the_default_is_told(given: tuple[TuningRecord, ...]) -> None:
    data = ebrank.load("mq2007-like", scale=0.01)
    origin = Origin("MQ2008", fold=3, options=(("max_label", "3"), ("drop_features", "1,2")))
    config = SimulationConfig(sessions=400, updates=4)
    setup = Setup(replace(data, origin=origin), config, seed=7, trials=2, tuning=given)
    told = parsed(commands.as_ordered(setup)).params
    assert told["datasets"] == ("MQ2008",)
    assert (told["fold"], told["max_label"], told["drop_features"]) == (3, 3, (1, 2))
    assert (told["trials"], told["seed"]) == (2, 7)
    assert (told["sessions"], told["updates"]) == (400, 4)
    assert told["given"] == (("ebrank:epsilon=30",) if given else ())
    own = replace(setup, dataset=data)
    assert parsed(commands.as_ordered(own)).params["scale"] == 0.01
