"""Every number of an experiment is an option, and may stand in a file."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from ebrank.cli._protocol import config_of, protocol_options
from ebrank.cli.simulate import command as simulate
from ebrank.evidence import Examination
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.protocol import SETTINGS
from ebrank.simulation.users import parse
from tests.cli.comparing import SHORT, TINY, ebrank


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def described(*arguments: str) -> SimulationConfig:
    """Return the experiment that some options describe."""
    found: list[SimulationConfig] = []

    @click.command()
    @protocol_options()
    def command(**options: Any) -> None:  # noqa: ANN401
        found.append(config_of(options))
        assert not options

    command(arguments, standalone_mode=False)
    return found[0]


def test_without_options_it_is_the_papers_experiment() -> None:
    assert described() == SimulationConfig()


def test_every_number_of_an_experiment_is_an_option() -> None:
    told = described(
        *("--eta", "0.5", "--sessions", "99", "--updates", "7", "--warmup", "3"),
        *("--initial", "2-4", "--list-length", "8", "--gamma", "0.9", "--measure-at", "8,2"),
        *("--users", "dcm", "--noise", "0.2", "--cutoff", "8", "--click-rate", "0.3"),
        *("--examination", "2", "--labels", "binary"),
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
        users=users,
        click_rate=0.3,
        believed=Examination(severity=2.0, cutoff=8),
    )
    usual = SimulationConfig()
    same = {
        field.name
        for field in fields(usual)
        if getattr(told, field.name) == getattr(usual, field.name)
    }
    assert same == {"behaviors"}  # of which the lab's users have one


def test_a_measured_curve() -> None:
    assert described("--examination", "1,0.5,0.2").believed == Examination(curve=(1.0, 0.5, 0.2))


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("--initial 5", "--initial: '5' is not a range such as 5-10"),
        ("--initial 9-5", "initial_candidates must be (smallest, largest)"),
        ("--measure-at 5,x", "--measure-at: '5,x' is not a list of numbers"),
        ("--examination 1,2", "curve must hold probabilities between 0 and 1"),
        ("--gamma 1", "--gamma"),
    ],
)
def test_errors_take_one_line(typed: str, problem: str) -> None:
    done = ebrank("simulate", "--ranker", "bm25", *TINY, *typed.split())
    assert done.exit_code == 2
    assert problem in done.stderr
    assert "Traceback" not in done.output


def test_users_without_noise_are_not_given_any(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("quiet_users.py").write_text(
        "from dataclasses import dataclass\n"
        "from ebrank.simulation.users import PBM, Users\n\n"
        "@dataclass(frozen=True)\n"
        "class Quiet(Users):\n"
        "    name, help = 'quiet', 'As pbm, and nothing to set.'\n"
        "    browse = PBM().browse\n"
    )
    monkeypatch.syspath_prepend(".")
    done = ebrank(
        "simulate", "--ranker", "bm25", *TINY, "--users", "quiet_users:Quiet", "--noise", "0.2"
    )
    assert done.exit_code == 2
    assert "users quiet_users:Quiet have no parameter noise; leave out --noise" in done.stderr


# --- a file of options ---------------------------------------------------------------------------


def test_a_file_gives_options_and_what_is_typed_wins() -> None:
    content = 'sessions = 80\nupdates = 4\nlist-length = 3\ninitial = "4-6"\n'
    Path("experiment.toml").write_text(content, encoding="utf-8-sig")  # with a byte order mark
    typed = ("--sessions", "80", "--updates", "4", "--list-length", "3", "--initial", "4-6")
    assert described("--config", "experiment.toml") == described(*typed)
    other = described("--config", "experiment.toml", "--list-length", "5")
    assert (other.list_length, other.sessions) == (5, 80)


def test_tune_repeats_what_a_file_says() -> None:
    Path("experiment.toml").write_text('initial = "4-6"\n')
    grid = ("--ranker", "ebrank", "--param", "epsilon", "--grid", "0,5")
    done = ebrank("tune", "--config", "experiment.toml", *SHORT, *grid)
    assert done.exit_code == 0, done.output
    use = shlex.split(done.stdout.splitlines()[-1])
    assert use[use.index("--initial") + 1] == "4-6"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("list-lenght = 3\n", "list-lenght is not an option; did you mean list-length?"),
        ("list-length = 0\n", "list-length"),
        ("list-length =\n", "not valid TOML"),
    ],
)
def test_a_wrong_file_is_refused(content: str, problem: str) -> None:
    Path("wrong.toml").write_text(content)
    done = ebrank("simulate", "--config", "wrong.toml", "--ranker", "bm25", *TINY)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_a_file_that_is_not_there() -> None:
    done = ebrank("simulate", "--config", "nowhere.toml", "--ranker", "bm25", *TINY)
    assert done.exit_code == 2
    assert "nowhere.toml" in done.stderr


def test_all_commands_that_simulate_have_the_same_options() -> None:
    from ebrank.cli.compare import command as compare
    from ebrank.cli.reproduce import command as reproduce
    from ebrank.cli.tune import command as tune

    names = {
        name: {option.name for option in own.params}
        for name, own in (
            ("simulate", simulate),
            ("compare", compare),
            ("tune", tune),
            ("reproduce", reproduce),
        )
    }
    for name, options in names.items():
        assert options >= set(SETTINGS) - ({"eta"} if name == "reproduce" else set())
