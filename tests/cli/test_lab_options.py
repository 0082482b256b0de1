"""Every number of an experiment is an option, and may stand in a file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from ebrank.cli import root
from ebrank.cli.lab_options import config_of, simulation_options
from ebrank.cli.verbs import opt, verb
from ebrank.evidence import Examination
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.protocol import SETTINGS
from ebrank.lab.simulation.users import parse


def described(*arguments: str) -> SimulationConfig:
    """Return the experiment that some options describe."""
    found: list[SimulationConfig] = []

    @verb(simulation_options(dataset=opt(None, "Any.", "NAME")))
    def command(**options: Any) -> None:  # noqa: ANN401
        found.append(config_of(options))
        assert not SETTINGS.keys() & options.keys()

    command(arguments, standalone_mode=False)
    return found[0]


def test_without_options_it_is_the_papers_experiment() -> None:
    assert described() == SimulationConfig()


def test_every_number_of_an_experiment_is_an_option() -> None:
    told = described(
        *("--eta", "0.5", "--sessions", "99", "--updates", "7", "--warmup", "3"),
        *("--initial", "2-4", "--list-length", "8", "--gamma", "0.9", "--measure-at", "8,2"),
        *("--users", "dcm", "--noise", "0.2", "--cutoff", "8", "--click-rate", "0.3"),
        *("--examination", "2", "--labels", "binary", "--traffic", "zipf"),
    )
    users = parse("dcm:noise=0.2,cutoff=8")
    assert told == SimulationConfig(
        entering_probability=0.5,
        sessions=99,
        updates=7,
        warmup_sessions=3,
        initial_candidates=(2, 4),
        list_length=8,
        discount=0.9,
        cutoffs=(8, 2),
        labels="binary",
        traffic="zipf",
        users=users,
        click_rate=0.3,
        assumed=Examination(severity=2.0, cutoff=8),
    )
    usual = SimulationConfig()
    same = {
        field.name
        for field in fields(usual)
        if getattr(told, field.name) == getattr(usual, field.name)
    }
    assert same == {"behaviors"}  # of which the lab's users have one


def test_a_measured_curve() -> None:
    assert described("--examination", "1,0.5,0.2").assumed == Examination(curve=(1.0, 0.5, 0.2))


def test_a_file_gives_options_and_what_is_typed_wins() -> None:
    content = 'sessions = 80\nupdates = 4\nlist-length = 3\ninitial = "4-6"\n'
    Path("experiment.toml").write_text(content, encoding="utf-8-sig")  # with a byte order mark
    typed = ("--sessions", "80", "--updates", "4", "--list-length", "3", "--initial", "4-6")
    assert described("--config", "experiment.toml") == described(*typed)
    other = described("--config", "experiment.toml", "--list-length", "5")
    assert (other.list_length, other.sessions) == (5, 80)


@pytest.mark.parametrize("verb", ["simulate", "compare", "tune", "reproduce"])
def test_all_verbs_that_simulate_have_these_options_and_run_on_clusters(verb: str) -> None:
    context = click.Context(root)
    command = root.get_command(context, verb)
    assert command is not None
    varied = {"eta"} if verb == "reproduce" else set()  # by its experiments
    assert {option.name for option in command.params} >= {*SETTINGS, "cluster"} - varied
    assert "--cluster " in (command.epilog or "")
